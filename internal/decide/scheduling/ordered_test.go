package scheduling_test

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/internal/decide/scheduling"
)

func TestOrderedReadyHint(t *testing.T) {
	const hint = `StatefulSet "web" creates a pod only when the one before is ready (podManagementPolicy: OrderedReady), ` +
		`but no pod starts before 4 exist: set podManagementPolicy: Parallel; ` +
		`to change it on a StatefulSet that exists, delete it with --cascade=orphan and create it again`
	cases := map[string]struct {
		reason            string
		policy            appsv1.PodManagementPolicyType
		created, replicas int
		want              string
	}{
		"Ordered":  {reason: "the next pod waits for the first", policy: appsv1.OrderedReadyPodManagement, created: 1, replicas: 4, want: hint},
		"Default":  {reason: "that is the default", created: 1, replicas: 4, want: hint},
		"Parallel": {reason: "other pods are on their way", policy: appsv1.ParallelPodManagement, created: 1, replicas: 4},
		"All":      {reason: "the StatefulSet has made all its pods: the others are somebody else's", created: 1, replicas: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := scheduling.OrderedReadyHint(tc.policy, "web", tc.created, tc.replicas, 4); got != tc.want {
				t.Errorf("%s\ngot  %q\nwant %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestLacking(t *testing.T) {
	four := func(name string) v2alpha2.SubGroup { return v2alpha2.SubGroup{Name: name, MinMember: num(4)} }
	flat := func(minimum int32) *v2alpha2.PodGroup {
		pg := group()
		pg.Spec.MinMember = &minimum

		return pg
	}
	either := group(leaf("empty"), four("full"))
	either.Spec.MinMember, either.Spec.MinSubGroup = nil, num(1)
	total := group(leaf("a"), leaf("b"))
	total.Spec.MinMember = num(6)

	cases := map[string]struct {
		reason string
		pg     *v2alpha2.PodGroup
		pods   map[string]int // by subgroup
		// withheld are names of pods.
		withheld []string
		want     string
		minimum  int
	}{
		"Enough":      {reason: "one pod is the minimum", pg: flat(1), pods: map[string]int{"": 4}, withheld: []string{"-1", "-2", "-3"}},
		"Others":      {reason: "other pods are enough", pg: flat(2), pods: map[string]int{"": 4}, withheld: []string{"-3"}},
		"TooFew":      {reason: "there are too few even with them", pg: flat(5), pods: map[string]int{"": 4}, withheld: []string{"-1"}},
		"None":        {reason: "nothing is withheld", pg: flat(4), pods: map[string]int{"": 4}},
		"Flat":        {reason: "the group lacks them", pg: flat(4), pods: map[string]int{"": 4}, withheld: []string{"-1", "-2", "-3"}, want: "-1", minimum: 4},
		"OtherLeaf":   {reason: "the member is one of the subgroup that lacks it", pg: group(leaf("a"), four("b")), pods: map[string]int{"a": 4, "b": 4}, withheld: []string{"a-1", "b-2"}, want: "b-2", minimum: 4},
		"Alternative": {reason: "an alternative that has no pods is not the reason", pg: either, pods: map[string]int{"full": 4}, withheld: []string{"full-2"}, want: "full-2", minimum: 4},
		"Total":       {reason: "the subgroups have enough, the group has not", pg: total, pods: map[string]int{"a": 1, "b": 5}, withheld: []string{"b-2"}, want: "b-2", minimum: 6},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g, refusal := scheduling.Read(tc.pg, podsOf(tc.pods), gang.Rules{})
			if refusal != nil {
				t.Fatal(refusal.Message)
			}
			member, minimum := g.Lacking(func(i int) bool { return slices.Contains(tc.withheld, g.Pods[i].Name) })
			got := ""
			if member >= 0 {
				got = g.Pods[member].Name
			}
			if got != tc.want || minimum != tc.minimum {
				t.Errorf("%s\nLacking(...) = %q, %d, want %q, %d", tc.reason, got, minimum, tc.want, tc.minimum)
			}
		})
	}
}

// podsOf makes pods named after their subgroup: a-0, a-1.
func podsOf(counts map[string]int) []*corev1.Pod {
	var all []*corev1.Pod
	for subGroup, n := range counts {
		for i := range n {
			all = append(all, pod(fmt.Sprintf("%s-%d", subGroup, i), subGroup))
		}
	}

	return all
}
