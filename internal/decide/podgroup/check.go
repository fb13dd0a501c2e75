package podgroup

import (
	"fmt"
	"slices"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/podtree"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// Check returns the problems of a PodGroup as it is, and warnings about what
// cannot work.
func Check(pg *v2alpha2.PodGroup) verdict.Verdict {
	return verdict.Verdict{Problems: problems(pg), Warnings: warnings(pg)}
}

// Lint is Check for a PodGroup that is about to be applied: it also warns about
// fields that have no effect.
func Lint(pg *v2alpha2.PodGroup) verdict.Verdict {
	v := Check(pg)
	v.Warnings = append(v.Warnings, ineffective(nil, pg)...)

	return v
}

// Admit validates a change from before to after; before is nil when the object is new. It rejects
// only what the change makes invalid: if the list of subgroups and the durations stay as they are,
// the change passes, with one warning each if they are invalid. Other fields are warned about when
// they change. An object that is being deleted gets no warnings.
func Admit(before, after *v2alpha2.PodGroup) verdict.Verdict {
	if before == nil {
		return Lint(after)
	}
	durations := admitDurations(before, after)
	v := verdict.Verdict{}
	switch {
	case !slices.EqualFunc(before.Spec.SubGroups, after.Spec.SubGroups, sameSubGroup):
		v.Problems, v.Warnings = treeProblems(after), warnings(after)
	case after.DeletionTimestamp != nil:
		return verdict.Verdict{Problems: durations.Problems}
	default:
		v.Warnings = sameListWarnings(before, after)
	}
	v.Problems = append(v.Problems, durations.Problems...)
	v.Warnings = slices.Concat(v.Warnings, durations.Warnings, ineffective(before, after))

	return v
}

// sameListWarnings is about a change that leaves the list of subgroups as it is.
func sameListWarnings(before, after *v2alpha2.PodGroup) []verdict.Warning {
	var found []verdict.Warning
	if wrong := treeProblems(after); len(wrong) > 0 {
		found = append(found, verdict.Stored("subgroups break", wrong))
	}
	if !same(before.Spec.MinSubGroup, after.Spec.MinSubGroup) {
		found = append(found, countChildren(after.Spec.SubGroups).rootWarnings(after)...)
	}
	if before.Spec.TopologyConstraint.RequiredTopologyLevel != after.Spec.TopologyConstraint.RequiredTopologyLevel {
		found = append(found, levelWarnings("spec", &after.Spec.TopologyConstraint)...)
	}

	return found
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

// kinds has, per kind of violation, its reason and the field that it is in.
var kinds = map[podtree.Kind]struct{ reason, field string }{
	podtree.NameEmpty:          {v2alpha2.ReasonNameEmpty, "name"},
	podtree.NameNotLowercase:   {v2alpha2.ReasonNameNotLowercase, "name"},
	podtree.ParentNotLowercase: {v2alpha2.ReasonParentNotLowercase, "parent"},
	podtree.DuplicateName:      {v2alpha2.ReasonDuplicateName, "name"},
	podtree.ParentNotFound:     {v2alpha2.ReasonParentNotFound, "parent"},
	podtree.Cycle:              {v2alpha2.ReasonCycle, "parent"},
}

// problems returns those of the subgroups and then those of the durations.
func problems(pg *v2alpha2.PodGroup) []verdict.Problem {
	return append(treeProblems(pg), durationProblems(pg)...)
}

// treeProblems returns a problem for each violation of the rule for subgroups,
// in the order of the violations.
func treeProblems(pg *v2alpha2.PodGroup) []verdict.Problem {
	violations := podtree.Check(list(pg))
	if len(violations) == 0 {
		return nil
	}
	m := newFixer(pg.Spec.SubGroups)
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
