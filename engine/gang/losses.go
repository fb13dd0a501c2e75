package gang

import (
	"cmp"
	"slices"

	"github.com/arbor-control/arbor/engine/podtree"
)

// Losses tracks what a running gang can lose without breaking it. A placed
// member leaves in the smallest of these units:
//
//	the member alone          if every node on its path stays satisfied
//	a whole subgroup          if the nodes above it stay satisfied
//	the whole gang            otherwise
//
// A subgroup that is below its minimum already leaves whole: it is useless, and the gang does not
// count on it.
type Losses struct {
	*census

	members []Member
	// placed are the members that had a place in the beginning, in the order of
	// the tree's leaves. Those below node i are placed[first[i]:][:total[i]].
	placed       []int
	first, total []int

	// left are the members that have left, in order, and gone the same by
	// member.
	left []int
	gone []bool
}

// NewLosses returns what the members can lose that are [Placed] now.
func NewLosses(tree *podtree.Tree, members []Member, rules Rules) *Losses {
	l := &Losses{
		census: count(tree, members, rules), members: members,
		first: make([]int, tree.Len()), gone: make([]bool, len(members)),
	}
	l.total = slices.Clone(l.bound)
	seen := 0
	for _, i := range l.order {
		l.first[i] = seen
		if tree.Node(i).IsLeaf() {
			seen += l.bound[i]
		}
	}
	for at, m := range members {
		if m.State == Placed {
			l.placed = append(l.placed, at)
		}
	}
	slices.SortStableFunc(l.placed, func(a, b int) int {
		return cmp.Compare(l.first[members[a].Leaf], l.first[members[b].Leaf])
	})

	return l
}

// With returns the placed members that leave together with a member, itself
// included, given what has left already. It is nil if the member has left or is
// not placed.
func (l *Losses) With(member int) []int {
	if l.gone[member] || l.members[member].State != Placed {
		return nil
	}
	unit := l.unit(l.members[member].Leaf)
	if unit < 0 {
		return []int{member}
	}
	all := make([]int, 0, l.bound[unit])
	for _, other := range l.placed[l.first[unit]:][:l.total[unit]] {
		if !l.gone[other] {
			all = append(all, other)
		}
	}

	return all
}

// unit returns the node of the tree that leaves whole with a member of a leaf,
// -1 if the member leaves alone. That is the topmost node on the path that is
// not satisfied once those have left that leave below it.
func (l *Losses) unit(leaf int) int {
	unit, pods, children := -1, 1, 0
	for i := leaf; i >= 0; i = l.tree.Node(i).Parent {
		if l.children[i]-children >= l.required[i] && l.bound[i]-pods >= l.min[i] {
			children = 0

			continue
		}
		unit, pods, children = i, l.bound[i], 0
		if l.satisfied[i] {
			children = 1
		}
	}

	return unit
}

// Take removes the members that leave with a member, and returns them.
func (l *Losses) Take(member int) []int {
	all := l.With(member)
	for _, m := range all {
		l.gone[m] = true
		l.add(m, -1)
	}
	l.left = append(l.left, all...)

	return all
}

// Mark names the present state.
func (l *Losses) Mark() int { return len(l.left) }

// Rollback restores the state that a mark names.
func (l *Losses) Rollback(mark int) {
	for _, m := range l.left[mark:] {
		l.gone[m] = false
		l.add(m, 1)
	}
	l.left = l.left[:mark]
}

// add counts a member in or out, up to the root.
func (l *Losses) add(member, n int) {
	children := 0
	for i := l.members[member].Leaf; i >= 0; i = l.tree.Node(i).Parent {
		l.bound[i] += n
		l.children[i] += children
		children = 0
		now := l.children[i] >= l.required[i] && l.bound[i] >= l.min[i]
		if now != l.satisfied[i] {
			l.satisfied[i] = now
			children = n
		}
	}
}

// Broken reports whether the gang or one of its subgroups falls below a minimum
// that it meets now, and keeps some of its placed members, when those leave
// that left selects.
func Broken(tree *podtree.Tree, members []Member, rules Rules, left func(member int) bool) bool {
	remaining := slices.Clone(members)
	for at, m := range members {
		if m.State == Placed && left(at) {
			remaining[at].State = Held
		}
	}
	before, after := count(tree, members, rules), count(tree, remaining, rules)
	for i := range tree.All() {
		if before.satisfied[i] && !after.satisfied[i] && after.bound[i] > 0 {
			return true
		}
	}

	return false
}
