package podtree

import "github.com/arbor-control/arbor/engine/tree"

// checkCycles reports each cycle once, from its first member in list order.
func checkCycles(groups []SubGroup, up []int) []Violation {
	var found []Violation
	for _, cycle := range tree.Cycles(up) {
		path := make([]string, 0, len(cycle)+1)
		for _, i := range cycle {
			path = append(path, groups[i].Name)
		}
		first := cycle[0]
		found = append(found, Violation{
			Kind: Cycle, Index: first, Name: groups[first].Name, Path: append(path, groups[first].Name),
		})
	}

	return found
}
