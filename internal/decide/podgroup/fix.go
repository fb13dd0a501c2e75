package podgroup

import (
	"fmt"
	"strings"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/podtree"
)

// maxSearches bounds how many missing parents are compared with every name,
// so that advice stays linear in a list where everything is wrong.
const maxSearches = 8

// A fixer suggests fixes for violations of one list.
type fixer struct {
	groups []v2alpha2.SubGroup
	// exact and lower hold the first holder of each name, as written and in
	// lower case.
	exact, lower map[string]int
	searches     int
}

func newFixer(groups []v2alpha2.SubGroup) *fixer {
	m := &fixer{
		groups: groups,
		exact:  make(map[string]int, len(groups)),
		lower:  make(map[string]int, len(groups)),
	}
	for i := range groups {
		enter(m.exact, groups[i].Name, i)
		enter(m.lower, strings.ToLower(groups[i].Name), i)
	}

	return m
}

func enter(holders map[string]int, name string, i int) {
	if _, taken := holders[name]; !taken {
		holders[name] = i
	}
}

// owner is the subgroup that has the lower-case name, or that gets it first when names are fixed.
func (m *fixer) owner(lower string) int {
	if i, ok := m.exact[lower]; ok {
		return i
	}

	return m.lower[lower]
}

func (m *fixer) fix(v podtree.Violation) string {
	switch v.Kind {
	case podtree.NameEmpty:
		return "give it a name"
	case podtree.NameNotLowercase:
		return m.fixName(v)
	case podtree.ParentNotLowercase:
		return m.fixParentCase(v)
	case podtree.DuplicateName:
		return fmt.Sprintf("rename %s or %s", entry(v.First), entry(v.Index))
	case podtree.ParentNotFound:
		return m.fixParent(v)
	case podtree.Cycle:
		return "remove the parent of one of them"
	}

	return ""
}

func (m *fixer) fixName(v podtree.Violation) string {
	lower := strings.ToLower(v.Name)
	if i := m.owner(lower); i != v.Index {
		return fmt.Sprintf("choose another name, because %q belongs to %s", lower, entry(i))
	}

	return fmt.Sprintf("rename it to %q", lower)
}

// fixParentCase looks out for a parent that means one subgroup as written and
// another one in lower case.
func (m *fixer) fixParentCase(v podtree.Violation) string {
	lower := strings.ToLower(v.Parent)
	meant, exists := m.exact[v.Parent]
	if i := m.owner(lower); exists && i != meant {
		return fmt.Sprintf("write %q if %s is meant, or the new name of %s", lower, entry(i), entry(meant))
	}

	return fmt.Sprintf("write %q", lower)
}

func (m *fixer) fixParent(v podtree.Violation) string {
	lower := strings.ToLower(v.Parent)
	if strings.TrimSpace(lower) == "" {
		return "remove the empty parent to put it under the group itself"
	}
	fix := fmt.Sprintf("add a subgroup named %q or remove the parent", lower)
	if near := m.nearest(v.Index, lower); near != "" {
		return fmt.Sprintf("did you mean %q? otherwise %s", near, fix)
	}

	return fix
}

// nearest returns the name, in lower case, that is most like the parent of
// the i-th subgroup, the first of several, and "" if none is close.
func (m *fixer) nearest(i int, parent string) string {
	if m.searches == maxSearches {
		return ""
	}
	m.searches++

	parent = strings.TrimSpace(parent)
	best, edits := "", allowedEdits(parent)+1
	for j := range m.groups {
		name := strings.ToLower(m.groups[j].Name)
		if name == "" || m.groups[j].Name == m.groups[i].Name {
			continue
		}
		for edits > 0 && within(parent, strings.TrimSpace(name), edits-1) {
			best = name
			edits--
		}
	}

	return best
}

// allowedEdits is how many slips of the keyboard a name of that length may
// have before it is another name.
func allowedEdits(name string) int {
	switch {
	case len(name) < 3:
		return 0
	case len(name) < 6:
		return 1
	default:
		return 2
	}
}

// within reports whether a becomes b by at most that many edits: a character more, less or another,
// or two swapped. It branches only where they differ, so its time is linear in their length for a
// small number of edits.
func within(a, b string, edits int) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	if a == "" || b == "" {
		return len(a)+len(b) <= edits
	}
	if edits == 0 {
		return false
	}
	if swapped(a, b) && within(a[2:], b[2:], edits-1) {
		return true
	}

	return within(a[1:], b[1:], edits-1) || within(a[1:], b, edits-1) || within(a, b[1:], edits-1)
}

func swapped(a, b string) bool {
	return len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0]
}
