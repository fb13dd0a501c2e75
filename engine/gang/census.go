package gang

import (
	"math"
	"slices"

	"github.com/arbor-control/arbor/engine/podtree"
)

// never is the need of a node that cannot be satisfied with the pods that
// exist.
const never = math.MaxInt

// A census is what is known without asking the World. All of it is by number
// of the tree's nodes, and counts of pods include those below.
type census struct {
	tree *podtree.Tree
	// order holds parents before children.
	order []int

	min      []int // pods that must have a place
	required []int // direct children that must be satisfied

	pods, bound, held []int

	// satisfied with the pods that have a place.
	satisfied []bool
	// children that are satisfied.
	children []int
	// within is how many pods could have a place at best: those of subgroups
	// that cannot reach their own minimum never will.
	within []int
	// need is how many more pods must find a place at least, or never.
	need []int
	// able is how many direct children could be satisfied.
	able []int
}

func count(tree *podtree.Tree, members []Member, rules Rules) *census {
	n := tree.Len()
	c := &census{
		tree: tree, order: make([]int, 0, n),
		min: make([]int, n), required: make([]int, n),
		pods: make([]int, n), bound: make([]int, n), held: make([]int, n),
		satisfied: make([]bool, n), children: make([]int, n),
		within: make([]int, n), need: make([]int, n), able: make([]int, n),
	}
	for i, node := range tree.All() {
		c.order = append(c.order, i)
		c.min[i], c.required[i] = minimums(tree, i, node, rules)
	}
	for _, m := range members {
		c.pods[m.Leaf]++
		switch m.State {
		case Placed:
			c.bound[m.Leaf]++
		case Held:
			c.held[m.Leaf]++
		case Waiting:
		}
	}
	for _, i := range slices.Backward(c.order) {
		c.sum(i)
	}

	return c
}

// minimums returns how many pods and how many direct children a node needs.
func minimums(tree *podtree.Tree, i int, node podtree.Node, rules Rules) (pods, children int) {
	children = tree.RequiredChildren(i)
	switch {
	case node.IsLeaf():
		pods = 1
	case isImplicit(tree):
		// The one leaf has the gang's minimum. There are no subgroups to count,
		// so a minSubGroup of 0 takes nothing away from it.
		return 0, max(1, children)
	case rules.LeavesOnly:
		return 0, children
	}
	if node.MinMember != nil {
		pods = max(0, int(*node.MinMember))
	}

	return pods, children
}

// isImplicit reports whether the gang has no subgroups.
func isImplicit(tree *podtree.Tree) bool { return tree.Len() == 2 && tree.Node(1).Index < 0 }

// sum completes a node whose children are complete.
func (c *census) sum(i int) {
	node := c.tree.Node(i)
	if node.IsLeaf() {
		c.within[i] = c.pods[i] - c.held[i]
	}
	for _, child := range node.Children {
		c.pods[i] += c.pods[child]
		c.bound[i] += c.bound[child]
		c.held[i] += c.held[child]
		c.within[i] += c.within[child]
		if c.satisfied[child] {
			c.children[i]++
		}
		if c.need[child] != never {
			c.able[i]++
		}
	}
	c.satisfied[i] = c.children[i] >= c.required[i] && c.bound[i] >= c.min[i]
	if c.able[i] < c.required[i] || c.within[i] < c.min[i] {
		c.need[i], c.within[i] = never, c.bound[i]

		return
	}
	c.need[i] = max(0, c.min[i]-c.bound[i], c.cheapest(i, node.Children))
}

// cheapest is how many pods the required children need, if the cheapest are
// chosen.
func (c *census) cheapest(i int, children []int) int {
	needs := make([]int, 0, len(children))
	for _, child := range children {
		if c.need[child] != never {
			needs = append(needs, c.need[child])
		}
	}
	if c.required[i] < len(needs) {
		slices.Sort(needs)
	}
	total := 0
	for _, need := range needs[:c.required[i]] {
		total += need
	}

	return total
}

// enough reports whether enough pods exist for the minimum of a node.
func (c *census) enough(i int) bool { return c.need[i] != never }

func (c *census) reports() []Report {
	all := make([]Report, c.tree.Len())
	for i := range all {
		all[i] = Report{
			Min: c.min[i], MinChildren: c.required[i],
			Pods: c.pods[i], Bound: c.bound[i], Held: c.held[i],
			Children: c.children[i], Satisfied: c.satisfied[i], Blocker: -1,
		}
	}

	return all
}

// Satisfied reports what has a place now. It asks no World.
func Satisfied(tree *podtree.Tree, members []Member, rules Rules) []Report {
	return count(tree, members, rules).reports()
}

// Stale returns the indexes of the placed members that must be evicted if nothing changes. If the
// gang's minimum is not met, these are all of them. Otherwise they are those of optional subgroups
// that are below their own minimum: each of the topmost that are not satisfied is evicted whole.
func Stale(tree *podtree.Tree, members []Member, rules Rules) []int {
	c := count(tree, members, rules)
	// A node is evicted if it, or a node above it, is not satisfied.
	goes := make([]bool, tree.Len())
	for _, i := range c.order {
		up := tree.Node(i).Parent
		goes[i] = !c.satisfied[i] || up >= 0 && goes[up]
	}
	var stale []int
	for at, m := range members {
		if m.State == Placed && goes[m.Leaf] {
			stale = append(stale, at)
		}
	}

	return stale
}

// Missing returns the first place that lacks pods, nil if enough exist for
// every minimum. Pods that are held do not count.
func Missing(tree *podtree.Tree, members []Member, rules Rules) *Lack {
	c := count(tree, members, rules)
	if c.enough(tree.Root()) {
		return nil
	}

	return c.lack(tree.Root())
}

// lack describes a node without enough pods. Where a set lacks children, it continues with the
// first that does; where all children are needed, that one is what lacks.
func (c *census) lack(i int) *Lack {
	l := &Lack{
		Node: i, Pods: c.pods[i], Held: c.held[i], Min: c.min[i],
		Children: c.able[i], MinChildren: c.required[i],
	}
	child := c.lacking(i)
	if child < 0 {
		return l
	}
	l.First = c.lack(child)
	if c.required[i] == len(c.tree.Node(i).Children) {
		return l.First
	}

	return l
}

// lacking returns the child because of which a node does not have enough pods,
// -1 if it is not one of the children.
func (c *census) lacking(i int) int {
	children := c.tree.Node(i).Children
	if c.able[i] >= c.required[i] || c.required[i] > len(children) {
		return -1
	}
	at := slices.IndexFunc(children, func(child int) bool { return !c.enough(child) })

	return children[at]
}
