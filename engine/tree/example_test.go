package tree_test

import (
	"fmt"

	"github.com/arbor-control/arbor/engine/tree"
)

func ExampleOrder() {
	dependsOn := map[int][]int{0: {2}, 1: {0}} // 0 depends on 2, and 1 on 0
	order, cycle := tree.Order(3, func(i int) []int { return dependsOn[i] })
	fmt.Println(order, cycle)

	dependsOn[2] = []int{1}
	order, cycle = tree.Order(3, func(i int) []int { return dependsOn[i] })
	fmt.Println(order, cycle)
	// Output:
	// [2 0 1] []
	// [] [0 2 1]
}

func ExamplePath() {
	parents := map[string]string{"rack": "zone", "zone": "region"}
	path, _, _ := tree.Path("rack", func(name string) (string, bool, error) {
		parent, ok := parents[name]

		return parent, ok, nil
	})
	fmt.Println(path)
	// Output: [rack zone region]
}
