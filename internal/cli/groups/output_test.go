package groups

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
)

// TestGroupsOutput asks for lists instead of drawings.
func TestGroupsOutput(t *testing.T) {
	clitest.Plain(t)
	bad := clitest.PodGroup("other", "two", "Y")
	bad["metadata"].(map[string]any)["labels"] = map[string]any{"team": "a"}
	list := clitest.Holding(clitest.PodGroup("default", "one", "x"), bad)
	cases := map[string]struct {
		reason, args string
		want         clitest.Result
	}{
		"Table":     {reason: "One line for each group.", args: "-o table", want: clitest.Result{Out: "NAME   QUEUE   MINMEMBER   MINSUBGROUP   SUBGROUPS   PROBLEMS\none    q       2                         1           0\n"}},
		"NoHeaders": {reason: "Scripts need no headers.", args: "-o table --no-headers", want: clitest.Result{Out: "one   q   2      1   0\n"}},
		"Wide":      {reason: "With all namespaces and what is wrong.", args: "-A -o wide --no-headers -l team=a", want: clitest.Result{Out: "other   two   q   2      1   1   0   subgroup name \"Y\" must be lowercase (rename it to \"y\")\n"}},
		"Name":      {reason: "As kubectl names objects.", args: "-A -o name", want: clitest.Result{Out: "podgroup.scheduling.run.ai/one\npodgroup.scheduling.run.ai/two\n"}},
		"JSONPath":  {reason: "As kubectl reads documents.", args: "-A -o jsonpath={.kind}:{.groups[*].name}", want: clitest.Result{Out: "PodGroupTrees:one two\n"}},
		"Selector":  {reason: "Labels choose groups.", args: "-A -l team!=a -o name", want: clitest.Result{Out: "podgroup.scheduling.run.ai/one\n"}},
		"ExitCode":  {reason: "A problem is found.", args: "-A -o name -l team --exit-code", want: clitest.Result{Out: "podgroup.scheduling.run.ai/two\n", Code: command.ExitFound}},
		"NoProblem": {reason: "No problem is found.", args: "-o name --exit-code", want: clitest.Result{Out: "podgroup.scheduling.run.ai/one\n"}},
		"WatchOnce": {reason: "Standard input ends.", args: "-w --from -", want: clitest.Result{Code: command.ExitBlind, Err: "standard input can be read once: leave out --watch"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, clitest.Run(t, groupsOf(list), "", strings.Fields(tc.args)...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
