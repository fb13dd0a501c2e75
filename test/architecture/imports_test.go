// Package architecture_test checks what the compiler does not: which folder may
// know which, and how it is laid out.
package architecture_test

import (
	"fmt"
	"path"
	"testing"
)

// Names of what most of the module must do without.
const (
	clientGo          = "k8s.io/client-go"
	controllerRuntime = "sigs.k8s.io/controller-runtime"
	kubernetes        = "k8s.io/kubernetes"
	kubectl           = "k8s.io/kubectl"
	etcd              = "go.etcd.io/etcd/server"
	kwok              = "sigs.k8s.io/kwok"
)

// rules are the architecture: role first, group second, imports only downwards.
//
//	cmd ── internal/manager ─── controller, webhook ─┬─ internal/decide ─┬─ engine
//	 │                                               │                   └─ api
//	 ├──── internal/cli ─────── internal/manifest ───┘
//	 └──── internal/controlplane ── component ── Kubernetes itself
//
// A rule that names all of ./internal and allows some of it is an allow-list:
// a new package is closed to it until somebody decides otherwise here.
var rules = []rule{
	{
		in:     "./api",
		except: []string{"./api/crds"},
		never:  []string{"./engine", "./internal", clientGo, controllerRuntime, "k8s.io/apiextensions-apiserver", "k8s.io/apiserver", "k8s.io/component-base"},
		why:    "types are what other people import: they cost nothing but apimachinery",
	},
	{
		in:    "./api/crds",
		never: []string{"./engine", "./internal", clientGo, controllerRuntime, "k8s.io/apiextensions-apiserver", "k8s.io/apiserver", "k8s.io/component-base"},
		allow: []string{"k8s.io/apiextensions-apiserver/pkg/apis"},
		why:   "definitions are read into their type, and nothing is done with them",
	},
	{
		in:    "./engine",
		never: []string{"./api", "./internal", "k8s.io", "sigs.k8s.io"},
		allow: []string{"sigs.k8s.io/structured-merge-diff"},
		why:   "engines are pure Go: whoever knows nothing of Kubernetes can read, test and reuse them",
	},
	{
		in:     "./engine",
		except: []string{"./engine/fields"},
		never:  []string{"sigs.k8s.io/structured-merge-diff"},
		why:    "managedFields are the business of engine/fields alone",
	},
	{
		in:     "./engine",
		except: []string{"./engine/gang", "./engine/ledger", "./engine/victims"},
		direct: []string{"context", "math/rand", "net/http", "os", "time"},
		why:    "engines do no I/O and do not wait; time and randomness are arguments",
	},
	{
		in:     "./engine/gang",
		direct: []string{"math/rand", "net/http", "os", "time"},
		why:    "it hands a context on to the World that it asks, and does no I/O itself",
	},
	{
		in:     "./engine/victims",
		direct: []string{"math/rand", "net/http", "os", "time"},
		why:    "it hands a context on to the Cluster that it asks, and does no I/O itself",
	},
	{
		in:     "./engine",
		except: []string{"./engine/gang", "./engine/ledger", "./engine/victims"},
		apart:  true,
		why:    "engines do not know each other; decide brings them together",
	},
	{
		in:     "./engine/ledger",
		direct: []string{"context", "math/rand", "net/http", "os"},
		why:    "it compares the times that it is given, and does not ask for the time",
	},
	{
		in:    "./engine/ledger",
		never: []string{"./engine"},
		allow: []string{"./engine/ledger", "./engine/cidr"},
		why:   "a ledger is a pool of cidr with the names of what is taken",
	},
	{
		in:    "./engine/gang",
		never: []string{"./engine"},
		allow: []string{"./engine/gang", "./engine/podtree"},
		why:   "a gang is a tree of pods, and nothing else of the engines",
	},
	{
		in:    "./engine/victims",
		never: []string{"./engine"},
		allow: []string{"./engine/victims", "./engine/gang", "./engine/podtree"},
		why:   "victims are pods of gangs, and make room for one",
	},
	{
		in:    "./internal/identity",
		never: []string{notStd},
		allow: []string{"./internal/identity"},
		why:   "all agree on which object is meant: programs of stock synthesizers link it, too, which do without Kubernetes",
	},
	{
		in:    "./internal/decide",
		never: []string{"./internal", clientGo, controllerRuntime},
		allow: []string{"./internal/decide", "./internal/identity"},
		why:   "decisions are functions of their arguments, for the webhook, the controller and the command line alike",
	},
	{
		in:     "./internal/decide",
		direct: []string{"context", "math/rand", "net/http", "os"},
		why:    "decisions do no I/O; time and randomness are arguments",
	},
	{
		in:    "./internal/pki",
		never: []string{notStd},
		allow: []string{"./internal/pki"},
		why:   "keys are made with the standard library and nothing else",
	},
	{
		in:    "./internal/access",
		never: []string{"./api", "./engine", "./internal", controllerRuntime},
		allow: []string{"./internal/access"},
		why:   "who may call is a question about callers, not about what is called",
	},
	{
		in:    "./internal/fence",
		never: []string{"./api", "./engine", "./internal", controllerRuntime},
		allow: []string{"./internal/fence"},
		why:   "it looks at requests about one lease, whatever else the process does",
	},
	{
		in:    "./internal/kube",
		never: []string{"./internal", "./engine"},
		allow: []string{"./internal/kube"},
		why:   "the toolbox is below everything that uses it",
	},
	{
		in:    "./internal/view",
		never: []string{"./internal"},
		allow: []string{"./internal/view", "./internal/kube", "./internal/decide/poolblocks"},
		why:   "a view shows what is there; others decide on it",
	},
	{
		in:    "./internal/ownership",
		never: []string{"./internal"},
		allow: []string{"./internal/ownership", "./internal/kube"},
		why:   "it carries out what engine/fields plans; who wants it for what is not its business",
	},
	{
		in:    "./internal/manifest",
		never: []string{"./internal", "./engine", clientGo, controllerRuntime},
		allow: []string{"./internal/manifest"},
		why:   "reading files needs no cluster and no opinion on what they say",
	},
	{
		in:    "./internal/krm",
		never: []string{"./internal", "./engine", clientGo, controllerRuntime},
		allow: []string{"./internal/krm", "./internal/identity"},
		why:   "a protocol is a function of bytes: whoever runs programs, and however, speaks it",
	},
	{
		in:    "./internal/stock",
		never: []string{"./api", "./internal", "./engine", clientGo, controllerRuntime, "k8s.io/api", "k8s.io/apimachinery"},
		allow: []string{"./internal/stock", "./internal/manifest", "./internal/identity"},
		why:   "a renderer is a function of files and inputs, in a small image, and another module links it with other versions of Kubernetes",
	},
	{
		in:     "./internal/stock",
		except: []string{"./internal/stock/kustomize"},
		never:  []string{"sigs.k8s.io/kustomize"},
		why:    "whoever delivers plain manifests or a chart does without kustomize",
	},
	{
		in:     "./internal/krm",
		direct: []string{"context", "math/rand", "net/http", "os", "time"},
		why:    "a protocol is a function of bytes: whoever runs programs, and however, speaks it",
	},
	{
		in:    "./internal/executor",
		never: []string{"./internal", "./engine", clientGo, controllerRuntime},
		allow: []string{"./internal/executor"},
		why:   "it runs a program and brings back what that wrote; what it means is read by others",
	},
	{
		in:    "./internal/synthesis",
		never: []string{"./internal", "./engine"},
		allow: []string{"./internal/synthesis", "./internal/decide", "./internal/kube", "./internal/krm", "./internal/identity", "./internal/executor", "./engine/fields"}, // decide/delivery reads scopes
		why:   "it runs one synthesis; who began it, and where it runs, is not its business",
	},
	{
		in:    "./internal/publisher",
		never: []string{"./internal", "./engine", controllerRuntime + "/pkg/manager"},
		allow: []string{"./internal/publisher", "./internal/synthesis", "./internal/decide", "./internal/kube", "./internal/krm", "./internal/identity", "./internal/executor", "./engine/fields"},
		why:   "it is copied into every pod of a synthesis, so it is small",
	},
	{
		in:    "./internal/controller",
		never: []string{"./internal"},
		allow: []string{"./internal/controller", "./internal/decide", "./internal/view", "./internal/ownership", "./internal/kube", "./internal/krm", "./internal/identity", "./internal/executor", "./internal/synthesis"},
		why:   "a controller gathers, asks decide, and applies",
	},
	{
		in:    "./internal/webhook",
		never: []string{"./internal"},
		allow: []string{"./internal/webhook", "./internal/decide", "./internal/view", "./internal/kube", "./internal/pki"},
		why:   "a webhook decodes, asks decide, and answers",
	},
	{
		in:    "./internal/cli",
		never: []string{"./internal"},
		allow: []string{"./internal/cli", "./internal/decide", "./internal/view", "./internal/ownership", "./internal/kube", "./internal/manifest", "./internal/krm", "./internal/identity", "./internal/executor"},
		why:   "the commands enter at decide, as webhooks and controllers do, not through them",
	},
	{
		in:    "./internal/manager",
		never: []string{"./internal/cli", "./internal/controlplane", "./internal/manifest", "./internal/scheduler"},
		why:   "the manager runs in clusters that somebody else made",
	},
	{
		in:    "./internal/scheduler",
		never: []string{"./internal"},
		allow: []string{"./internal/scheduler", "./internal/decide", "./internal/view", "./internal/kube", "./internal/fence"},
		why:   "the scheduler places pods; everything else is done without it",
	},
	{
		in:     "./",
		except: []string{"./internal/scheduler/schedulertest", "./internal/scheduler/testcluster"},
		never:  []string{"./internal/scheduler/schedulertest", "./internal/scheduler/testcluster"},
		why:    "only tests of the scheduler need them",
	},
	{
		in:    "./internal/controlplane",
		never: []string{"./api", "./engine", "./internal", controllerRuntime},
		allow: []string{"./internal/controlplane", "./internal/pki"},
		why:   "a control plane is Kubernetes and no more; cmd tells it what else to run",
	},
	{
		in:     "./",
		except: []string{"./internal/controlplane/component", "./internal/scheduler", "./cmd/arbor", "./cmd/arbor-scheduler"},
		never:  []string{kubernetes, kubectl},
		why:    "Kubernetes itself costs a hundred megabytes and ten minutes of building",
	},
	{
		in:     "./",
		except: []string{"./internal/controlplane/component", "./cmd/arbor"},
		never:  []string{etcd, kwok},
		why:    "only the embedded control plane needs them",
	},
	{
		in:    "./cmd/arbor-manager",
		never: []string{"./internal/cli", "./internal/controlplane", kubernetes, kubectl, etcd, kwok},
		why:   "it is the small binary of the image",
	},
	{
		in:    "./cmd/arbor-executor",
		never: []string{"./internal/manager", "./internal/controller", "./internal/cli", controllerRuntime + "/pkg/manager", kubernetes, kubectl, etcd, kwok},
		why:   "it is copied into every pod of a synthesis, so it is small",
	},
	{
		in:     "./",
		except: []string{"./test", "./bench"},
		never:  []string{"./cmd", "./test", "./bench"},
		why:    "nothing depends on the outermost ring",
	},
	{
		in:     "./",
		except: []string{"./test", "./bench"},
		tests:  []string{"./cmd", "./test", "./bench"},
		allow:  []string{"./test/cluster"},
		why:    "tests borrow a cluster, and nothing else of the outermost ring",
	},
	{
		in:    "./test",
		never: []string{"./cmd", "./bench"},
		tests: []string{"./cmd", "./bench"},
		why:   "tests run the binaries, and are not measured",
	},
	{
		in:    "./bench",
		never: []string{"./cmd", "./test"},
		tests: []string{"./cmd", "./test"},
		allow: []string{"./test/cluster"},
		why:   "benchmarks borrow a cluster, and nothing else of the outermost ring",
	},
}

// planned are folders that rules name before they exist.
var planned = []string{"./bench", "./cmd/arbor-scheduler", "./internal/scheduler", "./internal/view"}

func TestImports(t *testing.T) {
	for _, v := range check(load(t), rules) {
		t.Error(v)
	}
}

// TestRulesName guards against rules that hold because of a typing error: what
// they name must be there to be found.
func TestRulesName(t *testing.T) {
	g := load(t)
	known := map[string]bool{notStd: true, "./": true}
	for _, name := range planned {
		known[name] = true
	}
	for p := range g {
		for p = short(p); p != "." && p != "./" && !known[p]; p = folder(p) {
			known[p] = true
		}
	}

	for i, r := range rules {
		for _, name := range r.names() {
			if !known[name] {
				t.Errorf("rule %d (%s) names %s, which does not exist", i, r.why, name)
			}
		}
	}
}

// folder is the path above p, in the short form.
func folder(p string) string {
	if up := path.Dir(p); up != "." && isOurs(p) {
		return "./" + up
	}

	return path.Dir(p)
}

// TestRulesCatch breaks every rule in every way that it forbids.
func TestRulesCatch(t *testing.T) {
	const culprit, between = "culprit", "example.com/between"
	for i, r := range rules {
		bad := long(r.in + "/" + culprit)
		broken := map[string]graph{}
		for _, name := range r.never {
			if name == notStd {
				name = "example.com/anything"
			}
			broken["reached "+name] = graph{bad: {Imports: []string{between}}, between: {Imports: []string{long(name) + "/" + culprit}}}
		}
		for _, name := range r.direct {
			broken["imported "+name] = graph{bad: {Imports: []string{long(name)}}}
		}
		for _, name := range r.tests {
			broken["tested "+name] = graph{bad: {TestImports: []string{long(name) + "/" + culprit}}}
		}
		if r.apart {
			broken["sibling"] = graph{bad: {Imports: []string{long(r.in + "/sibling")}}}
		}
		if len(broken) == 0 {
			t.Errorf("rule %d (%s) forbids nothing", i, r.why)
		}

		for how, g := range broken {
			t.Run(fmt.Sprintf("%d/%s", i, how), func(t *testing.T) {
				if len(check(g, []rule{r})) == 0 {
					t.Errorf("%s is allowed in %s, but: %s", how, r.in, r.why)
				}
			})
		}
	}
}
