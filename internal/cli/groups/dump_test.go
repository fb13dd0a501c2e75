package groups

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/manifest"
)

func TestGroupsDump(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null")
	build := func(list source.Lister) func(genericiooptions.IOStreams) *cobra.Command {
		return func(s genericiooptions.IOStreams) *cobra.Command {
			return newGroupsDump(s, clitest.Cluster(list), Scheduling{Kinds: func() []schema.GroupVersionResource {
				return []schema.GroupVersionResource{{Version: "v1", Resource: "pods"}, {Group: "scheduling.run.ai", Version: "v2alpha2", Resource: "podgroups"}}
			}})
		}
	}
	all := clitest.Holding(clitest.Stored(t, "../../decide/clusterdump/testdata/secretive.yaml"), clitest.PodGroup("ns", "g"), map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s"}})
	for _, format := range []string{"yaml", "json"} {
		r := clitest.Run(t, build(all), "", "-o", format)
		f := manifest.Parse("dump."+format, []byte(r.Out))
		if r.Code != 0 || len(f.Errors) > 0 || len(f.Documents) != 2 || f.Documents[0].Object["kind"] != "Pod" || strings.Contains(r.Out, "secret") {
			t.Errorf("%s: %v\n%+v", format, f.Errors, r)
		}
		// What is cut off anywhere is no list any more.
		for i := range len(r.Out) - 1 {
			cut := manifest.Parse("dump."+format, []byte(r.Out[:i]))
			for _, d := range cut.Documents {
				if kind := d.Object["kind"]; kind == "Pod" || kind == "PodGroup" {
					t.Fatalf("%s that is cut off after %d of %d bytes is taken for whole", format, i, len(r.Out))
				}
			}
		}
		if r := clitest.Run(t, build(clitest.Holding()), "", "-o", format); r.Code != 0 || len(manifest.Parse("dump."+format, []byte(r.Out)).Errors) > 0 {
			t.Errorf("an empty cluster: %+v", r)
		}
	}
	for want, err := range map[string]error{"no right": errors.New("no right"), "": source.ErrNotInstalled} {
		if r := clitest.Run(t, build(clitest.Failing(err)), ""); r.Err != want || (want == "") != (r.Code == 0) {
			t.Errorf("%v: got %+v", err, r)
		}
	}
	if r := clitest.Run(t, build(all), "", "-o", "table"); r.Code != command.ExitBlind {
		t.Errorf("got %+v, want a format to be refused", r)
	}
	want := clitest.Result{Code: command.ExitBlind, Err: "a dump has all namespaces, because pods of all of them take room on nodes: leave out -n"}
	if diff := cmp.Diff(want, clitest.Run(t, build(all), "", "-n", "ns")); diff != "" {
		t.Errorf("-n would leave out pods that take room (-want +got):\n%s", diff)
	}
}
