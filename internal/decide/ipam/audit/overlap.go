package audit

import (
	"fmt"
	"slices"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// ranges are the ranges of pools. A pool that is being moved or resized has two: the open one
// and the one that it asks for.
type ranges struct {
	blocks[v1alpha1.SubnetPool]

	open []bool // whether Arbor has opened the range
}

func (r *ranges) add(p *v1alpha1.SubnetPool, cidr string, open bool) {
	r.blocks.add(p, cidr)
	if len(r.open) < len(r.of) { // it is a CIDR
		r.open = append(r.open, open)
	}
}

// overlapping returns the pools that a pool shares addresses with although neither was
// taken from the other. Each pool with such others has at least one of them here, but not
// all: their number can grow with the square of the number of pools.
//
// A range that is not open owns no addresses, so it is no problem of a pool that has opened
// them. A pool that was rejected asks for nothing. If a chain of parents ends in a missing
// pool, its last pool counts as a root.
func (x *index) overlapping() map[*v1alpha1.SubnetPool][]*v1alpha1.SubnetPool {
	found := map[*v1alpha1.SubnetPool][]*v1alpha1.SubnetPool{}
	above := map[*v1alpha1.SubnetPool][]*v1alpha1.SubnetPool{}
	for p := range inOrder(x.pools) {
		above[p] = x.ancestors(p)
	}
	for _, all := range x.ranges() {
		note := func(i, j int) {
			if p := all.of[i]; len(found[p]) == 0 && (all.open[j] || !all.open[i]) {
				found[p] = append(found[p], all.of[j])
			}
		}
		each(all.prefixes, func(inner int, outer []int) {
			p := all.of[inner]
			for _, i := range slices.Backward(outer) {
				if o := all.of[i]; o != p && !slices.Contains(above[p], o) && !slices.Contains(above[o], p) {
					note(inner, i)
					note(i, inner)
				}
			}
		})
	}

	return found
}

// ranges returns the ranges of all pools by namespace.
func (x *index) ranges() map[string]*ranges {
	found := map[string]*ranges{}
	for p := range inOrder(x.pools) {
		if found[p.Namespace] == nil {
			found[p.Namespace] = &ranges{}
		}
		open := p.Open()
		found[p.Namespace].add(p, open, true)
		if !isLost(p) && !same(open, p.Spec.CIDR) {
			found[p.Namespace].add(p, p.Spec.CIDR, false)
		}
	}

	return found
}

// sharing are the problems of a pool with others that the rules for pools do not name.
func sharing(p *v1alpha1.SubnetPool, others []*v1alpha1.SubnetPool, said []verdict.Problem) []verdict.Problem {
	var found []verdict.Problem
	for _, o := range others {
		if slices.ContainsFunc(said, func(s verdict.Problem) bool { return s.Reason == ipamrules.ReasonOverlap && s.About == o.Name }) {
			continue
		}
		mine, theirs := rangeOf(p), rangeOf(o)
		state, fix := "", "choose other addresses for one of them, or delete it"
		if p.Open() == "" && o.Open() != "" {
			state, fix = " which is open,", "choose other addresses for this pool, or delete it"
		}
		found = append(found, verdict.Problem{
			Reason: ReasonOverlap, Field: fieldCIDR, Value: p.Spec.CIDR, About: o.Name,
			Message: fmt.Sprintf("%s overlaps %s of pool %s,%s and neither is taken from the other", mine, theirs, o.Name, state),
			Fix:     fix,
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
