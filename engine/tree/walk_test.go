package tree_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/arbor-control/arbor/engine/tree"
)

func TestWalk(t *testing.T) {
	cases := map[string]struct {
		reason string
		given  graph
		from   []int
		walk   []int // nil if the graph is not a tree
		reach  []int
	}{
		"Nothing": {
			reason: "Without a start there is nothing.",
			given:  graph{{}},
			walk:   []int{},
		},
		"Tree": {
			reason: "Parents come before children, and siblings in order, each with its own children.",
			given:  graph{{1, 2}, {3, 4}, {5}, {}, {}, {}},
			from:   []int{0},
			walk:   []int{0, 1, 3, 4, 2, 5},
			reach:  []int{0, 1, 3, 4, 2, 5},
		},
		"Roots": {
			reason: "Each root is followed by its tree.",
			given:  graph{{1}, {}, {3}, {}},
			from:   []int{2, 0},
			walk:   []int{2, 3, 0, 1},
			reach:  []int{2, 3, 0, 1},
		},
		"Diamond": {
			reason: "A node that several paths lead to comes once.",
			given:  graph{{1, 2}, {3}, {3}, {}},
			from:   []int{0},
			reach:  []int{0, 1, 3, 2},
		},
		"Cycle": {
			reason: "A cycle ends where it began.",
			given:  graph{{1}, {2}, {0}, {0}},
			from:   []int{1, 0},
			reach:  []int{1, 2, 0},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.reach, slices.Collect(tree.Reachable(tc.from, tc.given.next)), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nReachable(%v): -want, +got:\n%s", tc.reason, tc.from, diff)
			}
			if tc.walk == nil {
				return
			}
			if diff := cmp.Diff(tc.walk, slices.Collect(tree.Walk(tc.from, tc.given.next)), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nWalk(%v): -want, +got:\n%s", tc.reason, tc.from, diff)
			}
		})
	}
}

// A caller that stops gets no further nodes, and the graph is not asked for them.
func TestWalkStops(t *testing.T) {
	asked := 0
	for n := range tree.Walk([]int{0}, func(n int) []int {
		asked++

		return []int{n + 1}
	}) {
		if n == 3 {
			break
		}
	}
	if asked != 3 {
		t.Errorf("the children of %d nodes were read, want 3", asked)
	}
}

func TestPath(t *testing.T) {
	errRead := errors.New("cannot read")
	cases := map[string]struct {
		reason  string
		parents []int
		from    int
		want    []int
		back    int
		err     error
	}{
		"Root": {
			reason:  "A node without a parent is its own path.",
			parents: []int{tree.None},
			want:    []int{0}, back: tree.None,
		},
		"Chain": {
			reason:  "Ancestors come nearest first.",
			parents: []int{tree.None, 0, 1, 1},
			from:    3,
			want:    []int{3, 1, 0}, back: tree.None,
		},
		"OnCycle": {
			reason:  "A node on a cycle comes back to itself.",
			parents: []int{1, 2, 0},
			from:    1,
			want:    []int{1, 2, 0}, back: 0,
		},
		"AboveCycle": {
			reason:  "The index is where the cycle begins.",
			parents: []int{1, 2, 1},
			want:    []int{0, 1, 2}, back: 1,
		},
		"Error": {
			reason:  "An error ends the path.",
			parents: []int{tree.None, 0, 5},
			from:    2,
			want:    []int{2}, back: tree.None, err: errRead,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path, back, err := tree.Path(tc.from, func(n int) (int, bool, error) {
				p := tc.parents[n]
				if p >= len(tc.parents) {
					return 0, false, errRead
				}

				return p, p != tree.None, nil
			})
			if diff := cmp.Diff(tc.want, path); diff != "" || back != tc.back || !errors.Is(err, tc.err) {
				t.Errorf("%s\nPath(%d) = back %d, error %v, want back %d, error %v: -want, +got:\n%s", tc.reason, tc.from, back, err, tc.back, tc.err, diff)
			}
		})
	}
}
