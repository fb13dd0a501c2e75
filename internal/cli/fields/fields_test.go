package fields

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show/owners"
)

const initContainers = "spec.template.spec.initContainers"

// saved is an object of testdata as a file to read.
func saved(name string) string { return filepath.Join("testdata", name+".yaml") }

// having finds objects by KIND/NAME as a cluster would.
func having(objects ...map[string]any) finder {
	return func(_ context.Context, _ *genericclioptions.ConfigFlags, _ io.Writer, s search) ([]map[string]any, error) {
		o := ownersOptions{args: s.args, selector: s.selector}

		wanted, err := o.filter(s.namespace)
		if err != nil {
			return nil, err
		}

		var out []map[string]any

		for _, obj := range objects {
			if wanted(obj) {
				out = append(out, obj)
			}
		}

		return out, nil
	}
}

// fieldsOf is the command on objects of testdata.
func fieldsOf(find finder) func(genericiooptions.IOStreams) *cobra.Command {
	return func(s genericiooptions.IOStreams) *cobra.Command { return New(s, find, nil) }
}

const webTree = `Deployment shop/web  apps/v1

MANAGER                          OPERATION   VERSION   FIELDS   TIME
eno                              Apply       apps/v1   3        2026-03-02T10:00:00Z
kube-controller-manager/scale    Update      apps/v1   1
Go-http-client                   Update      apps/v1   15       2026-03-01T09:00:00Z
kube-controller-manager/status   Update      apps/v1   2        2026-03-02T10:00:05Z

├─ metadata                                       Go-http-client
│  └─ labels                                      Go-http-client
│     └─ app: web                                 Go-http-client
├─ spec
│  ├─ replicas: 4                                 kube-controller-manager/scale
│  ├─ selector: {"matchLabels":{"app":"web"}}     Go-http-client
│  └─ template
│     └─ spec
│        ├─ containers                            Go-http-client
│        │  └─ [name=web]                         Go-http-client
│        │     ├─ image: web:1                    Go-http-client
│        │     ├─ name: web                       Go-http-client
│        │     └─ ports                           Go-http-client
│        │        └─ [containerPort=80,protocol=TCP]    Go-http-client
│        │           ├─ containerPort: 80         Go-http-client
│        │           └─ protocol: TCP             Go-http-client
│        ├─ dnsPolicy: ClusterFirst             - nobody
│        └─ initContainers                      . Go-http-client
│           └─ [name=base-os-bash]              ~ eno, Go-http-client
│              ├─ command: ["sh","-c","until …    Go-http-client
│              ├─ image: base:1                   eno
│              ├─ name: base-os-bash            + eno, Go-http-client
│              └─ resources: {}                   Go-http-client
└─ status                                         kube-controller-manager/status
   ├─ observedGeneration: 3                       kube-controller-manager/status
   └─ readyReplicas: 4                            kube-controller-manager/status

+ co-owned   ~ split: parts belong to others than the rest   - nobody's
. the field itself, not all that is in it
`

const gateHeader = `Gate north  example.com/v1

MANAGER    OPERATION   VERSION          FIELDS   TIME
platform   Apply       example.com/v1   8        2026-03-01T09:00:00Z
team       Apply       example.com/v1   5        2026-03-02T10:00:00Z

`

func TestFieldsShow(t *testing.T) {
	tests := map[string]struct {
		reason string
		locale string
		args   []string
		want   clitest.Result
	}{
		"Deployment": {
			reason: "every field has its owner beside it, in 80 columns",
			args:   []string{"-f", saved("web")},
			want:   clitest.Result{Out: webTree},
		},
		"Cluster": {
			reason: "what is in a cluster looks the same",
			args:   []string{"deploy/web", "-n", "shop"},
			want:   clitest.Result{Out: webTree},
		},
		"Custom": {
			reason: "items of sets and of lists with several keys are known by those, also without UTF-8",
			locale: "C",
			args:   []string{"-f", saved("gate"), "--width", "60"},
			want: clitest.Result{Out: gateHeader + `|- metadata                       - nobody
|  ` + "`" + `- labels                      - nobody
|     ` + "`" + `- site: north              - nobody
` + "`" + `- spec
   |- allow
   |  |- [=ada]                     platform
   |  |- [=bob]                   + platform, team
   |  ` + "`" + `- [=eve]                     team
   |- hours: ["8-12","13-17"]       platform
   |- open: true                  - nobody
   ` + "`" + `- rules
      |- [port=22,protocol=TCP]   ?
      |  ` + "`" + `- note                  ? platform
      ` + "`" + `- [port=443,protocol=TCP]  ~ platform, team
         |- note: "443"             platform
         |- port: 443             + platform, team
         ` + "`" + `- protocol: TCP         + platform, team

+ co-owned   ~ split: parts belong to others than the rest
- nobody's   ? held, but not in the object
`},
		},
		"Scope": {
			reason: "a part is drawn by its path",
			args:   []string{"-f", saved("gate"), "--scope", "spec.allow"},
			want: clitest.Result{Out: gateHeader + `└─ spec.allow
   ├─ [=ada]    platform
   ├─ [=bob]  + platform, team
   └─ [=eve]    team

+ co-owned
`},
		},
		"Lifted": {
			reason: "what can only be held as a whole is drawn as that",
			args:   []string{"-f", saved("gate"), "--scope", "spec.hours[=8-12]"},
			want: clitest.Result{Out: strings.Replace(gateHeader, "v1\n", "v1\nspec.hours can only be held as a whole\n", 1) +
				"└─ spec.hours: [\"8-12\",\"13-17\"]    platform\n"},
		},
		"Manager": {
			reason: "only what a manager has a part in",
			args:   []string{"-f", saved("gate"), "--manager", "team"},
			want: clitest.Result{Out: gateHeader + `└─ spec
   ├─ allow
   │  ├─ [=bob]                   + platform, team
   │  └─ [=eve]                     team
   └─ rules
      └─ [port=443,protocol=TCP]  ~ platform, team
         ├─ port: 443             + platform, team
         └─ protocol: TCP         + platform, team

+ co-owned   ~ split: parts belong to others than the rest
`},
		},
		"Depth": {
			reason: "what is too deep is counted",
			args:   []string{"-f", saved("gate"), "--depth", "2", "--scope", "spec"},
			want: clitest.Result{Out: gateHeader + `└─ spec
   ├─ allow
   │  └─ … 3 more below
   ├─ hours: ["8-12","13-17"]    platform
   ├─ open: true               - nobody
   └─ rules
      └─ … 6 more below

- nobody's
`},
		},
		"Table": {
			reason: "one line for each thing that comes and goes as one",
			args:   []string{"-f", saved("gate"), "-o", "table", "--scope", "spec"},
			want: clitest.Result{Out: `FIELD                                        STATE     OWNERS           VALUE
spec.allow[=ada]                             Sole      platform
spec.allow[=bob]                             CoOwned   platform, team
spec.allow[=eve]                             Sole      team
spec.hours                                   Sole      platform         ["8-12","13-17"]
spec.open                                    Unowned                    true
spec.rules[port=443,protocol=TCP]            Split     platform, team
spec.rules[port=443,protocol=TCP].note       Sole      platform         "443"
spec.rules[port=443,protocol=TCP].port       CoOwned   platform, team   443
spec.rules[port=443,protocol=TCP].protocol   CoOwned   platform, team   TCP
`},
		},
		"Several": {
			reason: "then the table says of which object",
			args:   []string{"-f", saved("web"), "-f", saved("gate"), "-o", "table", "--scope", "metadata.labels"},
			want: clitest.Result{Out: `OBJECT                FIELD                  STATE     OWNERS           VALUE
Deployment shop/web   metadata.labels.app    Sole      Go-http-client   web
Gate north            metadata.labels.site   Unowned                    north
`},
		},
		"Secret": {
			reason: "what is secret is not shown, nor the copy that kubectl keeps of it",
			args:   []string{"-f", saved("token"), "--width", "120", "--scope", "*"},
			want: clitest.Result{Out: `Secret shop/token  v1

MANAGER                     OPERATION   VERSION   FIELDS   TIME
kubectl-client-side-apply   Update      v1        5        2026-03-01T09:00:00Z

├─ data                                                                   kubectl-client-side-apply
│  └─ key: (not shown)                                                    kubectl-client-side-apply
├─ metadata                                                               kubectl-client-side-apply
│  └─ annotations                                                         kubectl-client-side-apply
│     └─ kubectl.kubernetes.io/last-applied-configuration: (not shown)    kubectl-client-side-apply
└─ type: Opaque                                                           kubectl-client-side-apply
`},
		},
		"Untracked": {
			reason: "a cluster may not know",
			args:   []string{"cm/bare", "-n", "shop"},
			want: clitest.Result{Out: `ConfigMap shop/bare  v1
it has no managedFields: the server does not know who owns what

└─ data     - nobody
   └─ a: b  - nobody

- nobody's
`},
		},
		"UntrackedFile": {
			reason: "a file was saved without them",
			args:   []string{"-f", saved("bare")},
			want: clitest.Result{
				ErrOut: saved("bare") + ":3: error: ConfigMap shop/bare: cannot tell who owns what: there is no metadata.managedFields (save objects with kubectl get --show-managed-fields -o yaml)\n",
				Code:   command.ExitBlind,
			},
		},
		"NoScope": {
			reason: "a part that is not there is told",
			args:   []string{"-f", saved("gate"), "--scope", "spec.closed"},
			want:   clitest.Result{Code: command.ExitBlind, Err: "spec.closed is not in Gate north: leave out --scope to see what is there"},
		},
		"NoManager": {
			reason: "the others are named",
			args:   []string{"-f", saved("gate"), "--manager", "eno"},
			want:   clitest.Result{Code: command.ExitBlind, Err: `manager "eno" has nothing in Gate north: there is only platform, team`},
		},
		"NothingThere": {
			reason: "a manager may have nothing in a part",
			args:   []string{"-f", saved("gate"), "--manager", "team", "--scope", "spec.hours"},
			want:   clitest.Result{Code: command.ExitBlind, Err: `manager "team" has nothing there in Gate north: leave out --scope to see what it has`},
		},
		"BadScope": {
			reason: "the place of the mistake is told",
			args:   []string{"-f", saved("gate"), "--scope", "spec.rules[0]"},
			want: clitest.Result{
				Code: command.ExitBlind,
				Err:  `cannot read scope "spec.rules[0]" at position 12: there is "0" where a key is expected: items are known by what is in them, like [name=web], and not by their position`,
			},
		},
		"NoSuchName": {
			reason: "arguments choose among what is in files, too",
			args:   []string{"deploy/other", "-f", saved("web")},
			want:   clitest.Result{Code: command.ExitBlind, Err: "nothing was found in the given files: ask for another kind, name or labels"},
		},
		"NoArguments": {
			reason: "something must be asked for",
			want: clitest.Result{Code: command.ExitBlind, Err: "no object to look at: name one, like deploy/web, or a kind and labels, like deploy -l app=web, or a file with -f\n" +
				"See 'fields show --help' for usage"},
		},
		"Format": {
			reason: "formats are known by name",
			args:   []string{"-f", saved("web"), "-o", "wide"},
			want:   clitest.Result{Code: command.ExitBlind, Err: `unknown output format "wide": use one of tree, table, name, json, yaml, jsonpath=TEMPLATE`},
		},
	}

	find := having(clitest.Stored(t, saved("web")), clitest.Stored(t, saved("gate")), clitest.Stored(t, saved("bare")))

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", "/dev/null")
			t.Setenv("COLUMNS", "")
			t.Setenv("LC_ALL", "C.UTF-8")

			if tc.locale != "" {
				t.Setenv("LC_ALL", tc.locale)
			}

			got := clitest.Run(t, fieldsOf(find), "", append([]string{"show"}, tc.args...)...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Colour adds to what is said without it.
func TestFieldsColour(t *testing.T) {
	thing, err := owners.New(clitest.Stored(t, saved("gate")))
	if err != nil {
		t.Fatal(err)
	}

	all := []*owners.Tree{owners.NewTree(thing, fields.MustParseScope("spec"), "", true)}
	paint := func(s render.Style) string {
		var out strings.Builder

		drawOwners(&out, all, 0, 80, s)

		return out.String()
	}

	plain, coloured := paint(render.Style{Unicode: true}), paint(render.Style{Unicode: true, Colour: true})
	if strings.Contains(plain, "\x1b") {
		t.Errorf("got %q, want no colour", plain)
	}

	if got := regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(coloured, ""); got != plain {
		t.Errorf("colour changes the text (-plain +coloured):\n%s", cmp.Diff(plain, got))
	}

	for _, want := range []string{
		"\x1b[36mplatform\x1b[0m   Apply", "\x1b[32mteam\x1b[0m       Apply", // each manager has its own
		"\x1b[36m[=ada]\x1b[0m",                                  // and so have its fields
		"\x1b[33m+\x1b[0m \x1b[36mplatform\x1b[0m, \x1b[32mteam", // what is shared stands out
		"\x1b[2mopen: true\x1b[0m",                               // and what is nobody's stands back
	} {
		if !strings.Contains(coloured, want) {
			t.Errorf("%q is not in\n%s", want, coloured)
		}
	}
}

func TestFieldsShowMachine(t *testing.T) {
	r := clitest.Run(t, fieldsOf(nil), "", "show", "-f", saved("gate"), "--scope", "spec.rules", "-o", "json")

	var got owners.OwnersView
	if err := json.Unmarshal([]byte(r.Out), &got); err != nil {
		t.Fatal(err)
	}

	platform := fields.Identity{Manager: "platform", Operation: fields.Apply}
	team := fields.Identity{Manager: "team", Operation: fields.Apply}
	item := "spec.rules[port=443,protocol=TCP]"
	nobody, both := []fields.Identity{}, []fields.Identity{platform, team}
	want := owners.OwnersView{Objects: []owners.OwnedView{{
		Object: identity.Ref{APIVersion: "example.com/v1", Kind: "Gate", Name: "north"},
		Managers: []owners.ManagerView{
			{Manager: "platform", Operation: fields.Apply, APIVersion: "example.com/v1", Time: "2026-03-01T09:00:00Z", Fields: 8},
			{Manager: "team", Operation: fields.Apply, APIVersion: "example.com/v1", Time: "2026-03-02T10:00:00Z", Fields: 5},
		},
		Fields: []owners.FieldView{
			{Path: "spec.rules", Kind: fields.Items, State: fields.Split, Holders: nobody, Owners: both},
			{Path: "spec.rules[port=22,protocol=TCP]", Kind: fields.Leaf, State: fields.Unowned, Holders: nobody, Owners: nobody, Missing: true},
			{Path: "spec.rules[port=22,protocol=TCP].note", Kind: fields.Leaf, State: fields.Sole, Holders: both[:1], Owners: both[:1], Missing: true},
			{Path: item, Kind: fields.Struct, State: fields.Split, Holders: both, Owners: both},
			{Path: item + ".note", Kind: fields.Leaf, State: fields.Sole, Holders: both[:1], Owners: both[:1], Value: "443"},
			{Path: item + ".port", Kind: fields.Leaf, State: fields.CoOwned, Holders: both, Owners: both, Value: 443.0},
			{Path: item + ".protocol", Kind: fields.Leaf, State: fields.CoOwned, Holders: both, Owners: both, Value: "TCP"},
		},
	}}}

	if diff := cmp.Diff(want, got); diff != "" || r.Code != 0 {
		t.Errorf("exit %d (-want +got):\n%s", r.Code, diff)
	}
}

func TestFieldsLabels(t *testing.T) {
	set := func(manager string, op fields.Operation, sub, version string) fields.Entry {
		return fields.Entry{Manager: manager, Operation: op, Subresource: sub, APIVersion: version}
	}
	got := owners.LabelEntries(fields.Entries{
		set("eno", fields.Apply, "", "v1"), set("kubectl", fields.Apply, "", "v1"), set("kubectl", fields.Update, "", "v1"),
		set("agent", fields.Update, "", "v1"), set("agent", fields.Update, "", "v2"), set("agent", fields.Update, "status", "v2"), set("", fields.Update, "", "v1"),
	})
	want := []string{"eno", "kubectl (Apply)", "kubectl (Update)", "agent (Update v1)", "agent (Update v2)", "agent/status", "(no name)"}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries have the shortest names that tell them apart (-want +got):\n%s", diff)
	}
}

func TestFieldsNames(t *testing.T) {
	web := identity.Ref{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	tests := map[string]struct {
		reason string
		args   []string
		want   bool
		err    string
	}{
		"None":    {reason: "then everything is meant", want: true},
		"Slash":   {reason: "the usual way", args: []string{"deployment/web"}, want: true},
		"Short":   {reason: "as kubectl has it", args: []string{"deploy/web"}, want: true},
		"Plural":  {reason: "with a group", args: []string{"Deployments.apps/web"}, want: true},
		"Group":   {reason: "of another group", args: []string{"deployments.example.com/web"}},
		"Apart":   {reason: "a kind and names", args: []string{"deploy", "api", "web"}, want: true},
		"Kind":    {reason: "all of a kind", args: []string{"deploy"}, want: true},
		"Other":   {reason: "another kind", args: []string{"sts/web"}},
		"Several": {reason: "one of them is enough", args: []string{"svc/web", "deploy/web"}, want: true},
		"Mixed":   {reason: "kubectl does not know either what is meant", args: []string{"deploy/web", "api"}, err: `cannot read "api": write KIND/NAME, like deploy/web`},
		"NoName":  {reason: "a half of it is none", args: []string{"deploy/"}, err: `cannot read "deploy/": write KIND/NAME, like deploy/web`},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			names, err := parseNames(tc.args)
			if text := fmt.Sprint(err); err != nil && text != tc.err || err == nil && tc.err != "" {
				t.Fatalf("%s: got error %v, want %q", tc.reason, err, tc.err)
			}

			if got := isNamed(web, names); err == nil && got != tc.want {
				t.Errorf("%s: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// Kinds are looked up in the cluster, and managedFields are asked for.
func TestFieldsFind(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null")
	t.Setenv("LC_ALL", "C.UTF-8")

	gate := clitest.Stored(t, saved("gate"))
	answers := map[string]any{
		"/api": map[string]any{"kind": "APIVersions", "versions": []string{"v1"}},
		"/apis": map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{map[string]any{
			"name": "example.com", "versions": []any{map[string]any{"groupVersion": "example.com/v1", "version": "v1"}},
			"preferredVersion": map[string]any{"groupVersion": "example.com/v1", "version": "v1"},
		}}},
		"/api/v1": map[string]any{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{}},
		"/apis/example.com/v1": map[string]any{"kind": "APIResourceList", "groupVersion": "example.com/v1", "resources": []any{map[string]any{
			"name": "gates", "singularName": "gate", "namespaced": true, "kind": "Gate", "shortNames": []string{"gt"}, "verbs": []string{"get", "list"},
		}}},
		"/apis/example.com/v1/namespaces/default/gates/north": gate,
		"/apis/example.com/v1/namespaces/default/gates?labelSelector=site%3Dnorth&limit=500": map[string]any{
			"kind": "GateList", "apiVersion": "example.com/v1", "metadata": map[string]any{}, "items": []any{gate},
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")

		path := r.URL.Path
		if r.URL.Query().Has("labelSelector") {
			path = r.URL.String()
		}

		if answer, ok := answers[path]; ok {
			_ = json.NewEncoder(w).Encode(answer)
		} else {
			clitest.Refuse(w, http.StatusNotFound, "NotFound")
		}
	}))
	t.Cleanup(server.Close)

	tests := map[string]struct {
		reason string
		args   []string
		code   int
		want   string
	}{
		"Name":     {reason: "one by its short name", args: []string{"gt/north"}, want: "Gate north  example.com/v1\n"},
		"Selector": {reason: "those with labels", args: []string{"gates", "-l", "site=north"}, want: "Gate default/north  example.com/v1\n"},
		"Missing":  {reason: "what is not there was looked for", args: []string{"gate/south"}, code: command.ExitBlind, want: "cannot find gate/south: because"},
		"Kind":     {reason: "what is unknown was not", args: []string{"door/north"}, code: command.ExitBlind, want: `cannot find door/north: the server doesn't have a resource type "door"`},
		"Nowhere":  {reason: "no answer names the server", args: []string{"gate/north", "--server", "http://127.0.0.1:1"}, code: command.ExitBlind, want: "cannot find gate/north: no answer from http://127.0.0.1:1: "},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"show", "--cache-dir", t.TempDir(), "--server", server.URL}, tc.args...)

			got := clitest.Run(t, fieldsOf(Find), "", args...)
			if got.Code != tc.code || !strings.HasPrefix(got.Out+got.Err, tc.want) {
				t.Errorf("%s: got %+v, want exit %d and %q", tc.reason, got, tc.code, tc.want)
			}
		})
	}
}

func TestFieldsCheck(t *testing.T) {
	const head = "KIND         NAMESPACE   NAME   OWNED   OTHER MANAGERS\n"

	tests := map[string]struct {
		reason string
		args   []string
		want   clitest.Result
	}{
		"Others": {
			reason: "somebody else has a part of it",
			args:   []string{"-f", saved("web"), "--scope", initContainers, "--manager", "eno"},
			want: clitest.Result{
				Out: head + "Deployment   shop        web    no      Go-http-client\n", Code: command.ExitFound,
				ErrOut: "eno owns all of spec.template.spec.initContainers in 0 of 1 object\n",
			},
		},
		"Fully": {
			reason: "all that is owned is the manager's",
			args:   []string{"-f", saved("web"), "--scope", initContainers + "[*].image", "--manager", "eno"},
			want: clitest.Result{
				Out:    "KIND         NAMESPACE   NAME   OWNED   OTHER MANAGERS\nDeployment   shop        web    yes\n",
				ErrOut: "eno owns all of spec.template.spec.initContainers[*].image in 1 of 1 object\n",
			},
		},
		"NotApplied": {
			reason: "what a manager wrote otherwise is not what it applies",
			args:   []string{"-f", saved("web"), "--scope", "spec.selector", "--manager", "Go-http-client"},
			want: clitest.Result{
				Out:  "KIND         NAMESPACE   NAME   OWNED                          OTHER MANAGERS\nDeployment   shop        web    no, not all of it is applied\n",
				Code: command.ExitFound, ErrOut: "Go-http-client owns all of spec.selector in 0 of 1 object\n",
			},
		},
		"Nobody": {
			reason: "what nobody owns is not owned",
			args:   []string{"-f", saved("web"), "--scope", "spec.template.spec.dnsPolicy", "--manager", "eno"},
			want: clitest.Result{
				Out:  "KIND         NAMESPACE   NAME   OWNED                OTHER MANAGERS\nDeployment   shop        web    no, nobody owns it\n",
				Code: command.ExitFound, ErrOut: "eno owns all of spec.template.spec.dnsPolicy in 0 of 1 object\n",
			},
		},
		"Subresource": {
			reason: "what was written through a subresource is not nobody's",
			args:   []string{"-f", saved("web"), "--scope", "spec.replicas", "--manager", "eno"},
			want: clitest.Result{
				Out:  "KIND         NAMESPACE   NAME   OWNED                                      OTHER MANAGERS\nDeployment   shop        web    no, kube-controller-manager/scale has it\n",
				Code: command.ExitFound, ErrOut: "eno owns all of spec.replicas in 0 of 1 object\n",
			},
		},
		"Absent": {
			reason: "what is not there cannot be owned",
			args:   []string{"deploy/web", "-n", "shop", "--scope", "spec.paused", "--manager", "eno"},
			want: clitest.Result{
				Out:  "KIND         NAMESPACE   NAME   OWNED       OTHER MANAGERS\nDeployment   shop        web    not there\n",
				Code: command.ExitFound, ErrOut: "eno owns all of spec.paused in 0 of 1 object\n",
			},
		},
		"JSON": {
			reason: "lists are lists, also when they are empty",
			args:   []string{"-f", saved("web"), "--scope", "spec.replicas", "--manager", "eno", "-o", "json"},
			want: clitest.Result{Code: command.ExitFound, Out: `{
  "apiVersion": "cli.arbor.dev/v1",
  "kind": "FieldOwnership",
  "checks": [
    {
      "object": {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "namespace": "shop",
        "name": "web"
      },
      "scope": "spec.replicas",
      "manager": "eno",
      "scopeExists": true,
      "fullyOwned": false,
      "otherManagers": [],
      "ownUpdates": false,
      "subresources": [
        {
          "manager": "kube-controller-manager",
          "operation": "Update",
          "subresource": "scale",
          "apiVersion": "apps/v1"
        }
      ]
    }
  ],
  "summary": {
    "checked": 1,
    "fullyOwned": 0
  }
}
`},
		},
		"NoManager": {reason: "somebody must be asked about", args: []string{"-f", saved("web")}, want: clitest.Result{Code: command.ExitBlind, Err: "no manager to check: name one with --manager"}},
		"BadScope": {
			reason: "the place of the mistake is told", args: []string{"-f", saved("web"), "--manager", "eno", "--scope", "spec["},
			want: clitest.Result{Code: command.ExitBlind, Err: `cannot read scope "spec[" at position 6: the text ends where a key, like name=web, "*", a quoted name, or "=" and a value is expected`},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", "/dev/null")

			got := clitest.Run(t, fieldsOf(having(clitest.Stored(t, saved("web")))), "", append([]string{"check"}, tc.args...)...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
