package tree

import (
	"iter"
	"slices"
)

// Walk yields the nodes of trees from the top down: the roots in order, each
// followed by all of its tree, and siblings in the order of children. The nodes must
// form trees; for other graphs there is [Reachable].
func Walk[N any](roots []N, children func(N) []N) iter.Seq[N] {
	return walk(roots, children, func(N) bool { return true })
}

// Reachable yields every node that edges lead to from the given ones, and these
// themselves, once. Its order is that of [Walk].
func Reachable[N comparable](from []N, next func(N) []N) iter.Seq[N] {
	return func(yield func(N) bool) {
		seen := map[N]bool{}
		walk(from, next, func(n N) bool {
			known := seen[n]
			seen[n] = true

			return !known
		})(yield)
	}
}

// walk yields nodes depth first, and neither yields nor follows those that enter
// rejects.
func walk[N any](from []N, next func(N) []N, enter func(N) bool) iter.Seq[N] {
	return func(yield func(N) bool) {
		stack := slices.Clone(from)
		slices.Reverse(stack)
		for len(stack) > 0 {
			n := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if !enter(n) {
				continue
			}
			if !yield(n) {
				return
			}
			for _, to := range slices.Backward(next(n)) {
				stack = append(stack, to)
			}
		}
	}
}

// Path returns a node and its ancestors, the nearest first. parent returns false for
// a node that has no parent.
//
// Where parents form a cycle, the path ends before a node would come again, and back
// is the index of that node; otherwise back is [None]. An error of parent ends the
// path and is returned as it is.
func Path[N comparable](from N, parent func(N) (N, bool, error)) (path []N, back int, err error) {
	at := map[N]int{}
	for n, more := from, true; more; {
		if i, twice := at[n]; twice {
			return path, i, nil
		}
		at[n] = len(path)
		path = append(path, n)
		if n, more, err = parent(n); err != nil {
			return path, None, err
		}
	}

	return path, None, nil
}
