package delivery

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/rehearsal"
)

// serverInMemory has objects, and answers to writes.
type serverInMemory struct {
	objects map[identity.Ref]map[string]any
	// rehearse is the answer to a write that is only tried.
	rehearse func(rehearsal.Write) (map[string]any, error)
	// patches are the ones that were merged, with "dry " before those that were
	// only tried. fails is the answer to all of them.
	patches []string
	fails   error
}

func (s *serverInMemory) Get(_ context.Context, ref identity.Ref) (map[string]any, error) {
	if o, ok := s.objects[ref]; ok {
		return o, nil
	}

	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: ref.Kind}, ref.Name)
}

func (s *serverInMemory) Find(ctx context.Context, ref identity.Ref) (map[string]any, error) {
	return s.Get(ctx, ref)
}

func (s *serverInMemory) Rehearse(_ context.Context, w rehearsal.Write) (map[string]any, error) {
	return s.rehearse(w)
}

// Scope knows one cluster-scoped kind, and no other kind.
func (s *serverInMemory) Scope(_, kind string) (namespaced, known bool) {
	return false, kind == "ClusterRole"
}

func (s *serverInMemory) Annotate(_ context.Context, _ identity.Ref, patch []byte, dryRun bool) error {
	text := string(patch)
	if dryRun {
		text = "dry " + text
	}

	s.patches = append(s.patches, text)

	return s.fails
}

func reaching(s *serverInMemory) serverConnector {
	return func(*genericclioptions.ConfigFlags) (rehearsal.Server, error) { return s, nil }
}

func TestDeliveryHistory(t *testing.T) {
	want := clitest.Result{Out: `UUID                                   IS         BEGUN                  SYNTHESIZER   COMPOSITION   STATE         RESOURCES   ROLLED BACK TO   RESULTS
22222222-aaaa-4000-8000-000000000000   current    2026-03-02T11:00:00Z   2             4             reconciling   4
11111111-aaaa-4000-8000-000000000000   previous   2026-03-01T11:00:00Z   2             3             ready         2
11100000-aaaa-4000-8000-000000000000              2026-02-01T11:00:00Z   1             1             ready         unknown                      info: defaults were used
`}
	if diff := cmp.Diff(want, clitest.Run(t, delivering(t), "", "history", "web", "-n", "shop")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	want = clitest.Result{Code: command.ExitBlind, Err: `composition "x" was not found in any namespace: leave out the name to see what is there`}
	if diff := cmp.Diff(want, clitest.Run(t, delivering(t), "", "history", "x", "-A")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	want = clitest.Result{ErrOut: "Composition store/ui was not synthesized yet.\n"}
	if diff := cmp.Diff(want, clitest.Run(t, delivering(t), "", "history", "ui", "-n", "store")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDeliveryRollback(t *testing.T) {
	conflict := apierrors.NewConflict(enov1.GroupVersion.WithResource("compositions").GroupResource(), "web", nil)
	tests := map[string]struct {
		reason  string
		args    []string
		fails   error
		want    clitest.Result
		patches []string
	}{
		"Previous": {
			reason: "it is pinned under the resource version, and told what happens next",
			args:   []string{"web", "--to", "previous"},
			want: clitest.Result{Out: `composition shop/web is pinned to 11111111, the previous one, begun 2026-03-01T11:00:00Z, 2 resources
Its manifests are delivered again, as a new synthesis; what only later ones had is deleted.
Nothing is synthesized until: arbor compositions rollback web -n shop --resume
To see how far it is: arbor compositions show web -n shop
`},
			patches: []string{`{"metadata":{"annotations":{"arbor-control.dev/rollback-to":"11111111-aaaa-4000-8000-000000000000"},"resourceVersion":"7"}}`},
		},
		"Wait": {
			reason: "it is ready with the manifests of that synthesis",
			args:   []string{"proxy", "--to", "4444", "--wait"},
			want: clitest.Result{Out: `composition shop/proxy is pinned to 44444444, the current one, begun 2026-03-02T11:59:00Z, 0 resources
Its manifests are delivered again, as a new synthesis; what only later ones had is deleted.
Nothing is synthesized until: arbor compositions rollback proxy -n shop --resume
To see how far it is: arbor compositions show proxy -n shop
composition shop/proxy is ready
`},
			patches: []string{`{"metadata":{"annotations":{"arbor-control.dev/rollback-to":"44444444-aaaa"},"resourceVersion":""}}`},
		},
		"WaitInVain": {
			reason: "it does not become ready in time",
			args:   []string{"web", "--to", "previous", "--wait=1ms"},
			want: clitest.Result{Out: `composition shop/web is pinned to 11111111, the previous one, begun 2026-03-01T11:00:00Z, 2 resources
Its manifests are delivered again, as a new synthesis; what only later ones had is deleted.
Nothing is synthesized until: arbor compositions rollback web -n shop --resume
To see how far it is: arbor compositions show web -n shop
`, Code: command.ExitFound, Err: "composition shop/web is not ready with that synthesis after 1ms: see arbor compositions explain web -n shop"},
			patches: []string{`{"metadata":{"annotations":{"arbor-control.dev/rollback-to":"11111111-aaaa-4000-8000-000000000000"},"resourceVersion":"7"}}`},
		},
		"WaitForResume": {
			reason: "after --resume there may be nothing to wait for",
			args:   []string{"proxy", "--resume", "--wait"},
			want:   clitest.Result{Code: command.ExitBlind, Err: "--wait is for --to: after --resume, a composition is only synthesized if something has changed"},
		},
		"DryRun": {
			reason: "a dry run is the server's",
			args:   []string{"web", "--to", "1111", "--dry-run"},
			want: clitest.Result{Out: `composition shop/web would be pinned to 11111111, the previous one, begun 2026-03-01T11:00:00Z, 2 resources (dry run: nothing was written)
to see what that changes: arbor compositions plan web -n shop --to 11111111
`},
			patches: []string{`dry {"metadata":{"annotations":{"arbor-control.dev/rollback-to":"11111111-aaaa-4000-8000-000000000000"},"resourceVersion":"7"}}`},
		},
		"Ambiguous": {
			reason: "a beginning that two have is none",
			args:   []string{"web", "--to", "111"},
			want: clitest.Result{Code: command.ExitBlind, Err: `"111" is the beginning of several: choose one of ` +
				`11111111-aaaa-4000-8000-000000000000, 11100000-aaaa-4000-8000-000000000000`},
		},
		"Unknown": {
			reason: "those that are there are named",
			args:   []string{"web", "--to", "9"},
			want: clitest.Result{Code: command.ExitBlind, Err: `no synthesis "9" in the history of shop/web: choose one of 22222222-aaaa-4000-8000-000000000000 (current), ` +
				`11111111-aaaa-4000-8000-000000000000 (previous), 11100000-aaaa-4000-8000-000000000000`},
		},
		"Gone": {
			reason: "without its manifests there is nothing to go back to",
			args:   []string{"web", "--to", "11100"},
			want:   clitest.Result{Code: command.ExitFound, Err: `cannot roll back to 11100000: its manifests are gone (web-0)`},
		},
		"InFlight": {
			reason: "one that is not there yet is no way back",
			args:   []string{"api", "-n", "store", "--to", "5"},
			want:   clitest.Result{Code: command.ExitFound, Err: `cannot roll back to 55555555: it is in flight, and has no manifests yet: choose none, there are no others`},
		},
		"NoPrevious": {
			reason: "there need not be a previous one",
			args:   []string{"proxy", "--to", "previous"},
			want:   clitest.Result{Code: command.ExitBlind, Err: `there is no synthesis before the current one: choose one of 44444444-aaaa (current)`},
		},
		"Conflict": {
			reason: "somebody else was faster",
			args:   []string{"web", "--to", "previous"},
			fails:  conflict,
			want:   clitest.Result{Code: command.ExitFound, Err: `Composition shop/web was changed by another client at the same time, and nothing was written: try again`},
			patches: []string{
				`{"metadata":{"annotations":{"arbor-control.dev/rollback-to":"11111111-aaaa-4000-8000-000000000000"},"resourceVersion":"7"}}`,
			},
		},
		"Resume": {
			reason:  "the annotation goes",
			args:    []string{"proxy", "--resume"},
			want:    clitest.Result{Out: "composition shop/proxy is no longer pinned to 33333333\nIt is synthesized again if anything has changed since.\n"},
			patches: []string{`{"metadata":{"annotations":{"arbor-control.dev/rollback-to":null},"resourceVersion":""}}`},
		},
		"NotPinned": {
			reason: "nothing is written if there is nothing to write",
			args:   []string{"web", "--resume"},
			want:   clitest.Result{Out: "composition shop/web is not pinned: nothing to do\n"},
		},
		"Nowhere": {
			reason: "one of the two must be said",
			args:   []string{"web"},
			want:   clitest.Result{Code: command.ExitBlind, Err: "cannot tell where to go: use either --to UUID, --to previous or --resume"},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", "/dev/null")

			s := &serverInMemory{fails: tc.fails}
			objects := documents(t, shop)
			build := func(streams genericiooptions.IOStreams) *cobra.Command {
				return New(streams, clitest.Cluster(clitest.Holding(objects...)), reaching(s), time.Now)
			}

			if diff := cmp.Diff(tc.want, clitest.Run(t, build, "", append([]string{"rollback", "-n", "shop"}, tc.args...)...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.patches, s.patches); diff != "" {
				t.Errorf("%s: patches (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
