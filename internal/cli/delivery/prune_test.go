package delivery

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
)

// pruning has a composition with objects that wait to be deleted.
const pruning = `
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: shop, name: web, resourceVersion: "7", annotations: {arbor-control.dev/prune-first: "22222222-aaaa Service/shop/asked"}}
status:
  currentSynthesis: {uuid: 22222222-aaaa, resourceSlices: [{name: web-2}]}
---
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: shop, name: older, resourceVersion: "8", annotations: {arbor-control.dev/prune-first: "11111111-aaaa Service/shop/asked"}}
status:
  currentSynthesis: {uuid: 22222222-aaaa, resourceSlices: [{name: web-2}]}
---
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: shop, name: going, deletionTimestamp: "2026-03-02T11:00:00Z"}
status:
  currentSynthesis: {uuid: 22222222-aaaa, resourceSlices: [{name: web-2}]}
---
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: shop, name: fresh}
---
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: shop, name: lost}
status:
  currentSynthesis: {uuid: 22222222-aaaa, resourceSlices: [{name: lost-1}]}
---
apiVersion: eno.azure.io/v1
kind: ResourceSlice
metadata: {namespace: shop, name: web-2}
spec:
  resources:
  - manifest: '{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"web"}}'
  - {deleted: true, manifest: '{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"web-v1"}}'}
  - {deleted: true, manifest: '{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"asked"}}'}
  - {deleted: true, manifest: '{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"gone"}}'}
  - {deleted: true, manifest: '{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"never","annotations":{"arbor-control.dev/prune":"never"}}}'}
  - {deleted: true, manifest: '{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"namespace":"shop","name":"twice"}}'}
  - {deleted: true, manifest: '{"apiVersion":"example.com/v1","kind":"Ingress","metadata":{"namespace":"prod","name":"twice"}}'}
status:
  resources: [{}, {}, {}, {reconciled: true, deleted: true}, {}, {}, {}]
`

func TestDeliveryPrune(t *testing.T) {
	const waiting = "these objects do: Service/shop/web-v1, Service/shop/asked, Ingress.networking.k8s.io/shop/twice, Ingress.example.com/prod/twice"

	tests := map[string]struct {
		reason  string
		args    []string
		fails   error
		want    clitest.Result
		patches []string
	}{
		"First": {
			reason: "the object is added to those that were requested for this synthesis",
			args:   []string{"web", "--first", "Service/web-v1"},
			want: clitest.Result{Out: `composition shop/web deletes Service shop/web-v1 now
This is for synthesis 22222222 only. Other objects are deleted when all manifests have been applied.
To see how far it is: arbor compositions show web -n shop
`},
			patches: []string{`{"metadata":{"annotations":{"arbor-control.dev/prune-first":"22222222-aaaa Service/shop/asked Service/shop/web-v1"},"resourceVersion":"7"}}`},
		},
		"Older": {
			reason: "requests for an earlier synthesis are dropped, and kinds are read as kubectl reads them",
			args:   []string{"composition/older", "--first", "services/web-v1", "--dry-run"},
			want:   clitest.Result{Out: "composition shop/older would delete Service shop/web-v1 now (dry run: nothing was written)\n"},
			patches: []string{
				`dry {"metadata":{"annotations":{"arbor-control.dev/prune-first":"22222222-aaaa Service/shop/web-v1"},"resourceVersion":"8"}}`,
			},
		},
		"Again": {
			reason: "nothing is written twice",
			args:   []string{"web", "--first", "service/shop/asked"},
			want:   clitest.Result{Out: "composition shop/web deletes Service shop/asked already: it was requested before\n"},
		},
		"Ambiguous": {
			reason: "one kind may be of several groups",
			args:   []string{"web", "--first", "Ingress/twice"},
			want:   clitest.Result{Code: command.ExitFound, Err: "Ingress/twice is the name of several objects: choose Ingress.networking.k8s.io/shop/twice, Ingress.example.com/prod/twice"},
		},
		"Group": {
			reason: "the group decides",
			args:   []string{"older", "--first", "Ingress.example.com/twice", "--dry-run"},
			want:   clitest.Result{Out: "composition shop/older would delete Ingress prod/twice now (dry run: nothing was written)\n"},
			patches: []string{
				`dry {"metadata":{"annotations":{"arbor-control.dev/prune-first":"22222222-aaaa Ingress.example.com/prod/twice"},"resourceVersion":"8"}}`,
			},
		},
		"Manifest": {
			reason: "what the synthesis wants is not deleted",
			args:   []string{"web", "--first", "Service/web"},
			want:   clitest.Result{Code: command.ExitFound, Err: "Service/web does not wait to be deleted: Service shop/web is a manifest of the current synthesis; " + waiting},
		},
		"Gone": {
			reason: "it is done",
			args:   []string{"web", "--first", "Service/gone"},
			want:   clitest.Result{Code: command.ExitFound, Err: "Service/gone does not wait to be deleted: Service shop/gone is deleted already; " + waiting},
		},
		"Never": {
			reason: "its author does not want it",
			args:   []string{"web", "--first", "Service/never"},
			want:   clitest.Result{Code: command.ExitFound, Err: "Service/never does not wait to be deleted: Service shop/never is never pruned: annotation arbor-control.dev/prune says so; " + waiting},
		},
		"Unknown": {
			reason: "those that wait are listed",
			args:   []string{"web", "--first", "ConfigMap/web-v1"},
			want:   clitest.Result{Code: command.ExitFound, Err: "ConfigMap/web-v1 does not wait to be deleted: no manifest of the current synthesis, and none that it dropped, is called so; " + waiting},
		},
		"NoComposition": {
			reason: "there must be a composition",
			args:   []string{"x", "--first", "Service/web-v1"},
			want:   clitest.Result{Code: command.ExitBlind, Err: `composition "x" was not found in shop namespace: look in another namespace with -n, or in all of them with -A`},
		},
		"Deleted": {
			reason: "everything is deleted with the composition",
			args:   []string{"going", "--first", "Service/web-v1"},
			want:   clitest.Result{Code: command.ExitFound, Err: "cannot prune shop/going: it is being deleted, with all of its objects"},
		},
		"Fresh": {
			reason: "nothing was synthesized",
			args:   []string{"fresh", "--first", "Service/web-v1"},
			want:   clitest.Result{Code: command.ExitFound, Err: "cannot prune shop/fresh: it has no synthesis yet"},
		},
		"Lost": {
			reason: "without the slice, nothing is known",
			args:   []string{"lost", "--first", "Service/web-v1"},
			want:   clitest.Result{Code: command.ExitFound, Err: "cannot prune shop/lost: manifests of its current synthesis are gone (lost-1)"},
		},
		"Nothing": {
			reason: "an object must be named",
			args:   []string{"web"},
			want:   clitest.Result{Code: command.ExitBlind, Err: "cannot tell which object to delete: use --first KIND/NAME"},
		},
		"Unreadable": {
			reason: "a name alone is not enough",
			args:   []string{"web", "--first", "web-v1"},
			want:   clitest.Result{Code: command.ExitBlind, Err: `cannot read --first "web-v1": write KIND/NAME, KIND.GROUP/NAME or KIND/NAMESPACE/NAME`},
		},
		"Conflict": {
			reason:  "another client was faster, each time",
			args:    []string{"older", "--first", "Service/web-v1"},
			fails:   apierrors.NewConflict(enov1.GroupVersion.WithResource("compositions").GroupResource(), "older", nil),
			want:    clitest.Result{Code: command.ExitFound, Err: `Composition shop/older was changed by another client at the same time, and nothing was written: try again`},
			patches: slices.Repeat([]string{`{"metadata":{"annotations":{"arbor-control.dev/prune-first":"22222222-aaaa Service/shop/web-v1"},"resourceVersion":"8"}}`}, conflictTries),
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", "/dev/null")

			s := &serverInMemory{fails: tc.fails}
			objects := documents(t, pruning)
			build := func(streams genericiooptions.IOStreams) *cobra.Command {
				return New(streams, clitest.Cluster(clitest.Holding(objects...)), reaching(s), time.Now)
			}

			if diff := cmp.Diff(tc.want, clitest.Run(t, build, "", append([]string{"prune", "-n", "shop"}, tc.args...)...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.patches, s.patches); diff != "" {
				t.Errorf("%s: patches (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
