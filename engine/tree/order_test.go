package tree_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/arbor-control/arbor/engine/tree"
)

// graph has the edges of each node.
type graph [][]int

func (g graph) next(i int) []int { return g[i] }

func TestOrder(t *testing.T) {
	cases := map[string]struct {
		reason string
		given  graph
		order  []int
		cycle  []int
	}{
		"Empty": {
			reason: "No nodes have an order, and no cycle.",
		},
		"Independent": {
			reason: "Nodes without edges keep their order.",
			given:  graph{{}, {}, {}},
			order:  []int{0, 1, 2},
		},
		"Chain": {
			reason: "A node comes after the one that it depends on.",
			given:  graph{{1}, {2}, {}},
			order:  []int{2, 1, 0},
		},
		"Diamond": {
			reason: "A node that two other nodes depend on comes once, and dependencies keep their order.",
			given:  graph{{2, 1}, {3}, {3}, {}},
			order:  []int{3, 2, 1, 0},
		},
		"RepeatedEdge": {
			reason: "To name a dependency twice changes nothing.",
			given:  graph{{1, 1}, {}},
			order:  []int{1, 0},
		},
		"Self": {
			reason: "A node that depends on itself is the shortest cycle.",
			given:  graph{{}, {1}},
			cycle:  []int{1},
		},
		"CycleBehindPath": {
			reason: "The way to a cycle is not part of it.",
			given:  graph{{1}, {2}, {3}, {1}},
			cycle:  []int{1, 2, 3},
		},
		"FirstCycle": {
			reason: "Of several cycles, the first that is found is returned.",
			given:  graph{{}, {2}, {1, 3}, {3}},
			cycle:  []int{1, 2},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			order, cycle := tree.Order(len(tc.given), tc.given.next)
			if diff := cmp.Diff(tc.order, order, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nOrder(...): -want order, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.cycle, cycle); diff != "" {
				t.Errorf("%s\nOrder(...): -want cycle, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCycles(t *testing.T) {
	const none = tree.None
	cases := map[string]struct {
		reason string
		given  []int
		want   [][]int
	}{
		"Empty": {
			reason: "No nodes have no cycles.",
		},
		"Tree": {
			reason: "A tree has no cycles.",
			given:  []int{none, 0, 0, 1},
		},
		"Self": {
			reason: "A node that is its own parent is a cycle of one.",
			given:  []int{none, 1},
			want:   [][]int{{1}},
		},
		"SmallestFirst": {
			reason: "A cycle starts at its smallest node, wherever it was entered.",
			given:  []int{3, 2, 3, 1},
			want:   [][]int{{1, 2, 3}},
		},
		"Below": {
			reason: "Nodes that lead to a cycle are not part of it.",
			given:  []int{1, 2, 1, 0},
			want:   [][]int{{1, 2}},
		},
		"Several": {
			reason: "Cycles are sorted by their first nodes, also if a later one is found first.",
			given:  []int{4, 2, 1, 4, 3},
			want:   [][]int{{1, 2}, {3, 4}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tree.Cycles(tc.given)); diff != "" {
				t.Errorf("%s\nCycles(%v): -want, +got:\n%s", tc.reason, tc.given, diff)
			}
		})
	}
}
