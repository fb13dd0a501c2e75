package podtree

import (
	"iter"
	"slices"
)

// DefaultLeaf is the name of the one leaf of a gang without subgroups.
const DefaultLeaf = "default"

// A Tree is the gang at its root, with the subgroups below. It does not
// change after [New] and shares no memory with the Spec it was made from, so
// any number of goroutines may read it.
type Tree struct {
	nodes []Node
	// order holds the nodes depth first, siblings in list order.
	order  []int
	leaves []int
	byName map[string]int32
}

// A Node is the gang itself or one of its subgroups.
type Node struct {
	// Name of the subgroup, "" for the root.
	Name string
	// Index in Spec.SubGroups, -1 for the root and for the implicit leaf.
	Index int
	// Parent is the node above, -1 for the root.
	Parent int
	// Children are the nodes directly below in list order. The slice is shared: do not modify it.
	Children []int
	// Depth is the number of steps from the root.
	Depth int
	// MinMember is as written. Callers decide whether it applies to nodes with children.
	MinMember *int32
	// MinSubGroup is as written; see [Tree.RequiredChildren].
	MinSubGroup *int32
}

// IsLeaf reports whether pods can belong to the node.
func (n Node) IsLeaf() bool { return len(n.Children) == 0 }

// Root returns the node of the gang itself. It is never a leaf.
func (t *Tree) Root() int { return 0 }

// Len is the number of nodes, the root included.
func (t *Tree) Len() int { return len(t.nodes) }

// Node returns the i-th node, 0 <= i < Len. Nodes are numbered in list order
// after the root: Spec.SubGroups[k] is node k+1.
func (t *Tree) Node(i int) Node { return t.nodes[i] }

// All yields every node once, parents before children, siblings in list
// order, the root first.
func (t *Tree) All() iter.Seq2[int, Node] {
	return func(yield func(int, Node) bool) {
		for _, i := range t.order {
			if !yield(i, t.nodes[i]) {
				return
			}
		}
	}
}

// Leaves are the nodes that pods can belong to, in the order of All. There is
// always at least one.
func (t *Tree) Leaves() []int { return slices.Clone(t.leaves) }

// Leaf finds the leaf with exactly that name. It returns false for names of subgroups with
// children: no pod belongs to those.
func (t *Tree) Leaf(name string) (int, bool) {
	i, ok := t.byName[name]
	if !ok || !t.nodes[i].IsLeaf() {
		return 0, false
	}

	return int(i), true
}

// Path returns the names from the top down to the node; it is empty for the root.
func (t *Tree) Path(i int) []string {
	path := make([]string, t.nodes[i].Depth)
	for at := len(path) - 1; at >= 0; at-- {
		path[at] = t.nodes[i].Name
		i = t.nodes[i].Parent
	}

	return path
}

// RequiredChildren returns how many of the node's direct children must be satisfied before the node
// is: MinSubGroup, or all of them if that is absent. It may exceed the number of children: such a
// node can never be satisfied.
func (t *Tree) RequiredChildren(i int) int {
	n := t.nodes[i]
	if n.MinSubGroup == nil {
		return len(n.Children)
	}

	return max(0, int(*n.MinSubGroup))
}
