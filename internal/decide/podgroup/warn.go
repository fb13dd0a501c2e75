package podgroup

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// shownName is how much of a name a warning repeats.
const shownName = 48

// warnings returns what is allowed but cannot work: first of the group itself,
// then of its subgroups in list order.
func warnings(pg *v2alpha2.PodGroup) []verdict.Warning {
	c := countChildren(pg.Spec.SubGroups)
	found := append(c.rootWarnings(pg), levelWarnings("spec", &pg.Spec.TopologyConstraint)...)
	for i := range pg.Spec.SubGroups {
		g := &pg.Spec.SubGroups[i]
		found = append(found, levelWarnings(entry(i), g.TopologyConstraint)...)
		if g.Name == "" {
			continue
		}
		children := c.below[strings.ToLower(g.Name)]
		if children == 0 {
			found = append(found, labelWarnings(i, g.Name)...)
		}
		if tooMany(g.MinSubGroup, children) {
			found = append(found, minWarning(entry(i), *g.MinSubGroup, children))
		}
	}

	return found
}

// children counts direct children. Names are compared in lower case, so that the numbers are also
// right for a list whose case must still be fixed.
type children struct {
	top   int
	below map[string]int
}

func countChildren(groups []v2alpha2.SubGroup) children {
	c := children{below: make(map[string]int, len(groups))}
	for i := range groups {
		if p := groups[i].Parent; p == nil || *p == "" {
			c.top++
		} else {
			c.below[strings.ToLower(*p)]++
		}
	}

	return c
}

// rootWarnings does not write "never" about a group without subgroups: its one implicit leaf counts
// as a child.
func (c children) rootWarnings(pg *v2alpha2.PodGroup) []verdict.Warning {
	required := pg.Spec.MinSubGroup
	if !tooMany(required, c.top) {
		return nil
	}
	if len(pg.Spec.SubGroups) == 0 {
		return []verdict.Warning{{
			Field:   "spec.minSubGroup",
			Message: fmt.Sprintf("%d asks for subgroups, but the group has none", *required),
		}}
	}

	return []verdict.Warning{minWarning("spec", *required, c.top)}
}

func tooMany(required *int32, children int) bool {
	return required != nil && int(*required) > children
}

func minWarning(field string, required int32, children int) verdict.Warning {
	return verdict.Warning{
		Field:   field + ".minSubGroup",
		Message: fmt.Sprintf("%d can never be satisfied, because it has %s", required, subgroups(children)),
	}
}

func subgroups(n int) string {
	switch n {
	case 0:
		return "no subgroups directly below it"
	case 1:
		return "only 1 subgroup directly below it"
	default:
		return fmt.Sprintf("only %d subgroups directly below it", n)
	}
}

// levelWarnings is about a required level, which the scheduler must not ignore
// and cannot keep.
func levelWarnings(field string, c *v2alpha2.TopologyConstraint) []verdict.Warning {
	if c == nil || c.RequiredTopologyLevel == "" {
		return nil
	}

	return []verdict.Warning{{
		Field: field + ".topologyConstraint.requiredTopologyLevel",
		Message: fmt.Sprintf("%q cannot be kept, so no pod of the group is placed (TopologyNotSupported): "+
			"this release has no topology constraints; remove the level, or use the affinity of pods", verdict.Shorten(c.RequiredTopologyLevel, shownName)),
	}}
}

// labelWarnings is about leaves: a pod names its subgroup in a label.
func labelWarnings(i int, name string) []verdict.Warning {
	if isPlain(name) || len(validation.IsValidLabelValue(name)) == 0 {
		return nil
	}
	why := "must begin and end with a letter or digit, with only those and '-', '_', '.' between"
	if len(name) > validation.LabelValueMaxLength {
		why = fmt.Sprintf("may have at most %d characters", validation.LabelValueMaxLength)
	}

	return []verdict.Warning{{
		Field:   entry(i) + ".name",
		Message: fmt.Sprintf("%q cannot be a label value, which %s, so no pod can join it", verdict.Shorten(name, shownName), why),
	}}
}

// isPlain reports for nearly every name that it can be a label value, without the regular
// expression that was most of the cost of a large group.
func isPlain(name string) bool {
	if name == "" || len(name) > validation.LabelValueMaxLength {
		return false
	}
	for i := range len(name) {
		c := name[i]
		alphanumeric := 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
		if !alphanumeric && (c != '-' || i == 0 || i == len(name)-1) {
			return false
		}
	}

	return true
}
