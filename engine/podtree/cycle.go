package podtree

// peel takes away, again and again, the subgroups that no remaining one has
// as its parent. Every subgroup has at most one parent, so what remains is
// exactly the members of cycles: those whose entry in the result is positive.
//
//	x -> y -> a -> b -> a      peels x, then y; a and b hold each other
func peel(up []int32) []int32 {
	children := make([]int32, len(up))
	for _, p := range up {
		if p != nobody {
			children[p]++
		}
	}
	for i := range up {
		for j := int32(i); j != nobody && children[j] == 0; j = up[j] {
			children[j] = -1
			if p := up[j]; p != nobody {
				children[p]--
			}
		}
	}

	return children
}

// checkCycles reports each cycle once, from its first member in list order.
func checkCycles(groups []SubGroup, up []int32) []Violation {
	var found []Violation
	left := peel(up)
	for i := range left {
		if left[i] <= 0 {
			continue
		}
		var path []string
		for j := int32(i); left[j] > 0; j = up[j] {
			left[j] = 0
			path = append(path, groups[j].Name)
		}
		found = append(found, Violation{
			Kind: Cycle, Index: i, Name: groups[i].Name, Path: append(path, groups[i].Name),
		})
	}

	return found
}
