package pools

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
)

// TestPoolsOutput asks for lists instead of drawings.
func TestPoolsOutput(t *testing.T) {
	clitest.Plain(t)
	objects := clitest.IPAM("net", "pool p 10.0.0.0/23 defaultBlockSize=24\npool c 10.0.0.0/24 parent=p defaultBlockSize=24\nsubnet c 10.0.0.0/24 a")
	for _, o := range objects[:2] {
		m := o["metadata"].(map[string]any)
		m["labels"] = map[string]any{"is": m["name"]}
	}
	build := func(s genericiooptions.IOStreams) *cobra.Command {
		return New(s, clitest.Cluster(clitest.Serving(objects...)), nil)
	}
	full := "cannot hand out 1 block of /24 from pool c: every address is taken; release blocks, or use another pool"
	cases := map[string]struct {
		reason, args string
		want         clitest.Result
	}{
		"Table":     {reason: "One line for each pool.", args: "-n net -o table", want: clitest.Result{Out: "NAME   CIDR          TAKEN   SUBNETS   CHILDPOOLS   WAITING   LARGESTFREE\np      10.0.0.0/23   50%     0         1            0         /24\nc      10.0.0.0/24   100%    1         0            0\n"}},
		"Wide":      {reason: "With its parent and what is wrong.", args: "-A -o wide --no-headers --from - -l is=c", want: clitest.Result{Out: "net   c   10.0.0.0/24   100%   1   0   0      p   Linear   0%   exhausted: no /24 is left\n"}},
		"Name":      {reason: "As kubectl names objects.", args: "-A -o name", want: clitest.Result{Out: "subnetpool.plexaubnet.io/p\nsubnetpool.plexaubnet.io/c\n"}},
		"ExitCode":  {reason: "A pool is exhausted.", args: "-A -l is=c -o name --exit-code", want: clitest.Result{Out: "subnetpool.plexaubnet.io/c\n", Code: command.ExitFound}},
		"Enough":    {reason: "Another is not.", args: "-A -l is=p -o name --exit-code", want: clitest.Result{Out: "subnetpool.plexaubnet.io/p\n"}},
		"ShowTable": {reason: "Only the list of blocks.", args: "show p -n net -o table --no-headers", want: clitest.Result{Out: "10.0.0.0/24   child pool   c\n10.0.1.0/24   free\n"}},
		"ShowName":  {reason: "The objects that have blocks.", args: "show c -n net -o name", want: clitest.Result{Out: "subnet.plexaubnet.io/c-10-0-0-0-24\n"}},
		"PlanKeeps": {reason: "What does not fit is printed, and the command succeeds.", args: "plan c -n net -o jsonpath={.fits} --exit-code=false", want: clitest.Result{Out: "false\n", ErrOut: full + "\n"}},
		"PlanExits": {reason: "It fails by default.", args: "plan c -n net -o jsonpath={.fits}", want: clitest.Result{Out: "false\n", Code: command.ExitFound, Err: full}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stdin := clitest.Manifests(t, objects...)
			if diff := cmp.Diff(tc.want, clitest.Run(t, build, stdin, strings.Fields(tc.args)...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPoolsSelected draws a pool whose parent has other labels.
func TestPoolsSelected(t *testing.T) {
	clitest.Plain(t)
	objects := clitest.IPAM("net", "pool p 10.0.0.0/23\npool c 10.0.0.0/24 parent=p")
	objects[1]["metadata"].(map[string]any)["labels"] = map[string]any{"is": "c"}
	r := clitest.Run(t, poolsOf(clitest.Serving(objects...)), "", "-A", "-l", "is=c", "--width", "120")
	if !strings.Contains(r.Out, "taken from p") || !strings.Contains(r.Out, "1 pool,") || r.Code != 0 {
		t.Errorf("got %+v, want the child with the name of its parent", r)
	}
}
