package scheduling_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/scheduling"
)

func said(status metav1.ConditionStatus, reason, message string, generation int64) v2alpha2.PodGroupStatus {
	return v2alpha2.PodGroupStatus{Conditions: []v2alpha2.PodGroupCondition{
		{Type: v2alpha2.PodGroupValid, Status: metav1.ConditionTrue},
		{
			Type: v2alpha2.PodGroupScheduled, Status: status, Reason: reason, Message: message, ObservedGeneration: generation,
			LastTransitionTime: metav1.NewTime(time.Unix(1_700_000_000, 0)),
		},
	}}
}

func TestShown(t *testing.T) {
	counted := said(metav1.ConditionTrue, "Scheduled", "every minimum is met", 2)
	counted.Placed = new(int32(4))
	counted.SubGroups = []v2alpha2.SubGroupStatus{{Name: "default", Placed: 4}}
	cases := map[string]struct {
		reason    string
		has, want v2alpha2.PodGroupStatus
		narrow    bool
		shown     bool
	}{
		"Nothing":    {reason: "what was never said is not there", want: counted},
		"Same":       {reason: "what is there need not be written", has: counted, want: counted, shown: true},
		"Generation": {reason: "it may be about an older spec", has: said(metav1.ConditionTrue, "Scheduled", "every minimum is met", 1), want: said(metav1.ConditionTrue, "Scheduled", "every minimum is met", 2)},
		"NoRoomForGeneration": {
			reason: "a definition without the generation is no reason to write for ever",
			has:    said(metav1.ConditionTrue, "Scheduled", "every minimum is met", 0), want: said(metav1.ConditionTrue, "Scheduled", "every minimum is met", 2), shown: true,
		},
		"Counts":          {reason: "counts are a part of it", has: said(metav1.ConditionTrue, "Scheduled", "every minimum is met", 2), want: counted},
		"NoRoomForCounts": {reason: "unless there is no room for them", has: said(metav1.ConditionTrue, "Scheduled", "every minimum is met", 2), want: counted, narrow: true, shown: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := *tc.want.DeepCopy()
			if got := scheduling.Shown(&v2alpha2.PodGroup{Status: tc.has}, want, !tc.narrow); got != tc.shown {
				t.Errorf("%s\nShown(...) = %t, want %t", tc.reason, got, tc.shown)
			}
			if diff := cmp.Diff(tc.want, want); diff != "" {
				t.Errorf("a question has changed what is written: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestTransition(t *testing.T) {
	short := said(metav1.ConditionFalse, "Unschedulable", "room for 1 of min 2 pods", 1)
	whole := said(metav1.ConditionTrue, "Scheduled", "every minimum is met", 1)
	cases := map[string]struct {
		reason    string
		has, want v2alpha2.PodGroupStatus
		kind      string
	}{
		"Placed":      {reason: "a group that got its place is good news", has: short, want: whole, kind: corev1.EventTypeNormal},
		"PlacedFirst": {reason: "at once too", want: whole, kind: corev1.EventTypeNormal},
		"Lost":        {reason: "one that lost it is not", has: whole, want: short, kind: corev1.EventTypeWarning},
		"OtherReason": {reason: "another reason is news", has: said(metav1.ConditionFalse, "TooFewPods", "it has 1 of min 2 pods", 1), want: short, kind: corev1.EventTypeWarning},
		"Same":        {reason: "the same with other figures is not", has: short, want: said(metav1.ConditionFalse, "Unschedulable", "room for 0 of min 2 pods", 1)},
		"Untried":     {reason: "nor is that nobody has tried yet", want: said(metav1.ConditionFalse, "Pending", "the group has not been tried yet", 1)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kind, c := scheduling.Transition(&v2alpha2.PodGroup{Status: tc.has}, tc.want)
			if kind != tc.kind || (c != nil) != (tc.kind != "") {
				t.Errorf("%s\nTransition(...) = %q, %v, want %q", tc.reason, kind, c, tc.kind)
			}
		})
	}
}

func TestKeep(t *testing.T) {
	has := &v2alpha2.PodGroup{Status: said(metav1.ConditionFalse, "Unschedulable", "room for 12 of min 20 pods: 0/4 nodes", 1)}
	want := said(metav1.ConditionFalse, "Unschedulable", "room for 9 of min 20 pods: 0/4 nodes", 1)
	scheduling.Keep(has, &want)
	if got := want.Conditions[1].Message; got != has.Status.Conditions[1].Message {
		t.Errorf("only a figure differs, but the message became %q", got)
	}
	changed := said(metav1.ConditionFalse, "Unschedulable", "room for 12 of min 30 pods: 0/4 nodes", 2)
	scheduling.Keep(has, &changed)
	if got := changed.Conditions[1].Message; got == has.Status.Conditions[1].Message {
		t.Errorf("the group asks for more, but the message stayed %q", got)
	}
	other := said(metav1.ConditionFalse, "Unschedulable", `subgroup "b": room for 9 of min 20 pods: 0/4 nodes`, 1)
	scheduling.Keep(has, &other)
	if got := other.Conditions[1].Message; got == has.Status.Conditions[1].Message {
		t.Errorf("another subgroup stands in the way, but the message stayed %q", got)
	}
}

func TestPreemptible(t *testing.T) {
	cases := map[string]struct {
		reason   string
		says     v2alpha2.Preemptibility
		priority int32
		want     bool
	}{
		"Low":      {reason: "a group that says nothing makes room if it is not important", priority: 50, want: true},
		"High":     {reason: "and does not from a priority of 100 on", priority: 100},
		"Promised": {reason: "what it says counts first", says: v2alpha2.Preemptible, priority: 1000, want: true},
		"Kept":     {reason: "both ways", says: v2alpha2.NonPreemptible, priority: 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pg := &v2alpha2.PodGroup{Spec: v2alpha2.PodGroupSpec{Preemptibility: tc.says}}
			if got := scheduling.Preemptible(pg, tc.priority); got != tc.want {
				t.Errorf("%s\nPreemptible(%q, %d) = %t, want %t", tc.reason, tc.says, tc.priority, got, tc.want)
			}
		})
	}
}

func TestWaiting(t *testing.T) {
	if c := scheduling.Waiting("no room", nil); c.Reason != corev1.PodReasonUnschedulable || c.Message != "no room" {
		t.Errorf("a pod without room has the condition %v, and autoscalers look for Unschedulable", c)
	}
	refused := &scheduling.Refusal{Reason: "TooFewPods", Message: "it has 1 of min 2 pods"}
	if c := scheduling.Waiting("no room", refused); c.Reason != "TooFewPods" || c.Message != refused.Message {
		t.Errorf("a pod whose gang is not complete has the condition %v; nobody should buy a node for it", c)
	}
}
