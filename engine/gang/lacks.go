package gang

import (
	"slices"

	"github.com/arbor-control/arbor/engine/podtree"
)

// Lacks returns for each node of the tree what it lacks, nil for those for which
// enough pods exist. Pods of a node that lacks some are never tried.
func Lacks(tree *podtree.Tree, members []Member, rules Rules) []*Lack {
	c := count(tree, members, rules)
	all := make([]*Lack, tree.Len())
	for i := range all {
		if !c.enough(i) {
			all[i] = c.lack(i)
		}
	}

	return all
}

// Lacking returns a lower bound of how many pods have to be added, or released
// from being held, before enough exist for every minimum. With fewer changes
// than that, [Missing] still finds something. It is at least 1 if something is
// missing, and 0 otherwise.
func Lacking(tree *podtree.Tree, members []Member, rules Rules) int {
	c := count(tree, members, rules)
	if c.enough(tree.Root()) {
		return 0
	}
	lacks := make([]int, tree.Len())
	for _, i := range slices.Backward(c.order) {
		var below []int
		for _, child := range tree.Node(i).Children {
			below = append(below, lacks[child])
		}
		slices.Sort(below)
		lacks[i] = max(0, c.min[i]-(c.pods[i]-c.held[i]))
		total := 0
		for _, lack := range below[:min(c.required[i], len(below))] {
			total += lack
		}
		lacks[i] = max(lacks[i], total)
	}

	return max(1, lacks[tree.Root()])
}
