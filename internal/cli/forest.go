package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// A forest is the tree of a PodGroup, and beside it the parts that hang in
// the air because a parent is missing or subgroups are each other's
// ancestors. Such lists make no tree for a scheduler, but people need to see
// them most. Parents are looked up as the scheduler does, in lower case.
type forest struct {
	// nodes are the subgroups, by their index in the list.
	nodes []twig
	// tops hang under the group itself; loose are the heads of other parts.
	tops, loose []int
	// notes are about the group itself.
	notes []note
}

// A twig is one subgroup.
type twig struct {
	v2alpha2.SubGroup

	children []int
	// below counts all descendants.
	below int
	// depth is 1 directly under the group, and 0 in a loose part.
	depth int
	notes []note
}

// A note is something to say about a subgroup.
type note struct {
	severity Severity
	text     string
}

// What up says of subgroups whose parent is no other subgroup.
const (
	underGroup = -1
	lost       = -2
)

func newForest(pg *v2alpha2.PodGroup, v verdict.Verdict) *forest {
	f := &forest{nodes: make([]twig, len(pg.Spec.SubGroups))}
	for i, g := range pg.Spec.SubGroups {
		f.nodes[i].SubGroup = g
	}

	up := parents(pg.Spec.SubGroups)
	f.grow(up)
	f.annotate(v)
	f.explainLoose(up, v)

	return f
}

// parents returns, per subgroup, the index of its parent. Of several
// subgroups with one name the first is meant.
func parents(groups []v2alpha2.SubGroup) []int {
	byName := make(map[string]int, len(groups))
	for i, g := range slices.Backward(groups) {
		if g.Name != "" {
			byName[g.Name] = i
		}
	}

	up := make([]int, len(groups))
	for i, g := range groups {
		up[i] = underGroup
		if g.Parent == nil || *g.Parent == "" {
			continue
		}

		p, ok := byName[strings.ToLower(*g.Parent)]
		if up[i] = p; !ok {
			up[i] = lost
		}
	}

	return up
}

// grow hangs every subgroup in exactly one place: under the group, else under
// a loose head that is lost, else under one that starts a cycle.
func (f *forest) grow(up []int) {
	for i, p := range up {
		if p >= 0 {
			f.nodes[p].children = append(f.nodes[p].children, i)
		}
	}

	hung := make([]bool, len(up))

	for i, p := range up {
		if p == underGroup {
			f.tops = append(f.tops, i)
			f.hang(i, 1, up, hung)
		}
	}

	for i, p := range up {
		if p == lost {
			f.loose = append(f.loose, i)
			f.hang(i, 0, up, hung)
		}
	}

	for i := range up {
		if !hung[i] {
			head := onCycle(i, up)
			f.loose = append(f.loose, head)
			f.hang(head, 0, up, hung)
		}
	}

	slices.Sort(f.loose)
}

// hang marks everything below head as hung, cuts the edge by which a cycle
// would come back, and counts descendants.
func (f *forest) hang(head, depth int, up []int, hung []bool) {
	f.nodes[head].depth = depth
	hung[head] = true
	order := []int{head}

	for at := 0; at < len(order); at++ {
		n := &f.nodes[order[at]]
		n.children = slices.DeleteFunc(n.children, func(c int) bool { return hung[c] })

		for _, c := range n.children {
			hung[c] = true

			if n.depth > 0 {
				f.nodes[c].depth = n.depth + 1
			}
		}

		order = append(order, n.children...)
	}

	for _, i := range slices.Backward(order[1:]) {
		f.nodes[up[i]].below += f.nodes[i].below + 1
	}
}

// onCycle returns the first member in list order of the cycle above i.
func onCycle(i int, up []int) int {
	slow, fast := up[i], up[up[i]]
	for slow != fast {
		slow, fast = up[slow], up[up[fast]]
	}

	first := slow
	for at := up[slow]; at != slow; at = up[at] {
		first = min(first, at)
	}

	return first
}

// annotate hands every problem and warning to the subgroup it is about.
func (f *forest) annotate(v verdict.Verdict) {
	for _, p := range v.Problems {
		f.note(p.Field, note{SeverityError, withFix(p.Message, p.Fix)})
	}

	for _, w := range v.Warnings {
		f.note(w.Field, note{SeverityWarning, w.Message})
	}
}

func (f *forest) note(field string, n note) {
	if i, ok := subGroupIndex(field); ok && i < len(f.nodes) {
		f.nodes[i].notes = append(f.nodes[i].notes, n)
	} else {
		f.notes = append(f.notes, n)
	}
}

// subGroupIndex reads the index from a path such as spec.subGroups[2].parent.
func subGroupIndex(field string) (int, bool) {
	rest, ok := strings.CutPrefix(field, "spec.subGroups[")
	digits, _, closed := strings.Cut(rest, "]")
	i, err := strconv.Atoi(digits)

	return i, ok && closed && err == nil && i >= 0
}

// explainLoose says why a part is loose where the rule had no words for it:
// it speaks of the case of a name, which once mended would be found.
func (f *forest) explainLoose(up []int, v verdict.Verdict) {
	said := map[int]bool{}

	for _, p := range v.Problems {
		if i, ok := subGroupIndex(p.Field); ok && (p.Reason == v2alpha2.ReasonParentNotFound || p.Reason == v2alpha2.ReasonCycle) {
			said[i] = true
		}
	}

	var similar map[string]string

	for _, i := range f.loose {
		if said[i] {
			continue
		}

		why := "it is its own ancestor"

		if up[i] == lost {
			if similar == nil {
				similar = f.byLowerCase()
			}

			why = lostParent(*f.nodes[i].Parent, similar)
		}

		f.nodes[i].notes = slices.Insert(f.nodes[i].notes, 0, note{SeverityError, why})
	}
}

// lostParent says why a parent was not found, and whether case is to blame.
func lostParent(parent string, similar map[string]string) string {
	lower := strings.ToLower(parent)
	name, ok := similar[lower]

	switch {
	case ok && parent == lower:
		return fmt.Sprintf("parent %q was not found: there is only %q", parent, name)
	case ok:
		return fmt.Sprintf("parent %q is looked up as %q, and there is only %q", parent, lower, name)
	default:
		return fmt.Sprintf("parent %q was not found", parent)
	}
}

func (f *forest) byLowerCase() map[string]string {
	out := make(map[string]string, len(f.nodes))
	for _, n := range slices.Backward(f.nodes) {
		out[strings.ToLower(n.Name)] = n.Name
	}

	return out
}
