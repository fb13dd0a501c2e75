package gang_test

import (
	"context"
	"fmt"

	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/engine/podtree"
)

// Two leaves need two pods each, and there is room for three.
func ExamplePlace() {
	tree, err := podtree.New(podtree.Spec{SubGroups: []podtree.SubGroup{
		{Name: "a", MinMember: num(2)},
		{Name: "b", MinMember: num(2)},
	}})
	if err != nil {
		fmt.Println(err)

		return
	}
	var members []gang.Member
	for _, leaf := range tree.Leaves() {
		members = append(members, gang.Member{Leaf: leaf}, gang.Member{Leaf: leaf}, gang.Member{Leaf: leaf})
	}
	for _, room := range []int{3, 5} {
		decision, err := gang.Place(context.Background(), tree, members, &roomy{free: room}, gang.Rules{})
		if err != nil {
			fmt.Println(err)

			return
		}
		fmt.Println(decision.Fits, len(decision.Places), decision.Reason(tree))
	}
	// Output:
	// false 0 subgroup "b": room for 1 of min 2 pods: 0/1 nodes are available: 1 Insufficient cpu.
	// true 5
}
