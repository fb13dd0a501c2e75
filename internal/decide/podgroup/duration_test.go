package podgroup_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/podgroup"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// timed sets the durations of a group.
func timed(pg *v2alpha2.PodGroup, delay, grace *v2alpha2.Duration) *v2alpha2.PodGroup {
	pg.Spec.PreemptionDelay, pg.Spec.StalenessGracePeriod = delay, grace

	return pg
}

func invalid(json string) *v2alpha2.Duration { return &v2alpha2.Duration{Invalid: json} }

const (
	notDuration = `preemptionDelay "abc" is not a duration such as 30s or 1h30m`
	storedDelay = `spec.preemptionDelay: the stored durations break the rule and should be fixed: ` + notDuration
)

func TestAdmitDuration(t *testing.T) {
	second := &v2alpha2.Duration{Duration: time.Second}
	terminating := func(pg *v2alpha2.PodGroup) *v2alpha2.PodGroup {
		pg.DeletionTimestamp = new(metav1.NewTime(time.Unix(1_700_000_000, 0)))

		return pg
	}
	cases := map[string]struct {
		reason        string
		before, after *v2alpha2.PodGroup
		want          string
		warnings      []string
	}{
		"Create":     {reason: "Valid durations are admitted.", after: timed(good(), second, &v2alpha2.Duration{Duration: -time.Second})},
		"CreateBad":  {reason: "An invalid one is rejected.", after: timed(good(), invalid(`"abc"`), nil), want: notDuration},
		"CreateBoth": {reason: "The subgroups come first.", after: timed(bad(), invalid(`"abc"`), nil), want: `subgroup name "Master" must be lowercase`},
		"Unchanged": {
			reason: "What is stored passes with a warning.",
			before: timed(good(), invalid(`"abc"`), nil), after: timed(good(), invalid(`"abc"`), second), warnings: []string{storedDelay},
		},
		"UnchangedBoth": {
			reason: "Two invalid ones are one warning.",
			before: timed(good(), invalid(`"abc"`), invalid(`5`)), after: timed(good(), invalid(`"abc"`), invalid(`5`)),
			warnings: []string{storedDelay + " (and 1 more)"},
		},
		"SetBad": {reason: "A valid one must not become invalid.", before: timed(good(), second, nil), after: timed(good(), invalid(`"abc"`), nil), want: notDuration},
		"OtherBad": {
			reason: "An invalid one must not become another invalid one.",
			before: timed(good(), invalid(`"x"`), nil), after: timed(good(), invalid(`"abc"`), nil), want: notDuration,
		},
		"Fixed":   {reason: "An invalid one may be fixed.", before: timed(good(), invalid(`"abc"`), nil), after: timed(good(), second, nil)},
		"Removed": {reason: "It may be removed.", before: timed(good(), invalid(`"abc"`), nil), after: good()},
		"SubGroups": {
			reason: "A change of the subgroups does not have to fix a stored duration.",
			before: timed(good(), invalid(`"abc"`), nil), after: timed(group(top("other")), invalid(`"abc"`), nil), warnings: []string{storedDelay},
		},
		"Terminating": {
			reason: "A terminating object loses its finalizers without a warning.",
			before: terminating(timed(good(), invalid(`"abc"`), nil)), after: terminating(timed(good(), invalid(`"abc"`), nil)),
		},
		"TerminatingBad": {
			reason: "It must not become invalid either.",
			before: terminating(good()), after: terminating(timed(good(), invalid(`"abc"`), nil)), want: notDuration,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := podgroup.Admit(tc.before, tc.after)
			if got.Message() != tc.want || got.Allowed() != (tc.want == "") {
				t.Errorf("%s\nAdmit(...) = %q, allowed %t, want %q", tc.reason, got.Message(), got.Allowed(), tc.want)
			}
			if diff := cmp.Diff(tc.warnings, got.WarningStrings()); diff != "" {
				t.Errorf("%s\nWarningStrings(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// Every invalid duration is a problem with field, value and fix, and the
// condition reports the first.
func TestInvalidDurations(t *testing.T) {
	const fix = "write numbers with units, one of ns, us, ms, s, m and h, or remove the field"
	pg := timed(good(), invalid(`"abc"`), invalid(`5`))
	want := []verdict.Problem{
		{Reason: v2alpha2.ReasonInvalidDuration, Field: "spec.preemptionDelay", Value: "abc", Message: notDuration, Fix: fix},
		{
			Reason: v2alpha2.ReasonInvalidDuration, Field: "spec.stalenessGracePeriod", Value: "5",
			Message: `stalenessGracePeriod "5" is not a duration such as 30s or 1h30m`, Fix: fix,
		},
	}
	if diff := cmp.Diff(want, podgroup.Check(pg).Problems); diff != "" {
		t.Errorf("Check(...): -want, +got:\n%s", diff)
	}
	if c := podgroup.Valid(pg, metav1.Time{}); c.Status != metav1.ConditionFalse || c.Reason != v2alpha2.ReasonInvalidDuration || c.Message != notDuration {
		t.Errorf("Valid(...) = %s %s: %s", c.Status, c.Reason, c.Message)
	}
}
