package gang

import (
	"math"
	"slices"

	"github.com/arbor-control/arbor/engine/podtree"
)

// Least returns a lower bound of what the members that the minimum of a gang
// still needs ask for, whichever of the waiting members are placed. asks has
// what each member asks for, of one resource. It is 0 if not enough members
// exist for the minimum.
func Least(tree *podtree.Tree, members []Member, rules Rules, asks []int64) int64 {
	c := count(tree, members, rules)
	// waiting has the asks of the members that wait, at each leaf, and below each
	// set that has a minimum of pods.
	waiting := make([][]int64, tree.Len())
	for at, m := range members {
		if m.State != Waiting {
			continue
		}
		for i := m.Leaf; i >= 0; i = tree.Node(i).Parent {
			if c.min[i] > 0 {
				waiting[i] = append(waiting[i], asks[at])
			}
		}
	}
	least := make([]int64, tree.Len())
	for _, i := range slices.Backward(c.order) {
		if c.enough(i) {
			least[i] = max(smallest(waiting[i], c.min[i]-c.bound[i]), c.leastOfChildren(i, least))
		}
	}

	return least[tree.Root()]
}

// leastOfChildren is what the required children of a node ask for, if those that
// ask for the least are chosen.
func (c *census) leastOfChildren(i int, least []int64) int64 {
	var all []int64
	for _, child := range c.tree.Node(i).Children {
		if c.enough(child) {
			all = append(all, least[child])
		}
	}

	return smallest(all, c.required[i])
}

// smallest adds up the n smallest of some amounts. The sum does not overflow.
func smallest(amounts []int64, n int) int64 {
	slices.Sort(amounts)
	total := int64(0)
	for _, amount := range amounts[:max(0, min(n, len(amounts)))] {
		if total > math.MaxInt64-amount {
			return math.MaxInt64
		}
		total += amount
	}

	return total
}
