package gang

import (
	"slices"

	"github.com/arbor-control/arbor/engine/podtree"
)

// Enough returns those of some waiting members that the minimum of the gang needs if no other
// members are placed: without any one of them it is not met. The first ones are preferred. It is
// nil if all of them together are not enough, and if the minimum is met without them.
func Enough(tree *podtree.Tree, members []Member, rules Rules, some []int) []int {
	now := slices.Clone(members)
	met := func() bool { return count(tree, now, rules).satisfied[tree.Root()] }
	for _, i := range some {
		now[i].State = Placed
	}
	if !met() {
		return nil
	}
	var needed []int
	for _, i := range slices.Backward(some) {
		now[i].State = Waiting
		if !met() {
			now[i].State = Placed
			needed = append(needed, i)
		}
	}
	slices.Reverse(needed)

	return needed
}
