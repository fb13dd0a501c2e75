package cli

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func auditOf(list lister) func(genericiooptions.IOStreams) *cobra.Command {
	return func(s genericiooptions.IOStreams) *cobra.Command { return newAudit(s, cluster(list)) }
}

func TestAudit(t *testing.T) {
	good, bad := object("a", "good", "x"), object("b", "bad", "X", "y<z")
	odd := object("b", "odd", "a_")

	tests := map[string]struct {
		reason string
		list   lister
		args   []string
		want   result
	}{
		"Good":  {reason: "nothing wrong is said in one line", list: holding(good), want: result{ErrOut: "no problems in 1 PodGroup\n"}},
		"Empty": {reason: "also about nothing", list: holding(), want: result{ErrOut: "no problems in 0 PodGroups\n"}},
		"Bad": {
			reason: "every problem is a row with its fix",
			list:   holding(good, bad),
			want: result{
				Out: `NAMESPACE   NAME   REASON                     FIELD                      PROBLEM
b           bad    SubGroupNameNotLowercase   spec.subGroups[0].name     subgroup name "X" must be lowercase (rename it to "x")
b           bad    ParentNotFound             spec.subGroups[1].parent   parent z of y was not found (add a subgroup named "z" or remove the parent)
`,
				ErrOut: "2 errors, 0 warnings in 2 PodGroups\n", Code: ExitFound,
			},
		},
		"Namespace": {reason: "-n restricts it", list: holding(good, bad), args: []string{"-n", "a"}, want: result{ErrOut: "no problems in 1 PodGroup\n"}},
		"Warning": {
			reason: "warnings pass",
			list:   holding(odd), args: []string{"-o", "text"},
			want: result{
				Out: `NAMESPACE   NAME   REASON    FIELD                    PROBLEM
b           odd    Warning   spec.subGroups[0].name   "a_" cannot be a label value, which must begin and end with a letter or digit, with only those and '-', '_', '.' between, so no pod can join it
`,
				ErrOut: "0 errors, 1 warning in 1 PodGroup\n",
			},
		},
		"NotInstalled": {
			reason: "a part whose API is absent is skipped, which is no error",
			list:   failing(errNotInstalled),
			want:   result{ErrOut: "PodGroup skipped: not installed in this cluster\nnothing to audit\n"},
		},
		"NoCluster": {reason: "no answer is no verdict", list: failing(errors.New("no answer")), want: result{Code: ExitBlind, Err: "no answer"}},
		"Format":    {reason: "formats are known by name", args: []string{"-o", "wide"}, want: result{Code: ExitBlind, Err: `unknown output format "wide": use one of table, text, json, yaml`}},
		"Arguments": {reason: "there are none", args: []string{"x"}, want: result{Code: ExitBlind, Err: "unknown command \"x\" for \"audit\"\nSee 'audit --help' for usage"}},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, run(t, auditOf(tc.list), "", tc.args...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}

	if r := run(t, auditOf(holding(odd)), "", "--strict"); r.Code != ExitFound {
		t.Errorf("with --strict a warning exits with %d, want 1", r.Code)
	}
}

func TestAuditMachine(t *testing.T) {
	r := run(t, auditOf(holding(object("b", "bad", "X"))), "", "-o", "json")

	var got AuditReport
	if err := json.Unmarshal([]byte(r.Out), &got); err != nil {
		t.Fatal(err)
	}

	want := AuditReport{
		Findings: []Finding{{
			Severity: SeverityError,
			Object:   ObjectRef{APIVersion: "scheduling.run.ai/v2alpha2", Kind: "PodGroup", Namespace: "b", Name: "bad"},
			Reason:   "SubGroupNameNotLowercase", Field: "spec.subGroups[0].name", Value: "X",
			Message: `subgroup name "X" must be lowercase`, Fix: `rename it to "x"`,
		}},
		Parts:   []AuditPart{{Kind: "PodGroup", Checked: 1}},
		Summary: AuditSummary{Checked: 1, Errors: 1},
	}

	if diff := cmp.Diff(want, got); diff != "" || r.Code != ExitFound {
		t.Errorf("exit %d (-want +got):\n%s", r.Code, diff)
	}
}
