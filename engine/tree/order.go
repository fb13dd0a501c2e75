package tree

import (
	"cmp"
	"slices"
)

// None is the parent of a node that has no parent.
const None = -1

// Order sorts the nodes 0 to n-1 topologically: each node comes after those that
// next returns for it. Apart from that, nodes keep their order, and so do the nodes
// that next returns.
//
// If there is no such order, Order returns a cycle instead: nodes of which each has
// the following one in its next, and the last has the first.
func Order(n int, next func(int) []int) (order, cycle []int) {
	order = make([]int, 0, n)
	search(n, next, func(i int) { order = append(order, i) }, func(found []int) bool {
		cycle = slices.Clone(found)

		return false
	})
	if cycle != nil {
		return nil, cycle
	}

	return order, nil
}

// Cycles returns every cycle of a list in which parents[i] is the parent of node i, or [None]. Each
// cycle starts at its smallest node and continues from child to parent. The cycles are sorted by
// their first nodes. A node that only leads to a cycle is not part of it.
func Cycles(parents []int) [][]int {
	var all [][]int
	search(len(parents), func(i int) []int {
		if parents[i] == None {
			return nil
		}

		return parents[i : i+1]
	}, func(int) {}, func(found []int) bool {
		first := slices.Index(found, slices.Min(found))
		all = append(all, slices.Concat(found[first:], found[:first]))

		return true
	})
	slices.SortFunc(all, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })

	return all
}

// done marks a node that a search has left.
const done = -1

// search walks a graph depth first, from each node that it has not entered yet. It
// calls leave with a node after all that the node leads to, and cycle with the part
// of its path that an edge closes to a cycle. It stops when cycle returns false.
func search(n int, next func(int) []int, leave func(int), cycle func([]int) bool) {
	var (
		path []int              // from the start of the search to the current node
		rest [][]int            // the edges of each node on the path that are still to follow
		at   = make([]int, n)   // 0, or done, or the position on the path, from 1
		push = func(node int) { // enters a node
			path, rest = append(path, node), append(rest, next(node))
			at[node] = len(path)
		}
	)
	for start := range n {
		if at[start] == 0 {
			push(start)
		}
		for len(path) > 0 {
			top := len(path) - 1
			if len(rest[top]) == 0 {
				at[path[top]] = done
				leave(path[top])
				path, rest = path[:top], rest[:top]

				continue
			}
			to := rest[top][0]
			rest[top] = rest[top][1:]
			if at[to] == 0 {
				push(to)
			} else if at[to] != done && !cycle(path[at[to]-1:]) {
				return
			}
		}
	}
}
