package podgroup

import (
	"fmt"
	"slices"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/podtree"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// Check returns all problems and warnings of a PodGroup as it is, however it
// came to be so.
func Check(pg *v2alpha2.PodGroup) verdict.Verdict {
	return verdict.Verdict{Problems: problems(pg), Warnings: warnings(pg)}
}

// Admit judges a change from before to after; before is nil when the object
// is new. It refuses only what the change makes wrong: if the list of
// subgroups stays as it is, the change passes, with one warning if that list
// breaks the rule. Nothing is said about an object that is being deleted.
func Admit(before, after *v2alpha2.PodGroup) verdict.Verdict {
	if before == nil || !slices.EqualFunc(before.Spec.SubGroups, after.Spec.SubGroups, sameSubGroup) {
		return Check(after)
	}

	var v verdict.Verdict
	if after.DeletionTimestamp != nil {
		return v
	}
	if found := problems(after); len(found) > 0 {
		v.Warnings = append(v.Warnings, verdict.Stored("subgroups break", found))
	}
	if !same(before.Spec.MinSubGroup, after.Spec.MinSubGroup) {
		v.Warnings = append(v.Warnings, countChildren(after.Spec.SubGroups).rootWarnings(after)...)
	}

	return v
}

// sameSubGroup compares by hand, because every update of every group passes
// here and reflection takes longer than the rule itself. A test fails when the
// type gets a field that is not compared.
func sameSubGroup(a, b v2alpha2.SubGroup) bool {
	return a.Name == b.Name &&
		same(a.Parent, b.Parent) &&
		same(a.MinMember, b.MinMember) &&
		same(a.MinSubGroup, b.MinSubGroup) &&
		same(a.TopologyConstraint, b.TopologyConstraint)
}

func same[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}

	return *a == *b
}

// Tree builds the tree that a scheduler works with. The error wraps a
// *[podtree.Unusable].
func Tree(pg *v2alpha2.PodGroup) (*podtree.Tree, error) {
	t, err := podtree.New(podtree.Spec{
		MinMember:   pg.Spec.MinMember,
		MinSubGroup: pg.Spec.MinSubGroup,
		SubGroups:   list(pg),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot build the tree of PodGroup %s/%s: %w", pg.Namespace, pg.Name, err)
	}

	return t, nil
}

func list(pg *v2alpha2.PodGroup) []podtree.SubGroup {
	groups := make([]podtree.SubGroup, len(pg.Spec.SubGroups))
	for i := range pg.Spec.SubGroups {
		g := &pg.Spec.SubGroups[i]
		groups[i] = podtree.SubGroup{
			Name: g.Name, Parent: g.Parent, MinMember: g.MinMember, MinSubGroup: g.MinSubGroup,
		}
	}

	return groups
}

// kinds says, per kind of violation, its reason and the field that it is in.
var kinds = map[podtree.Kind]struct{ reason, field string }{
	podtree.NameEmpty:          {v2alpha2.ReasonNameEmpty, "name"},
	podtree.NameNotLowercase:   {v2alpha2.ReasonNameNotLowercase, "name"},
	podtree.ParentNotLowercase: {v2alpha2.ReasonParentNotLowercase, "parent"},
	podtree.DuplicateName:      {v2alpha2.ReasonDuplicateName, "name"},
	podtree.ParentNotFound:     {v2alpha2.ReasonParentNotFound, "parent"},
	podtree.Cycle:              {v2alpha2.ReasonCycle, "parent"},
}

// problems puts the violations of the rule, in their order, into our words.
func problems(pg *v2alpha2.PodGroup) []verdict.Problem {
	violations := podtree.Check(list(pg))
	if len(violations) == 0 {
		return nil
	}
	m := newMender(pg.Spec.SubGroups)
	found := make([]verdict.Problem, len(violations))
	for i, v := range violations {
		kind, g := kinds[v.Kind], &pg.Spec.SubGroups[v.Index]
		value := g.Name
		if kind.field == "parent" {
			value = *g.Parent
		}
		found[i] = verdict.Problem{
			Reason:  kind.reason,
			Field:   entry(v.Index) + "." + kind.field,
			Value:   value,
			Message: v.Error(),
			Fix:     m.fix(v),
		}
	}

	return found
}

func entry(i int) string { return fmt.Sprintf("spec.subGroups[%d]", i) }
