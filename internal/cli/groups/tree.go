package groups

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/decide/verdict"
	"github.com/arbor-control/arbor/internal/show"
)

// A groupTree is the tree of a PodGroup, and beside it the parts that hang in
// the air because a parent is missing or subgroups are each other's
// ancestors. Such lists make no tree for a scheduler, but people need to see
// them most. Parents are looked up as the scheduler does, in lower case.
type groupTree struct {
	render.Tree

	// nodes are the subgroups, by their index in the list.
	nodes []subGroupNode
	// notes are about the group itself.
	notes []render.Note
}

// A subGroupNode is one subgroup, and its place in the forest.
type subGroupNode struct {
	v2alpha2.SubGroup
	*render.Node

	notes []render.Note
}

func newGroupTree(pg *v2alpha2.PodGroup, v verdict.Verdict) *groupTree {
	up := parents(pg.Spec.SubGroups)
	f := &groupTree{Tree: render.NewTree(up), nodes: make([]subGroupNode, len(pg.Spec.SubGroups))}

	for i, g := range pg.Spec.SubGroups {
		f.nodes[i].SubGroup, f.nodes[i].Node = g, &f.Nodes[i]
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
		up[i] = render.Top
		if g.Parent == nil || *g.Parent == "" {
			continue
		}

		p, ok := byName[strings.ToLower(*g.Parent)]
		if up[i] = p; !ok {
			up[i] = render.Missing
		}
	}

	return up
}

// annotate hands every problem and warning to the subgroup it is about.
func (f *groupTree) annotate(v verdict.Verdict) {
	for _, p := range v.Problems {
		f.note(p.Field, render.Note{Severity: show.SeverityError, Text: show.WithFix(p.Message, p.Fix)})
	}

	for _, w := range v.Warnings {
		f.note(w.Field, render.Note{Severity: show.SeverityWarning, Text: w.Message})
	}
}

func (f *groupTree) note(field string, n render.Note) {
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
func (f *groupTree) explainLoose(up []int, v verdict.Verdict) {
	said := map[int]bool{}

	for _, p := range v.Problems {
		if i, ok := subGroupIndex(p.Field); ok && (p.Reason == v2alpha2.ReasonParentNotFound || p.Reason == v2alpha2.ReasonCycle) {
			said[i] = true
		}
	}

	var similar map[string]string

	for _, i := range f.Loose {
		if said[i] {
			continue
		}

		why := "it is its own ancestor"

		if up[i] == render.Missing {
			if similar == nil {
				similar = f.byLowerCase()
			}

			why = lostParent(*f.nodes[i].Parent, similar)
		}

		f.nodes[i].notes = slices.Insert(f.nodes[i].notes, 0, render.Note{Severity: show.SeverityError, Text: why})
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

func (f *groupTree) byLowerCase() map[string]string {
	out := make(map[string]string, len(f.nodes))
	for _, n := range slices.Backward(f.nodes) {
		out[strings.ToLower(n.Name)] = n.Name
	}

	return out
}
