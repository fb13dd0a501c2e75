package cli

import "slices"

// A shape is how the members of a list hang together that name their parents,
// also if they make no tree: a parent may be missing, and members may be each
// other's ancestors.
type shape struct {
	// limbs are the members, by their index in the list.
	limbs []limb
	// tops have no parent; loose are the heads of parts that hang in the air.
	tops, loose []int
}

// A limb is the place of one member.
type limb struct {
	children []int
	// below counts all descendants.
	below int
	// depth is 1 on top, and 0 in a loose part.
	depth int
}

// What up says of members whose parent is no other member.
const (
	onTop = -1
	lost  = -2
)

// grow hangs every member in exactly one place: on top, else under a loose head
// that is lost, else under one that starts a cycle. up says, per member, the
// index of its parent.
func grow(up []int) shape {
	s := shape{limbs: make([]limb, len(up))}

	for i, p := range up {
		if p >= 0 {
			s.limbs[p].children = append(s.limbs[p].children, i)
		}
	}

	hung := make([]bool, len(up))

	for i, p := range up {
		if p == onTop {
			s.tops = append(s.tops, i)
			s.hang(i, 1, up, hung)
		}
	}

	for i, p := range up {
		if p == lost {
			s.loose = append(s.loose, i)
			s.hang(i, 0, up, hung)
		}
	}

	for i := range up {
		if !hung[i] {
			head := onCycle(i, up)
			s.loose = append(s.loose, head)
			s.hang(head, 0, up, hung)
		}
	}

	slices.Sort(s.loose)

	return s
}

// hang marks everything below head as hung, cuts the edge by which a cycle
// would come back, and counts descendants.
func (s *shape) hang(head, depth int, up []int, hung []bool) {
	s.limbs[head].depth = depth
	hung[head] = true
	order := []int{head}

	for at := 0; at < len(order); at++ {
		n := &s.limbs[order[at]]
		n.children = slices.DeleteFunc(n.children, func(c int) bool { return hung[c] })

		for _, c := range n.children {
			hung[c] = true

			if n.depth > 0 {
				s.limbs[c].depth = n.depth + 1
			}
		}

		order = append(order, n.children...)
	}

	for _, i := range slices.Backward(order[1:]) {
		s.limbs[up[i]].below += s.limbs[i].below + 1
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
