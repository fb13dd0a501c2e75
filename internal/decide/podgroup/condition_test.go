package podgroup_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/podgroup"
)

func TestValid(t *testing.T) {
	then := metav1.NewTime(time.Unix(1_600_000_000, 0))
	now := metav1.NewTime(time.Unix(1_700_000_000, 0))
	had := func(pg *v2alpha2.PodGroup, conditions ...v2alpha2.PodGroupCondition) *v2alpha2.PodGroup {
		pg.Status.Conditions = conditions

		return pg
	}
	isTrue := v2alpha2.PodGroupCondition{
		Type: v2alpha2.PodGroupValid, Status: metav1.ConditionTrue, ObservedGeneration: 3,
		LastTransitionTime: now, Reason: v2alpha2.ReasonTreeValid, Message: "the subgroups form a tree",
	}
	isFalse := v2alpha2.PodGroupCondition{
		Type: v2alpha2.PodGroupValid, Status: metav1.ConditionFalse, ObservedGeneration: 3, LastTransitionTime: now,
		Reason: v2alpha2.ReasonNameNotLowercase, Message: `subgroup name "Master" must be lowercase`,
	}
	at := func(c v2alpha2.PodGroupCondition, when metav1.Time) v2alpha2.PodGroupCondition {
		c.LastTransitionTime = when

		return c
	}
	other := v2alpha2.PodGroupCondition{Type: "Other", Status: metav1.ConditionTrue, LastTransitionTime: then}
	numbered := at(isTrue, then)
	numbered.TransitionID = "7"

	cases := map[string]struct {
		reason string
		pg     *v2alpha2.PodGroup
		want   v2alpha2.PodGroupCondition
	}{
		"FirstTrue":  {reason: "a new condition begins now", pg: good(), want: isTrue},
		"FirstFalse": {reason: "the first problem is its message", pg: bad(), want: isFalse},
		"StaysTrue": {
			reason: "what stays true has been so since", pg: had(good(), other, at(isTrue, then)),
			want: at(isTrue, then),
		},
		"StaysFalse": {
			reason: "what stays false has been so since, also for another reason",
			pg: had(bad(), v2alpha2.PodGroupCondition{
				Type: v2alpha2.PodGroupValid, Status: metav1.ConditionFalse, ObservedGeneration: 1,
				LastTransitionTime: then, Reason: v2alpha2.ReasonCycle, Message: "another",
			}),
			want: at(isFalse, then),
		},
		"BecomesTrue":  {reason: "a change of status is a transition", pg: had(good(), at(isFalse, then)), want: isTrue},
		"BecomesFalse": {reason: "a change of status is a transition", pg: had(bad(), numbered), want: isFalse},
		"Unknown": {
			reason: "Unknown is another status",
			pg: had(good(), v2alpha2.PodGroupCondition{
				Type: v2alpha2.PodGroupValid, Status: metav1.ConditionUnknown, LastTransitionTime: then,
			}),
			want: isTrue,
		},
		"NoTime": {
			reason: "a condition without a time gets one",
			pg:     had(good(), at(isTrue, metav1.Time{})), want: isTrue,
		},
		"TransitionID": {reason: "what is not ours stays", pg: had(good(), numbered), want: numbered},
		"OtherType":    {reason: "conditions of other types do not matter", pg: had(good(), other), want: isTrue},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := podgroup.Valid(tc.pg, now)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nValid(...): -want, +got:\n%s", tc.reason, diff)
			}
			tc.pg.Status.Conditions = []v2alpha2.PodGroupCondition{got}
			later := metav1.NewTime(now.Add(time.Hour))
			if diff := cmp.Diff(got, podgroup.Valid(tc.pg, later)); diff != "" {
				t.Errorf("%s\nValid(...) again must change nothing: -first, +second:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestValidMessageIsBounded(t *testing.T) {
	got := podgroup.Valid(group(top(strings.Repeat("W", 100_000))), metav1.Time{})
	if len(got.Message) != 32768 || !strings.HasSuffix(got.Message, "...") {
		t.Errorf("Message has %d bytes, want it cut to 32768", len(got.Message))
	}
}
