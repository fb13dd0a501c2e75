package delivery

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/show/compositions"
)

// noon is when everything in these tests is looked at.
var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// documents are objects as a cluster answers with them.
func documents(t *testing.T, text string) []map[string]any {
	t.Helper()

	var all []map[string]any

	for one := range strings.SplitSeq(text, "\n---\n") {
		var v map[string]any
		if err := yaml.Unmarshal([]byte(one), &v); err != nil {
			t.Fatal(err)
		}

		all = append(all, whole(v).(map[string]any))
	}

	return all
}

// whole has whole numbers as integers, as clients read them.
func whole(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = whole(v[key])
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case float64:
		return int64(v)
	}

	return v
}

// delivering is the command on objects in memory.
func delivering(t *testing.T) func(genericiooptions.IOStreams) *cobra.Command {
	t.Helper()
	t.Setenv("KUBECONFIG", "/dev/null")

	objects := documents(t, shop)

	return func(s genericiooptions.IOStreams) *cobra.Command {
		return New(s, clitest.Cluster(clitest.Holding(objects...)), reaching(&serverInMemory{}), func() time.Time { return noon })
	}
}

const shop = `
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: shop, name: web, resourceVersion: "7"}
spec: {synthesizer: {name: web-synth}}
status:
  simplified: {status: Reconciling}
  currentSynthesis:
    uuid: 22222222-aaaa-4000-8000-000000000000
    initialized: "2026-03-02T11:00:00Z"
    synthesized: "2026-03-02T11:00:10Z"
    observedCompositionGeneration: 4
    observedSynthesizerGeneration: 2
    resourceSlices: [{name: web-2}]
  previousSynthesis:
    uuid: 11111111-aaaa-4000-8000-000000000000
    initialized: "2026-03-01T11:00:00Z"
    synthesized: "2026-03-01T11:00:10Z"
    reconciled: "2026-03-01T11:00:20Z"
    ready: "2026-03-01T11:01:00Z"
    observedCompositionGeneration: 3
    observedSynthesizerGeneration: 2
    resourceSlices: [{name: web-1}]
  history:
  - uuid: 11100000-aaaa-4000-8000-000000000000
    initialized: "2026-02-01T11:00:00Z"
    synthesized: "2026-02-01T11:00:10Z"
    reconciled: "2026-02-01T11:00:10Z"
    ready: "2026-02-01T11:00:10Z"
    observedCompositionGeneration: 1
    observedSynthesizerGeneration: 1
    resourceSlices: [{name: web-0}]
    results: [{severity: info, message: defaults were used}]
---
apiVersion: eno.azure.io/v1
kind: ResourceSlice
metadata: {namespace: shop, name: web-2}
spec:
  resources:
  - manifest: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"settings","annotations":{"eno.azure.io/readiness-group":"0"}},"data":{"a":"new"}}'
  - manifest: '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"db","annotations":{"eno.azure.io/readiness-group":"1"}}}'
  - manifest: '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web","annotations":{"eno.azure.io/readiness-group":"2"}}}'
  - manifest: '{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"web"}}'
  - manifest: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"old"}}'
    deleted: true
  - manifest: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"older"}}'
    deleted: true
status:
  resources:
  - {reconciled: true, ready: "2026-03-02T11:00:20Z"}
  - {reconciled: true}
  - {}
  - {reconciliationError: "Service \"web\" is invalid: spec.ports: Required value"}
  - {}
  - {reconciled: true, deleted: true}
---
apiVersion: eno.azure.io/v1
kind: ResourceSlice
metadata: {namespace: shop, name: web-1}
spec:
  resources:
  - manifest: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"settings"},"data":{"a":"old"}}'
  - manifest: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"old"}}'
status:
  resources: [{reconciled: true, ready: "2026-03-01T11:01:00Z"}, {reconciled: true, ready: "2026-03-01T11:01:00Z"}]
---
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: shop, name: proxy, annotations: {arbor-control.dev/rollback-to: 33333333-aaaa}}
spec: {synthesizer: {name: proxy}}
status:
  simplified: {status: Ready}
  currentSynthesis:
    uuid: 44444444-aaaa
    initialized: "2026-03-02T11:59:00Z"
    synthesized: "2026-03-02T11:59:00Z"
    reconciled: "2026-03-02T11:59:00Z"
    ready: "2026-03-02T11:59:00Z"
    rolledBackTo: 33333333-aaaa
---
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: store, name: api, ownerReferences: [{apiVersion: eno.azure.io/v1, kind: Symphony, name: all, uid: u}]}
spec: {synthesizer: {name: api}}
status:
  inFlightSynthesis:
    uuid: 55555555-aaaa
    initialized: "2026-03-02T11:59:30Z"
    results: [{severity: error, message: "no such\nregion"}]
---
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: store, name: ui, ownerReferences: [{apiVersion: eno.azure.io/v1, kind: Symphony, name: all, uid: u}]}
spec: {synthesizer: {name: ui}}
status:
  dependencyStatus: {blocked: true, blockedBy: [{name: api, reason: DependencyNotReady}]}
---
apiVersion: eno.azure.io/v1
kind: Symphony
metadata: {namespace: store, name: all}
`

const (
	shopSummary = "2 compositions: 1 Ready, 1 Reconciling; 6 resources: 1 gone, 1 being deleted, 1 error, 1 not ready, 1 ready, 1 waiting\n"
	webSummary  = "1 composition: 1 Reconciling; 6 resources: 1 gone, 1 being deleted, 1 error, 1 not ready, 1 ready, 1 waiting\n"
)

func TestDelivery(t *testing.T) {
	tests := map[string]struct {
		reason string
		locale string
		args   []string
		want   clitest.Result
	}{
		"Namespace": {
			reason: "one line for each composition, and under it what is not well",
			args:   []string{"-n", "shop"},
			want: clitest.Result{Out: `✔ shop/proxy  Ready, synthesizer proxy, 44444444 60s ago, 0 resources
   pinned to 33333333: nothing is synthesized until arbor compositions rollback proxy -n shop --resume

✗ shop/web                Reconciling, synthesizer web-synth, 22222222 60m ago, 6 resources
├─ ! Deployment shop/db   reconciled, not ready
├─ … Deployment shop/web  waiting for Deployment shop/db
├─ ✗ Service shop/web     error
│     Service "web" is invalid: spec.ports: Required value
└─ − ConfigMap shop/old   being deleted
`, ErrOut: shopSummary},
		},
		"Symphony": {
			reason: "compositions of a symphony hang under it, and the program's own words are shown",
			args:   []string{"-n", "store"},
			want: clitest.Result{Out: `Symphony store/all  synthesizing
├─ ✗ store/api      Synthesizing, synthesizer api
│     synthesizer: no such\nregion
└─ … store/ui       PendingSynthesis, synthesizer ui
      waits for composition store/api: DependencyNotReady
`, ErrOut: "2 compositions: 1 PendingSynthesis, 1 Synthesizing; 0 resources\n"},
		},
		"Name": {
			reason: "with a name, everything is drawn",
			args:   []string{"web", "-n", "shop"},
			want: clitest.Result{Out: `✗ shop/web                       Reconciling, synthesizer web-synth
├─ current 22222222              reconciling, begun 60m ago
│  ├─ ✔ ConfigMap shop/settings
│  ├─ ! Deployment shop/db       reconciled, not ready
│  ├─ … Deployment shop/web      waiting for Deployment shop/db
│  ├─ ✗ Service shop/web         error
│  │     Service "web" is invalid: spec.ports: Required value
│  ├─ − ConfigMap shop/old       being deleted
│  └─ ✔ ConfigMap shop/older     gone
└─ previous 11111111             ready, begun 25h ago
`, ErrOut: webSummary},
		},
		"Table": {
			reason: "a flat table has a line for each composition",
			args:   []string{"-A", "-o", "table"},
			want: clitest.Result{Out: `NAMESPACE   NAME    STATE              READY   SYNTHESIZER   SYMPHONY   SYNTHESIZED
shop        proxy   Ready              0/0     proxy                    60s
shop        web     Reconciling        2/6     web-synth                60m
store       api     Synthesizing               api           all
store       ui      PendingSynthesis           ui            all
`},
		},
		"Names": {
			reason: "names are for other commands",
			args:   []string{"-n", "shop", "-o", "name", "-l", "tier!=x"},
			want:   clitest.Result{Out: "composition.eno.azure.io/proxy\ncomposition.eno.azure.io/web\n"},
		},
		"Selector": {
			reason: "no composition has the label",
			args:   []string{"-n", "shop", "-l", "tier=x"},
			want:   clitest.Result{ErrOut: "No compositions found in shop namespace.\n"},
		},
		"Depth": {
			reason: "what is too deep is counted",
			args:   []string{"show", "web", "-n", "shop", "--depth", "1", "--exit-code"},
			want: clitest.Result{Out: `✗ shop/web  Reconciling, synthesizer web-synth
└─ … 8 more below
`, ErrOut: webSummary, Code: command.ExitFound},
		},
		"Explain": {
			reason: "errors come first, and each blocker with what to do",
			args:   []string{"explain", "web", "-n", "shop"},
			want: clitest.Result{Code: command.ExitFound, Out: `shop/web is not ready: Reconciling
  ✗ Service shop/web: Service "web" is invalid: spec.ports: Required value
    To do: correct the manifest in synthesizer web-synth or its inputs; compare with arbor compositions plan web -n shop
  ! Deployment shop/db: reconciled, not ready
    To do: see why it is not ready: kubectl describe deployment.apps/db -n shop
  ! ConfigMap shop/old: being deleted
    To do: see which finalizers are left: kubectl get configmap/old -n shop -o jsonpath={.metadata.finalizers}
  1 more object waits for these.
`},
		},
		"ExplainReady": {
			reason: "a ready composition is not an error",
			args:   []string{"explain", "proxy", "-n", "shop"},
			want:   clitest.Result{Out: "shop/proxy is ready.\n"},
		},
		"ExplainSeveral": {
			reason: "a failed program and a dependency are explained too",
			args:   []string{"explain", "api", "composition/ui", "-n", "store"},
			want: clitest.Result{Code: command.ExitFound, Out: `store/api is not ready: Synthesizing
  ✗ synthesizer: no such\nregion
    To do: correct synthesizer api or the inputs of the Composition; try it with arbor compositions render

store/ui is not ready: PendingSynthesis
  ! waits for composition store/api: DependencyNotReady
`},
		},
		"ExplainQuietly": {
			reason: "scripts may want the code of the command only",
			args:   []string{"explain", "ui", "-n", "store", "--exit-code=false", "-o", "jsonpath={.compositions[0].ready} {.kind}"},
			want:   clitest.Result{Out: "false CompositionExplanations\n"},
		},
		"Plain": {
			reason: "marks are one column wide without UTF-8 too",
			locale: "C",
			args:   []string{"web", "-n", "shop"},
			want: clitest.Result{Out: `x shop/web                       Reconciling, synthesizer web-synth
|- current 22222222              reconciling, begun 60m ago
|  |- + ConfigMap shop/settings
|  |- ! Deployment shop/db       reconciled, not ready
|  |- . Deployment shop/web      waiting for Deployment shop/db
|  |- x Service shop/web         error
|  |     Service "web" is invalid: spec.ports: Required value
|  |- - ConfigMap shop/old       being deleted
|  ` + "`" + `- + ConfigMap shop/older     gone
` + "`" + `- previous 11111111             ready, begun 25h ago
`, ErrOut: webSummary},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("LC_ALL", "C.UTF-8")

			if tc.locale != "" {
				t.Setenv("LC_ALL", tc.locale)
			}

			if diff := cmp.Diff(tc.want, clitest.Run(t, delivering(t), "", tc.args...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDeliveryEnds(t *testing.T) {
	tests := map[string]struct {
		reason string
		args   []string
		want   clitest.Result
	}{
		"Unknown": {
			reason: "a name that nothing has",
			args:   []string{"nowhere", "-n", "shop"},
			want:   clitest.Result{Code: command.ExitBlind, Err: `composition "nowhere" was not found in shop namespace: look in another namespace with -n, or in all of them with -A`},
		},
		"ExplainUnknown": {
			reason: "a name that nothing has is not the same as one that is not ready",
			args:   []string{"explain", "nowhere", "-n", "shop"},
			want:   clitest.Result{Code: command.ExitBlind, Err: `composition "nowhere" was not found in shop namespace: look in another namespace with -n, or in all of them with -A`},
		},
		"Empty": {
			reason: "nothing at all is no error",
			args:   []string{"-n", "void"},
			want:   clitest.Result{ErrOut: "No compositions found in void namespace.\n"},
		},
		"Format": {
			reason: "formats are checked first",
			args:   []string{"-o", "xml"},
			want:   clitest.Result{Code: command.ExitBlind, Err: `unknown output format "xml": use one of tree, table, wide, name, json, yaml, jsonpath=TEMPLATE`},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, clitest.Run(t, delivering(t), "", tc.args...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// What cannot be looked at is code 2, whatever the reason.
func TestDeliveryBlind(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null")

	for _, tc := range []struct {
		err  error
		want string
	}{
		{source.ErrNotInstalled, "the Composition API (eno.azure.io/v1) is not installed in this cluster"},
		{errors.New("no right"), "no right"},
	} {
		build := func(s genericiooptions.IOStreams) *cobra.Command {
			return New(s, clitest.Cluster(clitest.Failing(tc.err)), nil, time.Now)
		}
		if diff := cmp.Diff(clitest.Result{Code: command.ExitBlind, Err: tc.want}, clitest.Run(t, build, "")); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

func TestDeliveryMachine(t *testing.T) {
	got := clitest.Run(t, delivering(t), "", "web", "-n", "shop", "-o", "json")

	var v compositions.DeliveryView
	if err := json.Unmarshal([]byte(got.Out), &v); err != nil {
		t.Fatal(err)
	}

	if len(v.Compositions) != 1 || v.Compositions[0].Current == nil {
		t.Fatalf("got %s, want one composition with its synthesis", got.Out)
	}

	var states []string
	for _, r := range v.Compositions[0].Current.Resources {
		states = append(states, r.Object.String()+" "+string(r.State))
	}

	want := []string{
		"ConfigMap shop/settings Ready", "Deployment shop/db NotReady", "Deployment shop/web Waiting", "Service shop/web Error",
		"ConfigMap shop/old Deleting", "ConfigMap shop/older Deleted",
	}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// What a status says beside the state stands under the composition.
func TestDeliveryNotes(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null")
	t.Setenv("LC_ALL", "C.UTF-8")

	objects := documents(t, `
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: shop, name: a, ownerReferences: [{apiVersion: eno.azure.io/v1, kind: Symphony, name: lost, uid: u}]}
status:
  simplified: {status: Reconciling, error: "the applier has no right"}
  currentSynthesis: {uuid: aaaaaaaa-1, synthesized: "2026-03-02T11:00:10Z", resourceSlices: [{name: nowhere}]}
  ownership:
    objects:
    - {apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web, state: Failed, message: refused}
    - {apiVersion: apps/v1, kind: Deployment, namespace: shop, name: db, state: Split, message: legacy holds it}
    - {apiVersion: apps/v1, kind: Deployment, namespace: shop, name: ok, state: Migrated}
  conditions:
  - {type: Synthesized, status: "True", message: fine}
  - {type: Reconciled, status: "False", reason: Reconciling}
  - {type: Ready, status: "False", reason: NotReady, message: nothing moves}
  - {type: InputForbidden, status: "True", reason: Pinned, message: it is pinned}
  - {type: AccessDenied, status: "True", reason: WriteForbidden, message: deployer may not}
---
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: shop, name: b, deletionTimestamp: "2026-03-02T11:00:00Z"}
status:
  dependencyStatus: {blocked: true, reason: WaitingOnDependents, blockedBy: [{reason: DependentNotDeleted}]}
  currentSynthesis: {uuid: bbbbbbbb-1, synthesized: "2026-03-02T11:00:10Z", resourceSlices: [{name: b}]}
---
apiVersion: eno.azure.io/v1
kind: ResourceSlice
metadata: {namespace: shop, name: b}
spec:
  resources:
  - manifest: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"goes"}}'
  - manifest: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"went"}}'
  - manifest: 'none'
status: {resources: [{reconciled: true}, {deleted: true}]}
`)
	build := func(s genericiooptions.IOStreams) *cobra.Command {
		return New(s, clitest.Cluster(clitest.Holding(objects...)), nil, func() time.Time { return noon })
	}

	want := clitest.Result{
		Out: `✗ Symphony shop/lost           is not there
└─ ✗ shop/a                    Reconciling, aaaaaaaa, 0 resources
   │  the applier has no right
   │  Reconciled: Reconciling
   │  Ready: nothing moves
   │  InputForbidden: it is pinned
   │  AccessDenied: deployer may not
   │  Deployment shop/web: ownership could not be moved: refused
   │  Deployment shop/db: others hold parts of it: legacy holds it
   └─ ✗ ResourceSlice nowhere  is not there: what was in it is not known

✗ shop/b                  Deleting, bbbbbbbb, 3 resources
│  waits for compositions of other namespaces: DependentNotDeleted
├─ − ConfigMap shop/goes  being deleted
└─ ✗ (no kind)            error
      cannot read the manifest: invalid character 'o' in literal null (expecting 'u')
`,
		ErrOut: "2 compositions: 1 Deleting, 1 Reconciling; 3 resources: 1 gone, 1 being deleted, 1 error\n",
	}
	if diff := cmp.Diff(want, clitest.Run(t, build, "", "-n", "shop")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
