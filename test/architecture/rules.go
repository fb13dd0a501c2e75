// Package architecture has the rules for which folder may import which. Its tests check the
// code against them, and its generator writes them into the pages for contributors.
package architecture

// Names of dependencies that most of the module must not have.
const (
	clientGo          = "k8s.io/client-go"
	controllerRuntime = "sigs.k8s.io/controller-runtime"
	kubernetes        = "k8s.io/kubernetes"
	kubectl           = "k8s.io/kubectl"
	etcd              = "go.etcd.io/etcd/server"
	kwok              = "sigs.k8s.io/kwok"
	mergeDiff         = "sigs.k8s.io/structured-merge-diff"

	// notStd stands for every package outside of the standard library.
	notStd = "(not std)"
	// everything is the folder of the module.
	everything = "./"
)

// A rule forbids imports. Paths that begin with ./ are in this module; a path stands for
// the package and for all below it. Every folder but everything may use itself.
type rule struct {
	in     string   // the folder that the rule is about
	except []string // folders in it that the rule is not about
	never  []string // must not be reached, through any chain of imports
	direct []string // must not be imported by name: for std, which everything reaches
	tests  []string // must not be imported by tests
	allow  []string // exceptions from all of these
	layer  bool     // shown in CONTRIBUTING.md, too
	why    string
}

// rules are the architecture: role first, group second, imports only downwards.
//
//	cmd ── internal/manager ─── controller, webhook ─┬─ internal/decide ─┬─ engine
//	 │                                               │                   └─ api
//	 ├──── internal/cli ─────── internal/manifest ───┘
//	 └──── internal/controlplane ── component ── Kubernetes itself
//
// A rule that forbids all of ./internal and allows some of it is an allow-list: a new
// package is closed to the folder until the rule names it.
var rules = []rule{
	{
		in:    "./api",
		never: []string{"./engine", "./internal", clientGo, controllerRuntime, "k8s.io/apiextensions-apiserver", "k8s.io/apiserver", "k8s.io/component-base"},
		allow: []string{"k8s.io/apiextensions-apiserver/pkg/apis"},
		layer: true,
		why:   "other projects import the types, so they depend on little more than apimachinery",
	},
	{
		in:     "./api",
		direct: []string{notStd},
		allow:  []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver/pkg/apis", "sigs.k8s.io/yaml"},
		why:    "other projects import the types, so they depend on little more than apimachinery",
	},
	{
		in:     "./api",
		except: []string{"./api/crds"},
		never:  []string{"k8s.io/apiextensions-apiserver"},
		why:    "only `api/crds` reads CRDs",
	},
	{
		in:    "./engine",
		never: []string{"./api", "./internal", "k8s.io", "sigs.k8s.io"},
		allow: []string{mergeDiff},
		layer: true,
		why:   "engines are pure Go: they can be read, tested and reused without Kubernetes",
	},
	{
		in:     "./engine",
		except: []string{"./engine/fields", "./engine/gang", "./engine/ledger", "./engine/victims"},
		direct: []string{notStd, "context", "math/rand", "net/http", "os", "time"},
		allow:  []string{"./engine/tree"},
		layer:  true,
		why:    "engines do not depend on each other, except for the algorithms of `tree`, do no I/O and do not wait; time and randomness are arguments",
	},
	{
		in:     "./engine/fields",
		direct: []string{notStd, "context", "math/rand", "net/http", "os", "time"},
		allow:  []string{mergeDiff},
		why:    "only this engine works on managedFields; it does no I/O and does not wait",
	},
	{
		in:     "./engine/ledger",
		direct: []string{notStd, "context", "math/rand", "net/http", "os"},
		allow:  []string{"./engine/cidr"},
		why:    "a ledger is a pool of `cidr` with names; it compares times that are arguments, and never asks for the time",
	},
	{
		in:     "./engine/gang",
		direct: []string{notStd, "math/rand", "net/http", "os", "time"},
		allow:  []string{"./engine/podtree"},
		why:    "a gang is a tree of pods; it passes a context to the World that it asks, and does no I/O itself",
	},
	{
		in:     "./engine/victims",
		direct: []string{notStd, "math/rand", "net/http", "os", "time"},
		allow:  []string{"./engine/gang", "./engine/podtree"},
		why:    "victims are pods of gangs; it passes a context to the Cluster that it asks, and does no I/O itself",
	},
	{
		in:    "./internal/identity",
		never: []string{notStd},
		why:   "stock synthesizers link it, too, and do without Kubernetes",
	},
	{
		in:    "./internal/decide",
		never: []string{"./internal", clientGo, controllerRuntime},
		allow: []string{"./internal/identity"},
		layer: true,
		why:   "decisions are functions of their arguments, for webhooks, controllers and the command line alike",
	},
	{
		in:     "./internal/decide",
		direct: []string{notStd, "context", "math/rand", "net/http", "os"},
		allow: []string{
			"./api", "./engine", "./internal/identity", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver/pkg/apis",
			"k8s.io/component-helpers/resource", "github.com/google/cel-go", "k8s.io/apiserver/pkg/apis/cel", "github.com/fluxcd/cli-utils/pkg/kstatus/status",
		},
		layer: true,
		why:   "decisions do no I/O; time and randomness are arguments",
	},
	{
		in:    "./internal/pki",
		never: []string{notStd},
		why:   "keys and certificates need only the standard library",
	},
	{
		in:    "./internal/access",
		never: []string{"./api", "./engine", "./internal", controllerRuntime},
		why:   "it checks the permissions of callers, whatever they call",
	},
	{
		in:    "./internal/fence",
		never: []string{"./api", "./engine", "./internal", controllerRuntime},
		why:   "it watches one lease, whatever else the process does",
	},
	{
		in:    "./internal/kube",
		never: []string{"./internal", "./engine"},
		why:   "the toolbox for the API server is below everything that uses it",
	},
	{
		in:    "./internal/ipamcache",
		never: []string{"./internal"},
		allow: []string{"./internal/kube", "./internal/decide/ipam/poolblocks"},
		why:   "a cache shows what exists, and decides nothing",
	},
	{
		in:    "./internal/ownership",
		never: []string{"./internal"},
		allow: []string{"./internal/kube"},
		why:   "it carries out what `engine/fields` plans, whatever the reason",
	},
	{
		in:    "./internal/manifest",
		never: []string{"./internal", "./engine", clientGo, controllerRuntime},
		why:   "reading files needs no cluster and no rules",
	},
	{
		in:    "./internal/krm",
		never: []string{"./internal", "./engine", clientGo, controllerRuntime},
		allow: []string{"./internal/identity"},
		why:   "a protocol is a function of bytes, however programs are run",
	},
	{
		in:     "./internal/krm",
		direct: []string{"context", "math/rand", "net/http", "os", "time"},
		why:    "a protocol is a function of bytes, however programs are run",
	},
	{
		in:    "./internal/stock",
		never: []string{"./api", "./internal", "./engine", clientGo, controllerRuntime, "k8s.io/api", "k8s.io/apimachinery"},
		allow: []string{"./internal/manifest", "./internal/identity"},
		why:   "a renderer is a function of files and inputs, in a small image; another module links it with other versions of Kubernetes",
	},
	{
		in:     "./internal/stock",
		except: []string{"./internal/stock/kustomize"},
		never:  []string{"sigs.k8s.io/kustomize"},
		why:    "plain manifests and charts are delivered without kustomize",
	},
	{
		in:    "./internal/executor",
		never: []string{"./internal", "./engine", clientGo, controllerRuntime},
		why:   "it runs a program and returns its output, and does not interpret that",
	},
	{
		in:    "./internal/synthesis",
		never: []string{"./internal", "./engine"},
		allow: []string{"./internal/decide", "./internal/kube", "./internal/krm", "./internal/identity", "./internal/executor", "./engine/fields", "./engine/tree"},
		why:   "it runs one synthesis, wherever that runs and whatever started it",
	},
	{
		in:    "./internal/executorpod",
		never: []string{"./internal", "./engine", controllerRuntime + "/pkg/manager"},
		allow: []string{"./internal/synthesis", "./internal/decide", "./internal/kube", "./internal/krm", "./internal/identity", "./internal/executor", "./engine/fields", "./engine/tree"},
		why:   "it is copied into every pod of a synthesis, so it is small",
	},
	{
		in:    "./internal/controller",
		never: []string{"./internal"},
		allow: []string{"./internal/decide", "./internal/ipamcache", "./internal/ownership", "./internal/kube", "./internal/krm", "./internal/identity", "./internal/executor", "./internal/synthesis"},
		layer: true,
		why:   "a controller gathers, calls `decide`, and applies",
	},
	{
		in:    "./internal/webhook",
		never: []string{"./internal"},
		allow: []string{"./internal/decide", "./internal/identity", "./internal/ipamcache", "./internal/kube", "./internal/pki"},
		layer: true,
		why:   "a webhook decodes, calls `decide`, and answers",
	},
	{
		in:    "./internal/cli",
		never: []string{"./internal"},
		allow: []string{"./internal/show", "./internal/linter", "./internal/rehearsal", "./internal/clusterfacts", "./internal/decide", "./internal/ipamcache", "./internal/ownership", "./internal/kube", "./internal/manifest", "./internal/krm", "./internal/identity", "./internal/executor"},
		layer: true,
		why:   "commands call `decide`, as webhooks and controllers do, and not those",
	},
	{
		in:    "./internal/show",
		never: []string{"./internal"},
		allow: []string{"./internal/decide", "./internal/ownership", "./internal/kube", "./internal/manifest", "./internal/identity"},
		why:   "views are made of objects, for commands and a console alike; they read no cluster and print nothing",
	},
	{
		in:    "./internal/linter",
		never: []string{"./internal"},
		allow: []string{"./internal/show", "./internal/decide", "./internal/ownership", "./internal/kube", "./internal/manifest", "./internal/identity"},
		why:   "manifests are checked without a cluster, by the rules of admission",
	},
	{
		in:    "./internal/rehearsal",
		never: []string{"./internal"},
		allow: []string{"./internal/show", "./internal/decide", "./internal/ownership", "./internal/kube", "./internal/manifest", "./internal/identity"},
		why:   "it asks the API server what a write would change; it does not print the answer",
	},
	{
		in:    "./internal/clusterfacts",
		never: []string{"./internal"},
		allow: []string{"./internal/decide", "./internal/kube", "./internal/identity"},
		why:   "it reads the facts that `decide/health` checks, and checks nothing itself",
	},
	{
		in:    "./internal/manager",
		never: []string{"./internal/cli", "./internal/controlplane", "./internal/manifest", "./internal/scheduler"},
		why:   "the manager runs in existing clusters",
	},
	{
		in:    "./internal/scheduler",
		never: []string{"./internal"},
		allow: []string{"./internal/decide", "./internal/identity", "./internal/ipamcache", "./internal/kube", "./internal/fence"},
		why:   "the scheduler places pods, and does nothing else",
	},
	{
		in:     everything,
		except: []string{"./internal/scheduler/schedulertest", "./internal/scheduler/testcluster"},
		never:  []string{"./internal/scheduler/schedulertest", "./internal/scheduler/testcluster"},
		why:    "only tests of the scheduler need them",
	},
	{
		in:    "./internal/controlplane",
		never: []string{"./api", "./engine", "./internal", controllerRuntime},
		allow: []string{"./internal/pki"},
		layer: true,
		why:   "a control plane is Kubernetes and no more; `cmd` decides what else it runs",
	},
	{
		in:     everything,
		except: []string{"./internal/controlplane/component", "./internal/scheduler", "./cmd/arbor", "./cmd/arbor-scheduler"},
		never:  []string{kubernetes, kubectl},
		layer:  true,
		why:    "Kubernetes itself adds a hundred megabytes and ten minutes of building",
	},
	{
		in:     everything,
		except: []string{"./internal/controlplane/component", "./cmd/arbor"},
		never:  []string{etcd, kwok},
		why:    "only the embedded control plane needs them",
	},
	{
		in:    "./cmd/arbor-manager",
		never: []string{"./internal/cli", "./internal/controlplane"},
		why:   "it is the small program of the image",
	},
	{
		in:    "./cmd/kubectl-arbor",
		never: []string{"./internal/controlplane", "./internal/scheduler"},
		why:   "it is the slim command line, for systems that Kubernetes itself does not run on",
	},
	{
		in:    "./cmd/arbor-executor",
		never: []string{"./internal/manager", "./internal/controller", "./internal/cli", controllerRuntime + "/pkg/manager"},
		why:   "it is copied into every pod of a synthesis, so it is small",
	},
	{
		in:     everything,
		except: []string{"./test", "./bench"},
		never:  []string{"./cmd", "./test", "./bench"},
		layer:  true,
		why:    "nothing depends on programs, tests and benchmarks",
	},
	{
		in:     everything,
		except: []string{"./test", "./bench"},
		tests:  []string{"./cmd", "./test", "./bench"},
		allow:  []string{"./test/cluster"},
		why:    "tests use a cluster of `test/cluster`, and nothing else of these",
	},
	{
		in:    "./test",
		never: []string{"./cmd", "./bench"},
		tests: []string{"./cmd", "./bench"},
		why:   "tests run the programs, and are not measured",
	},
	{
		in:    "./bench",
		never: []string{"./cmd", "./test"},
		tests: []string{"./cmd", "./test"},
		allow: []string{"./test/cluster"},
		why:   "benchmarks use a cluster of `test/cluster`, and nothing else of these",
	},
}
