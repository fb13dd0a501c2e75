package subnet

import (
	"fmt"
	"net/netip"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// Further reasons, to refuse a Subnet at the door.
const (
	ReasonInvalidCIDR = "InvalidCIDR"
	ReasonNotMasked   = "NotMasked"
	ReasonDelegated   = "Delegated"
)

// Around is what a Subnet stands among.
type Around struct {
	// Pool that it is taken from, nil if there is none of that name.
	Pool *v1alpha1.SubnetPool
	// Others are Subnets of that pool; those that it does not overlap, and the
	// Subnet itself, may be among them or not.
	Others []v1alpha1.Subnet
	// Children are the pools that were taken from that pool.
	Children []v1alpha1.SubnetPool
}

// Check says whether somebody who makes a Subnet by hand should be let in. It is
// a courtesy: two who ask at the same time are both let in, and the judge
// decides between them.
func Check(s *v1alpha1.Subnet, a Around) verdict.Verdict {
	const field = "spec.cidr"
	var v verdict.Verdict
	refuse := func(reason, message, fix string) {
		v.Problems = append(v.Problems, verdict.Problem{Reason: reason, Field: field, Value: s.Spec.CIDR, Message: message, Fix: fix})
	}
	prefix, err := netip.ParsePrefix(s.Spec.CIDR)
	if err != nil {
		refuse(ReasonInvalidCIDR, fmt.Sprintf("%q is not a CIDR", s.Spec.CIDR), "write an address and a length, such as 10.0.0.0/24 or fd00::/64")

		return v
	}
	if prefix != prefix.Masked() {
		refuse(ReasonNotMasked, fmt.Sprintf("%s has bits set behind its length", prefix), fmt.Sprintf("write %s", prefix.Masked()))

		return v
	}
	if a.Pool == nil {
		v.Warnings = append(v.Warnings, verdict.Warning{
			Field: "spec.poolRef", Message: fmt.Sprintf("there is no pool %s in this namespace yet; the Subnet waits for it", s.Spec.PoolRef),
		})

		return v
	}
	if pool, err := netip.ParsePrefix(a.Pool.Spec.CIDR); err == nil && !within(pool, prefix) {
		refuse(ReasonOutsidePool, fmt.Sprintf("%s is not inside of pool %s, %s", prefix, a.Pool.Name, pool), fmt.Sprintf("choose a part of %s, or another pool", pool))
	}
	for i := range a.Others {
		o := &a.Others[i]
		if p, err := netip.ParsePrefix(o.Spec.CIDR); err == nil && o.Name != s.Name && o.Status.Phase != v1alpha1.SubnetFailed && p.Overlaps(prefix) {
			refuse(ReasonOverlap, fmt.Sprintf("%s overlaps %s of Subnet %s", prefix, p, o.Name), "choose a block that is free, or let a SubnetClaim find one")
		}
	}
	for i := range a.Children {
		c := &a.Children[i]
		p, err := netip.ParsePrefix(c.Spec.CIDR)
		if err != nil || !p.Overlaps(prefix) || p == prefix && s.Spec.ClaimRef != nil {
			continue // the last: it holds the block of the pool of a SubnetPoolClaim
		}
		refuse(ReasonDelegated, fmt.Sprintf("%s overlaps %s of the child pool %s", prefix, p, c.Name), fmt.Sprintf("take it from pool %s, or choose a block that is free", c.Name))
	}

	return v
}
