package podtree

import (
	"fmt"
	"strings"

	"github.com/arbor-control/arbor/engine/tree"
)

// A Spec is what a gang requests.
type Spec struct {
	// MinMember is how many pods a gang needs. Without subgroups, it is the minimum of the one
	// leaf.
	MinMember *int32
	// MinSubGroup is how many subgroups without a parent must be satisfied, nil for all.
	MinSubGroup *int32
	SubGroups   []SubGroup
}

// Unusable is the error for a list that is not a tree. A scheduler must not place pods of such a
// gang: with any other tree it could start a part of the gang.
type Unusable struct {
	// SubGroup is the name of the first invalid subgroup.
	SubGroup string
	// Index of that subgroup in Spec.SubGroups.
	Index int
	// Reason is a clause about the subgroup.
	Reason string
}

func (u *Unusable) Error() string {
	return fmt.Sprintf("cannot use subgroup %q (subGroups[%d]): %s", u.SubGroup, u.Index, u.Reason)
}

// New builds the tree of a gang. The parent of a subgroup is the gang itself
// when it is absent or empty, and otherwise the subgroup whose name, as
// written, is the parent in lower case. That is how lists were read before
// there was a rule for them, so stored ones keep their meaning.
//
// The error is an *[Unusable]: an empty name, a duplicate name, a parent that
// does not exist, or a subgroup that is its own ancestor.
func New(spec Spec) (*Tree, error) {
	byName, err := nodesByName(spec.SubGroups)
	if err != nil {
		return nil, err
	}
	up, err := resolve(spec.SubGroups, byName)
	if err != nil {
		return nil, err
	}
	if cycles := tree.Cycles(up); len(cycles) > 0 {
		return nil, unusable(spec.SubGroups, cycles[0][0], "it is its own ancestor")
	}

	t := &Tree{nodes: makeNodes(spec, up), byName: byName}
	if len(spec.SubGroups) == 0 {
		t.byName[DefaultLeaf] = 1
	}
	t.link()
	t.walk()

	return t, nil
}

// nodesByName maps names to nodes. The node of a subgroup is its index in the list plus one,
// because the root comes first.
func nodesByName(groups []SubGroup) (map[string]int32, error) {
	byName := make(map[string]int32, len(groups))
	for i := range groups {
		name := groups[i].Name
		if name == "" {
			return nil, unusable(groups, i, "it has no name")
		}
		if first, taken := byName[name]; taken {
			return nil, unusable(groups, i, fmt.Sprintf("subGroups[%d] has the same name", first-1))
		}
		byName[name] = int32(i) + 1
	}

	return byName, nil
}

// resolve returns, per subgroup, the index of its parent in the list.
func resolve(groups []SubGroup, byName map[string]int32) ([]int, error) {
	up := make([]int, len(groups))
	for i := range groups {
		up[i] = tree.None
		written := groups[i].Parent
		if written == nil || *written == "" {
			continue
		}
		lower := strings.ToLower(*written)
		node, ok := byName[lower]
		if !ok {
			return nil, unusable(groups, i, missing(*written, lower))
		}
		up[i] = int(node) - 1
	}

	return up, nil
}

func missing(written, lower string) string {
	if written == lower {
		return fmt.Sprintf("its parent %q is not in the list", written)
	}

	return fmt.Sprintf("its parent %q is looked up as %q, which is not in the list", written, lower)
}

func unusable(groups []SubGroup, i int, reason string) error {
	return &Unusable{SubGroup: groups[i].Name, Index: i, Reason: reason}
}

// makeNodes returns the nodes in list order after the root, without Children and Depth. tree.None
// as a parent is the root's index less 1.
func makeNodes(spec Spec, up []int) []Node {
	nodes := make([]Node, 1, max(2, len(up)+1))
	nodes[0] = Node{
		Index: -1, Parent: -1,
		MinMember: clone(spec.MinMember), MinSubGroup: clone(spec.MinSubGroup),
	}
	for i := range spec.SubGroups {
		g := &spec.SubGroups[i]
		nodes = append(nodes, Node{
			Name: g.Name, Index: i, Parent: up[i] + 1,
			MinMember: clone(g.MinMember), MinSubGroup: clone(g.MinSubGroup),
		})
	}
	if len(up) == 0 {
		nodes = append(nodes, Node{Name: DefaultLeaf, Index: -1, Parent: 0, MinMember: clone(spec.MinMember)})
	}

	return nodes
}

func clone(p *int32) *int32 {
	if p == nil {
		return nil
	}
	v := *p

	return &v
}

// link fills Children. All of them are slices of one array, each with its length as its capacity,
// so that an append by a reader cannot overwrite another slice.
func (t *Tree) link() {
	count := make([]int, len(t.nodes))
	for i := 1; i < len(t.nodes); i++ {
		count[t.nodes[i].Parent]++
	}
	all, at := make([]int, len(t.nodes)-1), 0
	for i, c := range count {
		t.nodes[i].Children = all[at : at : at+c]
		at += c
	}
	for i := 1; i < len(t.nodes); i++ {
		p := &t.nodes[t.nodes[i].Parent]
		p.Children = append(p.Children, i)
	}
}

// walk fills Depth and the two orders.
func (t *Tree) walk() {
	t.order = make([]int, 0, len(t.nodes))
	for i := range tree.Walk([]int{t.Root()}, func(i int) []int { return t.nodes[i].Children }) {
		n := &t.nodes[i]
		if n.Parent >= 0 {
			n.Depth = t.nodes[n.Parent].Depth + 1
		}
		t.order = append(t.order, i)
		if n.IsLeaf() {
			t.leaves = append(t.leaves, i)
		}
	}
}
