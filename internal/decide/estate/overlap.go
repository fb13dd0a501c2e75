package estate

import (
	"fmt"
	"slices"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/pool"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// overlapping returns the pools that a pool shares addresses with although neither was
// taken from the other. Each pool with such others has at least one of them here, but not
// all: there may be a square of them.
//
// A pool has the range that Arbor has opened and the one that it wants. One that was
// refused wants nothing. A chain of parents that ends in a missing pool makes a root of
// the last one.
func (x *index) overlapping() map[*v1alpha1.SubnetPool][]*v1alpha1.SubnetPool {
	found := map[*v1alpha1.SubnetPool][]*v1alpha1.SubnetPool{}
	ranges := map[string]*blocks[v1alpha1.SubnetPool]{}
	above := map[*v1alpha1.SubnetPool][]*v1alpha1.SubnetPool{}
	for p := range inOrder(x.pools) {
		above[p] = x.ancestors(p)
		if ranges[p.Namespace] == nil {
			ranges[p.Namespace] = &blocks[v1alpha1.SubnetPool]{}
		}
		open := p.Open()
		ranges[p.Namespace].add(p, open)
		if !isLost(p) && !same(open, p.Spec.CIDR) {
			ranges[p.Namespace].add(p, p.Spec.CIDR)
		}
	}
	note := func(p, o *v1alpha1.SubnetPool) {
		if len(found[p]) == 0 {
			found[p] = append(found[p], o)
		}
	}
	for _, all := range ranges {
		each(all.prefixes, func(inner int, outer []int) {
			p := all.of[inner]
			for _, i := range slices.Backward(outer) {
				if o := all.of[i]; o != p && !slices.Contains(above[p], o) && !slices.Contains(above[o], p) {
					note(p, o)
					note(o, p)
				}
			}
		})
	}

	return found
}

// sharing are the problems of a pool with others that the rules for pools do not name.
func sharing(p *v1alpha1.SubnetPool, others []*v1alpha1.SubnetPool, said []verdict.Problem) []verdict.Problem {
	var found []verdict.Problem
	for _, o := range others {
		if slices.ContainsFunc(said, func(s verdict.Problem) bool { return s.Reason == pool.ReasonOverlap && s.About == o.Name }) {
			continue
		}
		mine, theirs := rangeOf(p), rangeOf(o)
		found = append(found, verdict.Problem{
			Reason: ReasonOverlap, Field: fieldCIDR, Value: p.Spec.CIDR, About: o.Name,
			Message: fmt.Sprintf("%s overlaps %s of pool %s, and neither is taken from the other", mine, theirs, o.Name),
			Fix:     "choose other addresses for one of them, or delete it",
		})
	}

	return found
}

// rangeOf names the addresses of a pool.
func rangeOf(p *v1alpha1.SubnetPool) string {
	if open := p.Open(); open != "" && !same(open, p.Spec.CIDR) {
		return fmt.Sprintf("%s (open: %s)", p.Spec.CIDR, open)
	}

	return p.Spec.CIDR
}
