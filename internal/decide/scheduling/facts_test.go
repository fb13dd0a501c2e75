package scheduling_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/internal/decide/scheduling"
)

func ofStatefulSet(p *corev1.Pod) {
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "web", Controller: new(true)}}
}

func TestGate(t *testing.T) {
	cases := map[string]struct {
		reason string
		pods   []*corev1.Pod
		want   *scheduling.Refusal
	}{
		"Enough": {reason: "two pods are enough", pods: []*corev1.Pod{pod("a", ""), pod("b", "")}},
		"Few": {
			reason: "one pod is not", pods: []*corev1.Pod{pod("a", "")},
			want: &scheduling.Refusal{Reason: "TooFewPods", Message: "it has 1 of min 2 pods"},
		},
		"Gated": {
			reason: "pods with gates do not count, and are named as the cause", pods: []*corev1.Pod{pod("a", ""), pod("b", "", gated), pod("c", "", gated)},
			want: &scheduling.Refusal{Reason: "TooFewPods", Message: "it has 1 of min 2 pods, and 2 that may not be placed yet; pods with scheduling gates: 2"},
		},
		"OneByOne": {
			reason: "a StatefulSet may wait for the pod that waits for it", pods: []*corev1.Pod{pod("a", "", ofStatefulSet)},
			want: &scheduling.Refusal{
				Reason: "TooFewPods", Message: `it has 1 of min 2 pods; StatefulSet "web" creates one pod after the other unless its podManagementPolicy is Parallel`,
			},
		},
		"OneRuns": {
			reason: "but not for one that has a node", pods: []*corev1.Pod{pod("a", "", ofStatefulSet, bound)},
			want: &scheduling.Refusal{Reason: "TooFewPods", Message: "it has 1 of min 2 pods"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g, _ := scheduling.Read(group(), tc.pods, gang.Rules{})
			if diff := cmp.Diff(tc.want, g.Gate()); diff != "" {
				t.Errorf("%s\nGate(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWaiting(t *testing.T) {
	// r0 is enough for the gang, r1 is optional.
	replicas := group(
		v2alpha2.SubGroup{Name: "s", MinSubGroup: num(1)},
		v2alpha2.SubGroup{Name: "r0", Parent: new("s"), MinMember: num(2)}, v2alpha2.SubGroup{Name: "r1", Parent: new("s"), MinMember: num(3)},
	)
	two := []*corev1.Pod{pod("a", "", named), pod("b", "", named)}
	cases := map[string]struct {
		reason string
		group  *v2alpha2.PodGroup
		pods   []*corev1.Pod
		room   int
		change func(*scheduling.Facts)
		want   []string // reason and message of each pod, "" for none
	}{
		"NoRoom": {
			reason: "pods that were tried, and for which there is no room, are what autoscalers add nodes for",
			group:  group(), pods: two, room: 1,
			want: []string{
				"Unschedulable: gang ml/bert: room for 1 of min 2 pods: 0/1 nodes are available: 1 Too many pods.",
				"Unschedulable: gang ml/bert: room for 1 of min 2 pods: 0/1 nodes are available: 1 Too many pods.",
			},
		},
		"NoRoomForMore": {
			reason: "so are further pods of a gang that fits, but not those that get a node",
			group:  group(), pods: []*corev1.Pod{two[0], two[1], pod("c", "", named)}, room: 2,
			want: []string{"", "", "Unschedulable: gang ml/bert has its minimum; there is no room for more of its pods now"},
		},
		"Untried": {reason: "a pod that was not tried is told nothing", group: group(), pods: two, room: -1, want: []string{"", ""}},
		"NewPod": {
			reason: "nor is one that came after the attempt", group: group(), pods: two, room: 0,
			change: func(f *scheduling.Facts) { delete(f.Outcome.NoRoom, "b") },
			want:   []string{"Unschedulable: gang ml/bert: room for 0 of min 2 pods: 0/1 nodes are available: 1 Too many pods.", ""},
		},
		"OtherGeneration": {
			reason: "what was decided about another generation does not count", group: group(), pods: two, room: 0,
			change: func(f *scheduling.Facts) { f.Outcome.Generation-- }, want: []string{"", ""},
		},
		"TooFewPods": {
			reason: "no node helps a gang that lacks pods", group: group(), pods: two[:1], room: 5,
			want: []string{"TooFewPods: it has 1 of min 2 pods"},
		},
		"Gated": {
			reason: "a pod with gates keeps the condition that it has, and the others wait for it",
			group:  group(), pods: []*corev1.Pod{two[0], pod("b", "", named, gated)}, room: 5,
			want: []string{"TooFewPods: it has 1 of min 2 pods, and 1 that may not be placed yet; pods with scheduling gates: 1", ""},
		},
		"OptionalIncomplete": {
			reason: "no node helps a subgroup that lacks pods, although its gang is scheduled",
			group:  replicas, pods: []*corev1.Pod{pod("a", "r0", named, bound), pod("b", "r0", named, bound), pod("c", "r1", named)}, room: 5,
			want: []string{"", "", `SubGroupIncomplete: subgroup "r1" has 1 of min 3 pods; the gang itself is scheduled`},
		},
		"OptionalIncompleteWaiting": {
			reason: "nor if its gang waits",
			group:  replicas, pods: []*corev1.Pod{pod("a", "r0", named), pod("b", "r0", named), pod("c", "r1", named)}, room: 0,
			want: []string{
				"Unschedulable: gang ml/bert: only 0 of min 1 subgroups of \"s\" fit: subgroup \"r0\": room for 0 of min 2 pods: 0/1 nodes are available: 1 Too many pods.",
				"Unschedulable: gang ml/bert: only 0 of min 1 subgroups of \"s\" fit: subgroup \"r0\": room for 0 of min 2 pods: 0/1 nodes are available: 1 Too many pods.",
				`SubGroupIncomplete: subgroup "r1" has 1 of min 3 pods; the gang does not wait for it`,
			},
		},
		"Refused": {
			reason: "no node helps a group that cannot be read", group: group(leaf("x")), pods: []*corev1.Pod{pod("a", "", named), pod("b", "x", named, bound)}, room: 5,
			want: []string{`NoSubGroup: pod "a" names no subgroup of PodGroup "bert": set its label kai.scheduler/subgroup-name to "x"`, ""},
		},
		"Error": {
			reason: "nor one that could not be tried", group: group(), pods: two, room: -1,
			change: func(f *scheduling.Facts) {
				f.Outcome = &scheduling.Outcome{About: scheduling.Spec(f.Group), Error: &scheduling.Refusal{Reason: "SchedulerError", Message: "no answer"}}
			},
			want: []string{"SchedulerError: no answer", "SchedulerError: no answer"},
		},
		"Ended": {
			reason: "pods that have ended or are being deleted are told nothing", group: group(),
			pods: []*corev1.Pod{pod("a", "", succeeded), pod("b", "", failed), pod("c", "", going)}, room: -1, want: []string{"", "", ""},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := factsOf(t, tc.group, tc.pods, tc.room)
			if tc.change != nil {
				tc.change(f)
			}
			got := make([]string, len(tc.pods))
			for i, c := range scheduling.Waiting(f) {
				if c != nil {
					got[i] = c.Reason + ": " + c.Message
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nWaiting(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
