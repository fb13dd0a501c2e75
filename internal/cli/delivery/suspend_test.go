package delivery

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
)

// suspending has a composition that is suspended, one that is not, and one that is being
// deleted.
const suspending = `
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: shop, name: web, resourceVersion: "7"}
spec: {synthesizer: {name: web-synth}}
status: {simplified: {status: Ready}}
---
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: shop, name: db, resourceVersion: "8", annotations: {arbor-control.dev/suspend: "2026-03-01T12:00:00Z maintenance"}}
spec: {synthesizer: {name: db-synth}}
status:
  simplified: {status: Reconciling, error: "Suspended since 2026-03-01T12:00:00Z: maintenance"}
  conditions: [{type: Suspended, status: "True", reason: Requested, message: "Suspended since 2026-03-01T12:00:00Z: maintenance"}]
---
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: shop, name: going, deletionTimestamp: "2026-03-02T11:00:00Z"}
`

func TestDeliverySuspend(t *testing.T) {
	tests := map[string]struct {
		reason  string
		args    []string
		want    clitest.Result
		patches []string
	}{
		"Suspend": {
			reason: "the time and the reason are written on one line",
			args:   []string{"suspend", "web", "--reason", "database\n maintenance"},
			want: clitest.Result{Out: `composition shop/web is suspended
Delivery writes nothing for it until: arbor compositions resume web -n shop
It is still synthesized, and its objects are deleted if it is deleted.
`},
			patches: []string{`{"metadata":{"annotations":{"arbor-control.dev/suspend":"2026-03-02T12:00:00Z database maintenance"},"resourceVersion":"7"}}`},
		},
		"DryRun": {
			reason:  "a dry run is the server's",
			args:    []string{"suspend", "web", "--reason", "a", "--dry-run"},
			want:    clitest.Result{Out: "composition shop/web would be suspended (dry run: nothing was written)\n"},
			patches: []string{`dry {"metadata":{"annotations":{"arbor-control.dev/suspend":"2026-03-02T12:00:00Z a"},"resourceVersion":"7"}}`},
		},
		"Again": {
			reason: "nothing is written twice",
			args:   []string{"suspend", "db", "--reason", "maintenance"},
			want:   clitest.Result{Out: "composition shop/db is suspended already\nSuspended since 2026-03-01T12:00:00Z: maintenance\n"},
		},
		"OtherReason": {
			reason: "a new reason does not change since when it is suspended",
			args:   []string{"suspend", "db", "--reason", "more of it"},
			want: clitest.Result{Out: `composition shop/db is suspended
Delivery writes nothing for it until: arbor compositions resume db -n shop
It is still synthesized, and its objects are deleted if it is deleted.
`},
			patches: []string{`{"metadata":{"annotations":{"arbor-control.dev/suspend":"2026-03-01T12:00:00Z more of it"},"resourceVersion":"8"}}`},
		},
		"NoReason": {
			reason: "a composition that is suspended for no known reason is never resumed",
			args:   []string{"suspend", "web", "--reason", " "},
			want:   clitest.Result{Code: command.ExitBlind, Err: "cannot suspend without a reason: use --reason TEXT"},
		},
		"LongReason": {
			reason: "it is shown in a column",
			args:   []string{"suspend", "web", "--reason", strings.Repeat("a", 257)},
			want:   clitest.Result{Code: command.ExitBlind, Err: "cannot use the reason: it is longer than 256 bytes"},
		},
		"Deleted": {
			reason: "deletion ignores it",
			args:   []string{"suspend", "going", "--reason", "a"},
			want:   clitest.Result{Code: command.ExitFound, Err: "cannot suspend shop/going: it is being deleted, which a suspension does not stop"},
		},
		"Unknown": {
			reason: "there must be a composition",
			args:   []string{"suspend", "x", "--reason", "a"},
			want:   clitest.Result{Code: command.ExitBlind, Err: `composition "x" was not found in shop namespace: look in another namespace with -n, or in all of them with -A`},
		},
		"Resume": {
			reason: "the annotation is removed",
			args:   []string{"resume", "db"},
			want: clitest.Result{Out: `composition shop/db is resumed
Its current synthesis is delivered, and drift is corrected.
To see how far it is: arbor compositions show db -n shop
`},
			patches: []string{`{"metadata":{"annotations":{"arbor-control.dev/suspend":null},"resourceVersion":"8"}}`},
		},
		"ResumeDryRun": {
			reason:  "a dry run shows what is there",
			args:    []string{"resume", "db", "--dry-run"},
			want:    clitest.Result{Out: "composition shop/db would be resumed (dry run: nothing was written)\nSuspended since 2026-03-01T12:00:00Z: maintenance\n"},
			patches: []string{`dry {"metadata":{"annotations":{"arbor-control.dev/suspend":null},"resourceVersion":"8"}}`},
		},
		"NotSuspended": {
			reason: "nothing is written if there is nothing to write",
			args:   []string{"resume", "web"},
			want:   clitest.Result{Out: "composition shop/web is not suspended: nothing to do\n"},
		},
		"Drawn": {
			reason: "the suspension is not an error, and is shown once",
			args:   []string{"composition/db"},
			want: clitest.Result{Out: `! shop/db  Reconciling, synthesizer db-synth
   Suspended since 2026-03-01T12:00:00Z: maintenance; nothing is delivered until arbor compositions resume db -n shop
`, ErrOut: "1 composition: 1 Reconciling; 0 resources\n"},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", "/dev/null")

			s := &serverInMemory{}
			objects := documents(t, suspending)
			build := func(streams genericiooptions.IOStreams) *cobra.Command {
				return New(streams, clitest.Cluster(clitest.Holding(objects...)), reaching(s), func() time.Time { return noon })
			}

			if diff := cmp.Diff(tc.want, clitest.Run(t, build, "", append(tc.args, "-n", "shop")...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.patches, s.patches); diff != "" {
				t.Errorf("%s: patches (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
