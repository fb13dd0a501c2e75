package podtree

import (
	"strings"

	"github.com/arbor-control/arbor/engine/tree"
)

// A SubGroup is one entry of a gang's list.
type SubGroup struct {
	Name string
	// Parent is the name of another entry, nil for the gang itself.
	Parent *string
	// MinMember is how many pods of the subgroup must be placed.
	MinMember *int32
	// MinSubGroup is how many direct children must be satisfied, nil for all.
	MinSubGroup *int32
}

// Check returns every violation of the rules, in the order in which they are reported, and nil for
// a valid list. First are those of single entries in list order (for each: empty name, case of the
// name, case of the parent, duplicate), then the missing parents in list order, then the cycles in
// list order of their first members. A subgroup whose ancestors form a cycle, but which is not in
// it, is not reported. Check takes time linear in the list.
func Check(groups []SubGroup) []Violation {
	n := newNames(groups)
	found := checkEntries(groups, n)

	up := make([]int, len(groups))
	for i := range groups {
		up[i] = tree.None
		if groups[i].Parent == nil {
			continue
		}
		if up[i] = n.find(*groups[i].Parent); up[i] == tree.None {
			found = append(found, Violation{
				Kind: ParentNotFound, Index: i, Name: groups[i].Name, Parent: *groups[i].Parent,
			})
		}
	}

	return append(found, checkCycles(groups, up)...)
}

// checkEntries reports violations that depend on an entry and those before it, and fills n.
func checkEntries(groups []SubGroup, n *names) []Violation {
	var found []Violation
	for i := range groups {
		name, parent := groups[i].Name, groups[i].Parent
		if name == "" {
			found = append(found, Violation{Kind: NameEmpty, Index: i})
		}
		if !isLower(name) {
			found = append(found, Violation{Kind: NameNotLowercase, Index: i, Name: name})
		}
		if parent != nil && !isLower(*parent) {
			found = append(found, Violation{Kind: ParentNotLowercase, Index: i, Name: name, Parent: *parent})
		}
		if first, fresh := n.add(i); !fresh {
			found = append(found, Violation{Kind: DuplicateName, Index: i, Name: name, First: first})
		}
	}

	return found
}

func isLower(s string) bool { return s == strings.ToLower(s) }

// names finds the subgroup that a parent refers to.
type names struct {
	groups []SubGroup
	exact  map[string]int32
	// folded holds lower-cased names. It is built when an exact match fails for the first time,
	// which never happens in a valid list.
	folded map[string]int32
}

func newNames(groups []SubGroup) *names {
	return &names{groups: groups, exact: make(map[string]int32, len(groups))}
}

// add records the i-th name. If another entry has it, fresh is false and first is that entry.
func (n *names) add(i int) (first int, fresh bool) {
	name := n.groups[i].Name
	if name == "" {
		return i, true
	}
	if j, taken := n.exact[name]; taken {
		return int(j), false
	}
	n.exact[name] = int32(i) //nolint:gosec // a list of 2^31 subgroups fits no memory

	return i, true
}

// find returns the first entry with the name, else the first whose name differs only by case, else
// tree.None.
func (n *names) find(name string) int {
	if i, ok := n.exact[name]; ok {
		return int(i)
	}
	if n.folded == nil {
		n.fold()
	}
	if i, ok := n.folded[strings.ToLower(name)]; ok {
		return int(i)
	}

	return tree.None
}

func (n *names) fold() {
	n.folded = make(map[string]int32, len(n.exact))
	for i := range n.groups {
		lower := strings.ToLower(n.groups[i].Name)
		if _, taken := n.folded[lower]; !taken && lower != "" {
			n.folded[lower] = int32(i)
		}
	}
}
