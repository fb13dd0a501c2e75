package audit

import (
	"cmp"
	"net/netip"
	"slices"
)

// A mark is a prefix at which a walk asks who is around it, or from which on it
// is around others, or both. What it does not do is -1.
type mark struct {
	prefix      netip.Prefix
	asks, opens int
}

// walk goes through prefixes by address and answers those who ask with the
// smallest that is around them, or equal and before them. All must be masked.
//
// Prefixes nest or do not meet, so those that are open at an address lie in each
// other, and the last one is the smallest.
func walk(marks []mark, answer func(asks, opens int)) {
	slices.SortFunc(marks, func(a, b mark) int {
		return cmp.Or(a.prefix.Compare(b.prefix), cmp.Compare(a.asks, b.asks), cmp.Compare(a.opens, b.opens))
	})
	var open []mark
	for _, m := range marks {
		for len(open) > 0 && !open[len(open)-1].prefix.Contains(m.prefix.Addr()) {
			open = open[:len(open)-1]
		}
		if m.asks >= 0 && len(open) > 0 {
			answer(m.asks, open[len(open)-1].opens)
		}
		if m.opens >= 0 {
			open = append(open, m)
		}
	}
}

// nested tells each prefix that lies in another of the same list, with the
// smallest such one. Of equal ones, a later lies in an earlier.
func nested(all []netip.Prefix, tell func(inner, outer int)) {
	marks := make([]mark, len(all))
	for i, p := range all {
		marks[i] = mark{p, i, i}
	}
	walk(marks, tell)
}

// each calls visit with each prefix and with all of the same list that it lies in, the
// largest first. Of equal ones, a later lies in an earlier. All must be masked.
func each(all []netip.Prefix, visit func(inner int, outer []int)) {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(all[a].Compare(all[b]), cmp.Compare(a, b)) })
	var open []int
	for _, i := range order {
		for len(open) > 0 && !all[open[len(open)-1]].Contains(all[i].Addr()) {
			open = open[:len(open)-1]
		}
		visit(i, open)
		open = append(open, i)
	}
}

// around tells each prefix of one list that lies in one of another, or is equal
// to it, with the smallest such one.
func around(inner, outer []netip.Prefix, tell func(inner, outer int)) {
	marks := make([]mark, 0, len(inner)+len(outer))
	for i, p := range inner {
		marks = append(marks, mark{p, i, -1})
	}
	for i, p := range outer {
		marks = append(marks, mark{p, -1, i})
	}
	walk(marks, tell)
}

// touching returns whom each prefix overlaps. Everybody who overlaps anybody
// has somebody there, but not everybody: of that there may be a square.
func touching(all []netip.Prefix) [][]int {
	found := make([][]int, len(all))
	nested(all, func(inner, outer int) {
		found[inner] = append(found[inner], outer)
		if len(found[outer]) == 0 {
			found[outer] = append(found[outer], inner)
		}
	})

	return found
}

// crossing returns, for each prefix of one list, one of another that it
// overlaps, -1 if there is none: the smallest that is around it or equal to it,
// or else the first one inside.
func crossing(some, others []netip.Prefix) []int {
	found := make([]int, len(some))
	for i := range found {
		found[i] = -1
	}
	around(some, others, func(i, other int) { found[i] = other })

	order := make([]int, len(others))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(others[a].Compare(others[b]), cmp.Compare(a, b)) })
	for i, p := range some {
		next, _ := slices.BinarySearchFunc(order, p, func(o int, p netip.Prefix) int { return others[o].Compare(p) })
		if found[i] < 0 && next < len(order) && p.Contains(others[order[next]].Addr()) {
			found[i] = order[next]
		}
	}

	return found
}
