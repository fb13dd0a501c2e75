package grouptree

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/verdict"
	"github.com/arbor-control/arbor/internal/show"
)

// A Tree is the tree of a PodGroup, and beside it the parts that hang in
// the air because a parent is missing or subgroups are each other's
// ancestors. Such lists make no tree for a scheduler, but people need to see
// them most. Parents are looked up as the scheduler does, in lower case.
type Tree struct {
	show.Tree

	// SubGroups are the subgroups, by their index in the list.
	SubGroups []subGroupNode
	// Notes are about the group itself.
	Notes []show.NoteView
}

// A subGroupNode is one subgroup, and its place in the tree.
type subGroupNode struct {
	v2alpha2.SubGroup
	*show.Node

	Notes []show.NoteView
}

// New returns the tree of a PodGroup, with the notes of a verdict.
func New(pg *v2alpha2.PodGroup, v verdict.Verdict) *Tree {
	up := parents(pg.Spec.SubGroups)
	f := &Tree{Tree: show.NewTree(up), SubGroups: make([]subGroupNode, len(pg.Spec.SubGroups))}

	for i, g := range pg.Spec.SubGroups {
		f.SubGroups[i].SubGroup, f.SubGroups[i].Node = g, &f.Nodes[i]
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
		up[i] = show.Top
		if g.Parent == nil || *g.Parent == "" {
			continue
		}

		p, ok := byName[strings.ToLower(*g.Parent)]
		if up[i] = p; !ok {
			up[i] = show.Missing
		}
	}

	return up
}

// annotate hands every problem and warning to the subgroup it is about.
func (f *Tree) annotate(v verdict.Verdict) {
	for _, p := range v.Problems {
		f.note(p.Field, show.NoteView{Severity: show.SeverityError, Message: show.WithFix(p.Message, p.Fix)})
	}

	for _, w := range v.Warnings {
		f.note(w.Field, show.NoteView{Severity: show.SeverityWarning, Message: w.Message})
	}
}

func (f *Tree) note(field string, n show.NoteView) {
	if i, ok := subGroupIndex(field); ok && i < len(f.SubGroups) {
		f.SubGroups[i].Notes = append(f.SubGroups[i].Notes, n)
	} else {
		f.Notes = append(f.Notes, n)
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
func (f *Tree) explainLoose(up []int, v verdict.Verdict) {
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

		if up[i] == show.Missing {
			if similar == nil {
				similar = f.byLowerCase()
			}

			why = lostParent(*f.SubGroups[i].Parent, similar)
		}

		f.SubGroups[i].Notes = slices.Insert(f.SubGroups[i].Notes, 0, show.NoteView{Severity: show.SeverityError, Message: why})
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

func (f *Tree) byLowerCase() map[string]string {
	out := make(map[string]string, len(f.SubGroups))
	for _, n := range slices.Backward(f.SubGroups) {
		out[strings.ToLower(n.Name)] = n.Name
	}

	return out
}
