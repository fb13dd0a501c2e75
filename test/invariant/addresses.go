package invariant

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// addresses asks that no address has two owners in a namespace, of whatever pools. The
// rules of pools compare only what is related.
func (c *checker) addresses() {
	c.found = append(c.found, Shared(c.Inventory.Subnets, Backs(c.Inventory.Pools))...)
}

// A block is an Allocated Subnet with its prefix.
type block struct {
	*v1alpha1.Subnet

	prefix netip.Prefix
}

// Shared returns a finding for each pair of Allocated Subnets of a namespace that overlap,
// except for those that may. The outer one of a pair contains the inner one.
func Shared(subnets []v1alpha1.Subnet, may func(outer, inner *v1alpha1.Subnet) bool) []Finding {
	c := &checker{}
	var around []block // those that contain the current one, from the largest
	for _, b := range blocks(subnets) {
		around = slices.DeleteFunc(around, func(outer block) bool { return outer.Namespace != b.Namespace || !outer.prefix.Overlaps(b.prefix) })
		for _, outer := range around {
			if !may(outer.Subnet, b.Subnet) && (outer.prefix != b.prefix || !may(b.Subnet, outer.Subnet)) {
				c.addf(NoOverlap, Object{v1alpha1.SubnetKind, b.Namespace, b.Name}, "in pool %s has %s, which overlaps %s of Subnet %s in pool %s",
					b.Spec.PoolRef, b.prefix, outer.prefix, outer.Name, outer.Spec.PoolRef)
			}
		}
		around = append(around, b)
	}

	return c.found
}

// blocks returns the Allocated Subnets so that each comes after all that contain it.
func blocks(subnets []v1alpha1.Subnet) []block {
	var all []block
	for i := range subnets {
		s := &subnets[i]
		prefix, err := netip.ParsePrefix(s.Spec.CIDR)
		if err == nil && s.Status.Phase == v1alpha1.SubnetAllocated {
			all = append(all, block{s, prefix.Masked()})
		}
	}
	slices.SortFunc(all, func(a, b block) int {
		if n := strings.Compare(a.Namespace, b.Namespace); n != 0 {
			return n
		}
		if n := a.prefix.Addr().Compare(b.prefix.Addr()); n != 0 {
			return n
		}

		return a.prefix.Bits() - b.prefix.Bits()
	})

	return all
}

// Backs returns whether one Subnet backs the pool that another is taken from, or an
// ancestor of that pool. Only such a pair may share addresses.
func Backs(pools []v1alpha1.SubnetPool) func(outer, inner *v1alpha1.Subnet) bool {
	type key struct{ namespace, name string }
	byName := map[key]*v1alpha1.SubnetPool{}
	for i := range pools {
		byName[key{pools[i].Namespace, pools[i].Name}] = &pools[i]
	}

	return func(outer, inner *v1alpha1.Subnet) bool {
		name := inner.Spec.PoolRef
		for range pools { // a ring of parents has an end, too
			p := byName[key{inner.Namespace, name}]
			if p == nil {
				return false
			}
			if outer.Status.PoolUID == p.UID && outer.Spec.PoolRef == p.ParentName() {
				return true
			}
			name = p.ParentName()
		}

		return false
	}
}
