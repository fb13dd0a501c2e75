package gang_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/engine/podtree"
)

// The twin is the simplest form of the rule, without regard to time: every method walks the whole
// tree again. has is how many pods of a leaf have a place.
type twin struct {
	tree  *podtree.Tree
	rules gang.Rules
	has   func(leaf int) int
}

func (tw twin) below(i int) int {
	if tw.tree.Node(i).IsLeaf() {
		return tw.has(i)
	}
	total := 0
	for _, child := range tw.tree.Node(i).Children {
		total += tw.below(child)
	}

	return total
}

func (tw twin) satisfiedChildren(i int) int {
	total := 0
	for _, child := range tw.tree.Node(i).Children {
		if tw.satisfied(child) {
			total++
		}
	}

	return total
}

func (tw twin) satisfied(i int) bool {
	n := tw.tree.Node(i)
	needs := tw.tree.RequiredChildren(i)
	if tw.flat() && i == tw.tree.Root() {
		needs = max(needs, 1)
	}

	return tw.satisfiedChildren(i) >= needs && tw.below(i) >= tw.minimum(n)
}

func (tw twin) flat() bool { return tw.tree.Len() == 2 && tw.tree.Node(1).Index < 0 }

func (tw twin) minimum(n podtree.Node) int {
	switch {
	case n.IsLeaf() && n.MinMember == nil:
		return 1
	case n.IsLeaf():
		return int(*n.MinMember)
	case tw.flat() || tw.rules.LeavesOnly || n.MinMember == nil:
		return 0
	}

	return int(*n.MinMember)
}

// legal reports whether a node and all above it are satisfied, so that pods may be placed there.
func (tw twin) legal(i int) bool {
	for ; i >= 0; i = tw.tree.Node(i).Parent {
		if !tw.satisfied(i) {
			return false
		}
	}

	return true
}

// counts returns how many members of each leaf are in one of the states.
func counts(members []gang.Member, states ...gang.State) map[int]int {
	all := map[int]int{}
	for _, m := range members {
		if slices.Contains(states, m.State) {
			all[m.Leaf]++
		}
	}

	return all
}

// fits tries every number of further pods for every leaf, for pods that each take one of room
// places, and reports whether the gang's minimum can be met with no pod in a subgroup that does not
// have its own.
func fits(tree *podtree.Tree, members []gang.Member, rules gang.Rules, room int) bool {
	bound, waiting := counts(members, gang.Placed), counts(members, gang.Waiting)
	more := map[int]int{}
	tw := twin{tree: tree, rules: rules, has: func(leaf int) int { return bound[leaf] + more[leaf] }}
	leaves := tree.Leaves()
	var search func(at, room int) bool
	search = func(at, room int) bool {
		if at == len(leaves) {
			return tw.satisfied(tree.Root()) && !slices.ContainsFunc(leaves, func(leaf int) bool {
				return more[leaf] > 0 && !tw.legal(leaf)
			})
		}
		for n := range min(room, waiting[leaves[at]]) + 1 {
			more[leaves[at]] = n
			if search(at+1, room-n) {
				return true
			}
		}
		more[leaves[at]] = 0

		return false
	}

	return search(0, room)
}

// twinStale is Stale, member by member.
func twinStale(tree *podtree.Tree, members []gang.Member, rules gang.Rules) []int {
	bound := counts(members, gang.Placed)
	tw := twin{tree: tree, rules: rules, has: func(leaf int) int { return bound[leaf] }}
	var stale []int
	for at, m := range members {
		if m.State == gang.Placed && !tw.legal(m.Leaf) {
			stale = append(stale, at)
		}
	}

	return stale
}

// A scenario is a gang and a world, drawn from a source of numbers.
type scenario struct {
	*crowd

	rules gang.Rules
	world *fakeWorld
	// room is how many pods the world has places for, if all are alike.
	room int
}

// draw creates a scenario. With alike, all pods take one place; otherwise they differ in size, and
// some have affinity or anti-affinity to other pods.
func draw(next func(int) int, alike bool) scenario {
	s := scenario{crowd: &crowd{}, world: &fakeWorld{}, rules: gang.Rules{LeavesOnly: next(4) == 0}}
	for i := range next(8) {
		g := podtree.SubGroup{Name: "g" + strconv.Itoa(i)}
		if parent := next(i+2) - 1; parent >= 0 && parent < i {
			g.Parent = &s.spec.SubGroups[parent].Name
		}
		s.spec.SubGroups = append(s.spec.SubGroups, g)
	}
	s.build()
	s.spec.MinMember, s.spec.MinSubGroup = drawMinimums(next, s.tree.Node(0))
	for i := range s.spec.SubGroups {
		g := &s.spec.SubGroups[i]
		g.MinMember, g.MinSubGroup = drawMinimums(next, s.tree.Node(i+1))
	}
	s.build()

	for _, leaf := range s.tree.Leaves() {
		pods := next(3)
		if next(8) > 0 {
			pods += (twin{tree: s.tree}).minimum(s.tree.Node(leaf))
		}
		for range pods {
			state := [...]gang.State{gang.Placed, gang.Placed, gang.Held, gang.Waiting}[min(3, next(16))]
			s.join(leaf, state, drawPod(next, alike), next(4) == 0)
		}
	}
	for i := range 1 + next(3) {
		free := next(6)
		s.room += free
		s.world.add("node-"+strconv.Itoa(i), map[string]int{"gpu": free, "cpu": next(6)})
	}
	s.world.pods = s.pods

	return s
}

// drawMinimums prefers what can be met.
func drawMinimums(next func(int) int, n podtree.Node) (pods, groups *int32) {
	children := len(n.Children)
	if next(16) == 0 {
		groups = num(int32(children + 1))
	} else if children > 0 && next(3) > 0 {
		groups = num(int32(next(children + 1)))
	}
	switch {
	case children == 0 && next(8) > 0:
		pods = num(int32(next(5)))
	case next(4) == 0:
		pods = num(int32(next(3 + 3*children)))
	}

	return pods, groups
}

func drawPod(next func(int) int, alike bool) pod {
	if alike {
		return pod{wants: map[string]int{"gpu": 1}}
	}
	apps := []string{"", "a", "b"}

	return pod{
		wants: map[string]int{"gpu": 1 + next(3), "cpu": next(2)},
		app:   apps[next(3)], near: apps[next(6)%3*(next(4)/3)], away: apps[next(3)*(next(4)/3)],
	}
}

// String writes a scenario down, for those who look into a failure.
func (s scenario) String() string {
	var b strings.Builder
	show := func(p *int32) string {
		if p == nil {
			return "-"
		}

		return strconv.Itoa(int(*p))
	}
	fmt.Fprintf(&b, "(pods %s, groups %s", show(s.spec.MinMember), show(s.spec.MinSubGroup))
	for _, g := range s.spec.SubGroups {
		parent := ""
		if g.Parent != nil {
			parent = "<" + *g.Parent
		}
		fmt.Fprintf(&b, "; %s%s pods %s, groups %s", g.Name, parent, show(g.MinMember), show(g.MinSubGroup))
	}
	b.WriteString("; members")
	for i, m := range s.members {
		fmt.Fprintf(&b, " %s%c%v", s.tree.Node(m.Leaf).Name, "?!-"[m.State], s.pods[i])
	}
	fmt.Fprintf(&b, "; world %v; leaves only %t)", s.world.free, s.rules.LeavesOnly)

	return b.String()
}
