package podtree_test

import (
	"fmt"
	"strings"

	"github.com/arbor-control/arbor/engine/podtree"
)

func ExampleTree_All() {
	decode := "decode"
	tree, err := podtree.New(podtree.Spec{SubGroups: []podtree.SubGroup{
		{Name: "decode"},
		{Name: "workers", Parent: &decode, MinMember: num(4)},
		{Name: "leaders", Parent: &decode, MinMember: num(1)},
		{Name: "prefill", MinMember: num(2)},
	}})
	if err != nil {
		fmt.Println(err)

		return
	}
	for i, n := range tree.All() {
		name := strings.Repeat("    ", n.Depth) + n.Name
		switch {
		case i == tree.Root():
			fmt.Printf("the gang: %d of its subgroups\n", tree.RequiredChildren(i))
		case n.IsLeaf():
			fmt.Printf("%s: at least %d of its pods\n", name, *n.MinMember)
		default:
			fmt.Printf("%s: %d of its subgroups\n", name, tree.RequiredChildren(i))
		}
	}
	// Output:
	// the gang: 2 of its subgroups
	//     decode: 2 of its subgroups
	//         workers: at least 4 of its pods
	//         leaders: at least 1 of its pods
	//     prefill: at least 2 of its pods
}

func ExampleCheck() {
	master := "Master"
	for _, v := range podtree.Check([]podtree.SubGroup{
		{Name: "master"},
		{Name: "workers", Parent: &master},
		{Name: "Logs"},
	}) {
		fmt.Println(v.Index, v.Error())
	}
	// Output:
	// 1 parent of subgroup "workers": subgroup name "Master" must be lowercase
	// 2 subgroup name "Logs" must be lowercase
}
