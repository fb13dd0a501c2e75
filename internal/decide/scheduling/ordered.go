package scheduling

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/arbor-control/arbor/engine/gang"
)

// OrderedReadyHint returns why a StatefulSet does not create the pods that a
// group waits for, and the fix; "" if the StatefulSet is not the reason. The
// group has too few pods: created is how many the StatefulSet has made of its
// replicas, minimum is how many the group or its subgroup needs at once.
func OrderedReadyHint(policy appsv1.PodManagementPolicyType, name string, created, replicas, minimum int) string {
	if policy == appsv1.ParallelPodManagement || created >= replicas {
		return ""
	}

	return fmt.Sprintf("StatefulSet %q creates a pod only when the one before is ready (podManagementPolicy: %s), "+
		"but no pod starts before %d exist: set podManagementPolicy: %s; to change it on a StatefulSet that exists, "+
		"delete it with --cascade=orphan and create it again",
		name, appsv1.OrderedReadyPodManagement, minimum, appsv1.ParallelPodManagement)
}

// Lacking returns the first of the withheld members that keeps the gang, or
// the subgroup that it belongs to, below its minimum, and that minimum. member
// is -1 if there are enough pods without them, or too few even with them.
func (g *Gang) Lacking(withheld func(member int) bool) (member, minimum int) {
	var rest []gang.Member
	first := -1
	for i, m := range g.Members {
		switch {
		case !withheld(i):
			rest = append(rest, m)
		case first < 0:
			first = i
		}
	}
	if gang.Missing(g.Tree, rest, g.Rules) == nil || gang.Missing(g.Tree, g.Members, g.Rules) != nil {
		return -1, 0
	}
	reports := gang.Satisfied(g.Tree, rest, g.Rules)
	for i, m := range g.Members {
		if !withheld(i) {
			continue
		}
		for node := m.Leaf; node >= 0; node = g.Tree.Node(node).Parent {
			if r := reports[node]; r.Pods-r.Held < r.Min {
				return i, r.Min
			}
		}
	}

	return first, reports[g.Tree.Root()].Min
}
