package show

import "slices"

// A Tree is how the members of a list hang together that name their parents,
// also if they make no tree: a parent may be missing, and members may be each
// other's ancestors.
type Tree struct {
	// Nodes are the members, by their index in the list.
	Nodes []Node
	// Tops have no parent; loose are the heads of parts that hang in the air.
	Tops, Loose []int
}

// A Node is the place of one member.
type Node struct {
	Children []int
	// Below counts all descendants.
	Below int
	// Depth is 1 on top, and 0 in a loose part.
	Depth int
}

// What up says of members whose parent is no other member.
const (
	Top     = -1
	Missing = -2
)

// NewTree hangs every member in exactly one place: on top, else under a loose head
// that is lost, else under one that starts a cycle. up says, per member, the
// index of its parent.
func NewTree(up []int) Tree {
	s := Tree{Nodes: make([]Node, len(up))}

	for i, p := range up {
		if p >= 0 {
			s.Nodes[p].Children = append(s.Nodes[p].Children, i)
		}
	}

	hung := make([]bool, len(up))

	for i, p := range up {
		if p == Top {
			s.Tops = append(s.Tops, i)
			s.attach(i, 1, up, hung)
		}
	}

	for i, p := range up {
		if p == Missing {
			s.Loose = append(s.Loose, i)
			s.attach(i, 0, up, hung)
		}
	}

	for i := range up {
		if !hung[i] {
			head := onCycle(i, up)
			s.Loose = append(s.Loose, head)
			s.attach(head, 0, up, hung)
		}
	}

	slices.Sort(s.Loose)

	return s
}

// attach marks everything below head as hung, cuts the edge by which a cycle
// would come back, and counts descendants.
func (s *Tree) attach(head, depth int, up []int, hung []bool) {
	s.Nodes[head].Depth = depth
	hung[head] = true
	order := []int{head}

	for at := 0; at < len(order); at++ {
		n := &s.Nodes[order[at]]
		n.Children = slices.DeleteFunc(n.Children, func(c int) bool { return hung[c] })

		for _, c := range n.Children {
			hung[c] = true

			if n.Depth > 0 {
				s.Nodes[c].Depth = n.Depth + 1
			}
		}

		order = append(order, n.Children...)
	}

	for _, i := range slices.Backward(order[1:]) {
		s.Nodes[up[i]].Below += s.Nodes[i].Below + 1
	}
}

// onCycle returns the first member in list order of the cycle above i.
func onCycle(i int, up []int) int {
	slow, fast := up[i], up[up[i]]
	for slow != fast {
		slow, fast = up[slow], up[up[fast]]
	}

	first := slow
	for at := up[slow]; at != slow; at = up[at] {
		first = min(first, at)
	}

	return first
}
