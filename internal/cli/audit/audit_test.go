package audit

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/findings"
	"github.com/arbor-control/arbor/internal/show/owners"
)

func auditOf(list source.Lister) func(genericiooptions.IOStreams) *cobra.Command {
	return func(s genericiooptions.IOStreams) *cobra.Command { return New(s, clitest.Cluster(list)) }
}

// noPools is what an audit says of pools and workloads where there are none.
const noPools = ", 0 SubnetPools, 0 Subnets, 0 SubnetClaims, 0 SubnetPoolClaims, 0 Workloads"

func TestAudit(t *testing.T) {
	good, bad := clitest.PodGroup("a", "good", "x"), clitest.PodGroup("b", "bad", "X", "y<z")
	odd := clitest.PodGroup("b", "odd", "a_")

	tests := map[string]struct {
		reason string
		list   source.Lister
		args   []string
		want   clitest.Result
	}{
		"Good":  {reason: "nothing wrong is said in one line", list: clitest.Holding(good), want: clitest.Result{ErrOut: "no problems in 1 PodGroup" + noPools + "\n"}},
		"Empty": {reason: "also about nothing", list: clitest.Holding(), want: clitest.Result{ErrOut: "no problems in 0 PodGroups" + noPools + "\n"}},
		"Bad": {
			reason: "every problem is a row with its fix",
			list:   clitest.Holding(good, bad),
			want: clitest.Result{
				Out: `KIND       NAMESPACE   NAME   REASON                     FIELD                      PROBLEM
PodGroup   b           bad    SubGroupNameNotLowercase   spec.subGroups[0].name     subgroup name "X" must be lowercase (rename it to "x")
PodGroup   b           bad    ParentNotFound             spec.subGroups[1].parent   parent z of y was not found (add a subgroup named "z" or remove the parent)
`,
				ErrOut: "2 errors, 0 warnings in 2 PodGroups" + noPools + "\n", Code: command.ExitFound,
			},
		},
		"Namespace": {reason: "-n restricts it", list: clitest.Holding(good, bad), args: []string{"-n", "a"}, want: clitest.Result{ErrOut: "no problems in 1 PodGroup" + noPools + "\n"}},
		"Warning": {
			reason: "warnings pass",
			list:   clitest.Holding(odd), args: []string{"-o", "text"},
			want: clitest.Result{
				Out: `KIND       NAMESPACE   NAME   REASON    FIELD                    PROBLEM
PodGroup   b           odd    Warning   spec.subGroups[0].name   "a_" cannot be a label value, which must begin and end with a letter or digit, with only those and '-', '_', '.' between, so no pod can join it
`,
				ErrOut: "0 errors, 1 warning in 1 PodGroup" + noPools + "\n",
			},
		},
		"NotInstalled": {
			reason: "a part whose API is absent is skipped, which is no error",
			list:   clitest.Failing(source.ErrNotInstalled),
			want:   clitest.Result{ErrOut: "PodGroup skipped: not installed in this cluster\nSubnetPool skipped: not installed in this cluster\nWorkload skipped: not installed in this cluster\nnothing to audit\n"},
		},
		"Pools": {
			reason: "pools are audited as pools check does",
			list:   clitest.Holding(good, clitest.SubnetPool("net", "a", "10.0.0.0/16"), clitest.SubnetPool("net", "b", "10.0.0.0/24")),
			want: clitest.Result{
				Out: `KIND         NAMESPACE   NAME   REASON    FIELD       PROBLEM
SubnetPool   net         a      Overlap   spec.cidr   10.0.0.0/16 overlaps 10.0.0.0/24 of pool b, which is a root pool of this namespace too (choose other addresses, or set spec.parent if one is taken from the other)
SubnetPool   net         b      Overlap   spec.cidr   10.0.0.0/24 overlaps 10.0.0.0/16 of pool a, which is a root pool of this namespace too (choose other addresses, or set spec.parent if one is taken from the other)
`,
				ErrOut: "2 errors, 0 warnings in 1 PodGroup, 2 SubnetPools, 0 Subnets, 0 SubnetClaims, 0 SubnetPoolClaims, 0 Workloads\n", Code: command.ExitFound,
			},
		},
		"NoPoolAPI": {
			reason: "each part is skipped for itself",
			list: func(ctx context.Context, q source.Query) ([]map[string]any, error) {
				if q.Resource != source.PodGroupResource {
					return nil, source.ErrNotInstalled
				}

				return clitest.Holding(good)(ctx, q)
			},
			want: clitest.Result{ErrOut: "SubnetPool skipped: not installed in this cluster\nWorkload skipped: not installed in this cluster\nno problems in 1 PodGroup\n"},
		},
		"NoCluster": {reason: "no answer is no verdict", list: clitest.Failing(errors.New("no answer")), want: clitest.Result{Code: command.ExitBlind, Err: "no answer"}},
		"Format":    {reason: "formats are known by name", args: []string{"-o", "wide"}, want: clitest.Result{Code: command.ExitBlind, Err: `unknown output format "wide": use one of table, name, json, yaml, jsonpath=TEMPLATE`}},
		"Arguments": {reason: "there are none", args: []string{"x"}, want: clitest.Result{Code: command.ExitBlind, Err: "unknown command \"x\" for \"audit\"\nSee 'audit --help' for usage"}},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, clitest.Run(t, auditOf(tc.list), "", tc.args...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}

	if r := clitest.Run(t, auditOf(clitest.Holding(odd)), "", "--strict"); r.Code != command.ExitFound {
		t.Errorf("with --strict a warning exits with %d, want 1", r.Code)
	}
}

func TestAuditMachine(t *testing.T) {
	r := clitest.Run(t, auditOf(clitest.Holding(clitest.PodGroup("b", "bad", "X"))), "", "-o", "json")

	var got AuditReport
	if err := json.Unmarshal([]byte(r.Out), &got); err != nil {
		t.Fatal(err)
	}

	want := AuditReport{
		Findings: []show.Finding{{
			Severity: show.SeverityError,
			Object:   identity.Ref{APIVersion: "scheduling.run.ai/v2alpha2", Kind: "PodGroup", Namespace: "b", Name: "bad"},
			Reason:   "SubGroupNameNotLowercase", Field: "spec.subGroups[0].name", Value: "X",
			Message: `subgroup name "X" must be lowercase`, Fix: `rename it to "x"`,
		}},
		Blocks:  []owners.Block{},
		Parts:   []findings.AuditPart{{Kind: "PodGroup", Checked: 1}, {Kind: "SubnetPool"}, {Kind: "Subnet"}, {Kind: "SubnetClaim"}, {Kind: "SubnetPoolClaim"}, {Kind: "Workload"}},
		Summary: AuditSummary{Checked: 1, Errors: 1},
	}

	if diff := cmp.Diff(want, got); diff != "" || r.Code != command.ExitFound {
		t.Errorf("exit %d (-want +got):\n%s", r.Code, diff)
	}
}
