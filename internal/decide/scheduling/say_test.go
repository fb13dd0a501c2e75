package scheduling_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
		"Binding":     {reason: "nor is binding, which follows by itself", has: short, want: said(metav1.ConditionFalse, "Binding", "1 of 2", 1)},
		"Preempting":  {reason: "preemption has an event of its own", has: short, want: said(metav1.ConditionFalse, "Preempting", "1 of 2", 1)},
		"Blocked":     {reason: "unless it does not go on", has: short, want: said(metav1.ConditionFalse, "PreemptionBlocked", "1 of 2", 1), kind: corev1.EventTypeWarning},
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

func TestAlike(t *testing.T) {
	cases := map[string]struct {
		reason string
		a, b   string
		want   bool
	}{
		"Same":        {"equal messages are alike", "room for 1", "room for 1", true},
		"Number":      {"a number is a figure", "room for 12 of min 20 pods", "room for 9 of min 20 pods", true},
		"Fraction":    {"so is one of another", "0/4 nodes are available: 4 Insufficient cpu.", "0/12 nodes are available: 12 Insufficient cpu.", true},
		"Punctuation": {"also at the end of a sentence", "it takes 3.", "it takes 4.", true},
		"Name":        {"the digits of a name are not", `subgroup "replica-0": room for 1`, `subgroup "replica-7": room for 1`, false},
		"Version":     {"nor those in a word", "node n1 is full", "node n2 is full", false},
		"NumberName":  {"nor is a name that is a number in quotes", `subgroup "0": room for 1`, `subgroup "7": room for 1`, false},
		"Words":       {"other words are other words", "room for 1 pod", "room for 1 node", false},
		"Longer":      {"so are more of them", "room for 1", "room for 1 pod", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := scheduling.Alike(tc.a, tc.b); got != tc.want {
				t.Errorf("%s\nAlike(%q, %q) = %t", tc.reason, tc.a, tc.b, got)
			}
		})
	}
}

func TestKeep(t *testing.T) {
	has := said(metav1.ConditionFalse, "Unschedulable", `subgroup "r-0": room for 12 of min 20 pods`, 1)
	summed := *has.DeepCopy()
	summed.ResourcesStatus.Requested = corev1.ResourceList{"cpu": resource.MustParse("4")}
	counted := *summed.DeepCopy()
	counted.Placed = new(int32(1))
	cases := map[string]struct {
		reason string
		want   v2alpha2.PodGroupStatus
		kept   bool
	}{
		"Figure":     {"only a figure differs", said(metav1.ConditionFalse, "Unschedulable", `subgroup "r-0": room for 9 of min 20 pods`, 1), true},
		"Same":       {"nothing differs, so there is nothing to keep", has, false},
		"Generation": {"the group asks for more", said(metav1.ConditionFalse, "Unschedulable", `subgroup "r-0": room for 12 of min 30 pods`, 2), false},
		"Name":       {"another subgroup stands in the way", said(metav1.ConditionFalse, "Unschedulable", `subgroup "r-7": room for 12 of min 20 pods`, 1), false},
		"Reason":     {"it is another reason", said(metav1.ConditionFalse, "Preempting", `subgroup "r-0": room for 9 of min 20 pods`, 1), false},
		"Sums":       {"sums alone are not worth a write", summed, true},
		"Counts":     {"with something else they are", counted, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pg, want := &v2alpha2.PodGroup{Status: *has.DeepCopy()}, *tc.want.DeepCopy()
			if got := scheduling.Keep(pg, &want, true); got != tc.kept {
				t.Errorf("%s\nKeep(...) = %t", tc.reason, got)
			}
			left := tc.want
			if tc.kept {
				left = has
			}
			if diff := cmp.Diff(left.Conditions, want.Conditions); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(left.ResourcesStatus, want.ResourcesStatus); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPassing(t *testing.T) {
	cases := map[string]struct {
		reason    string
		has, want v2alpha2.PodGroupStatus
		passing   bool
	}{
		"New":     {"most new groups are placed in a moment", v2alpha2.PodGroupStatus{}, said("False", "Pending", "", 1), true},
		"Few":     {"their pods come one after the other", v2alpha2.PodGroupStatus{}, said("False", "TooFewPods", "", 1), true},
		"Bind":    {"binding takes a moment", said("False", "Unschedulable", "", 1), said("False", "Binding", "", 1), true},
		"Known":   {"what is there already need not last", said("False", "Binding", "a", 1), said("False", "Binding", "b", 1), false},
		"Placed":  {"a placed group is worth a write", said("False", "Pending", "", 1), said("True", "Scheduled", "", 1), false},
		"Refused": {"so is one that has to be fixed", v2alpha2.PodGroupStatus{}, said("False", "Invalid", "", 1), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := scheduling.Passing(&v2alpha2.PodGroup{Status: tc.has}, tc.want); got != tc.passing {
				t.Errorf("%s\nPassing(...) = %t", tc.reason, got)
			}
		})
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
