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
	shape

	// nodes are the subgroups, by their index in the list.
	nodes []twig
	// notes are about the group itself.
	notes []note
}

// A twig is one subgroup, and its place in the forest.
type twig struct {
	v2alpha2.SubGroup
	*limb

	notes []note
}

// A note is something to say about a subgroup.
type note struct {
	severity Severity
	text     string
}

func newForest(pg *v2alpha2.PodGroup, v verdict.Verdict) *forest {
	up := parents(pg.Spec.SubGroups)
	f := &forest{shape: grow(up), nodes: make([]twig, len(pg.Spec.SubGroups))}

	for i, g := range pg.Spec.SubGroups {
		f.nodes[i].SubGroup, f.nodes[i].limb = g, &f.limbs[i]
	}

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
		up[i] = onTop
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
