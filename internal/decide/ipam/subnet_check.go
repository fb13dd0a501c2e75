package ipam

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// SubnetNeighbors are the objects that a Subnet is checked against.
type SubnetNeighbors struct {
	// Pool that it is taken from, nil if there is none of that name.
	Pool *v1alpha1.SubnetPool
	// The Subnets of that pool; those that it does not overlap, and the Subnet itself, may
	// be among them or not.
	Others []v1alpha1.Subnet
	// Children are the pools that were taken from that pool.
	Children []v1alpha1.SubnetPool
}

// CheckSubnet returns what admission rejects of a Subnet that is created by hand. It is
// not the decision: two overlapping Subnets that are created at the same time are both
// admitted, and DecideSubnet decides between them.
func CheckSubnet(s *v1alpha1.Subnet, a SubnetNeighbors) verdict.Verdict {
	c := &subnetChecker{subnet: s}
	prefix, err := netip.ParsePrefix(s.Spec.CIDR)
	switch {
	case err != nil:
		c.refuse(ReasonInvalidCIDR, fmt.Sprintf("%q is not a CIDR", s.Spec.CIDR), "write an address and a length, such as 10.0.0.0/24 or fd00::/64")
	case prefix != prefix.Masked():
		c.refuse(ReasonNotMasked, fmt.Sprintf("%s has bits set behind its length", prefix), fmt.Sprintf("write %s", prefix.Masked()))
	default:
		c.place(prefix, a)
	}

	return c.verdict
}

// A subnetChecker collects the problems of one Subnet.
type subnetChecker struct {
	subnet  *v1alpha1.Subnet
	verdict verdict.Verdict
}

func (c *subnetChecker) refuse(reason, message, fix string) {
	c.verdict.Problems = append(c.verdict.Problems, verdict.Problem{
		Reason: reason, Field: "spec.cidr", Value: c.subnet.Spec.CIDR, Message: message, Fix: fix,
	})
}

// place checks that a Subnet is inside of its pool and overlaps no taken block.
func (c *subnetChecker) place(prefix netip.Prefix, a SubnetNeighbors) {
	if a.Pool == nil {
		c.verdict.Warnings = append(c.verdict.Warnings, verdict.Warning{
			Reason: ReasonPoolNotFound, Field: "spec.poolRef",
			Message: fmt.Sprintf("there is no pool %s in this namespace yet; the Subnet waits for it", c.subnet.Spec.PoolRef),
		})
	} else if of, err := netip.ParsePrefix(a.Pool.Spec.CIDR); err == nil && !within(of, prefix) {
		c.refuse(ReasonOutsidePool, fmt.Sprintf("%s is not inside of pool %s, %s", prefix, a.Pool.Name, of), fmt.Sprintf("choose a part of %s, or another pool", of))
	}
	for i := range a.Others {
		o := &a.Others[i]
		p, err := netip.ParsePrefix(o.Spec.CIDR)
		if err != nil || o.Name == c.subnet.Name || o.Status.Phase == v1alpha1.SubnetFailed || !p.Overlaps(prefix) || a.backsOverlapping(o, prefix) {
			continue
		}
		c.refuse(ReasonOverlap, fmt.Sprintf("%s overlaps %s of Subnet %s", prefix, p, o.Name), "choose a block that is free, or let a SubnetClaim find one")
	}
	c.delegated(prefix, a)
}

// backsOverlapping reports whether a Subnet backs a child pool that overlaps a block.
// Then the problem is the child pool, and delegated reports it.
func (a SubnetNeighbors) backsOverlapping(s *v1alpha1.Subnet, prefix netip.Prefix) bool {
	return slices.ContainsFunc(a.Children, func(child v1alpha1.SubnetPool) bool {
		p, err := netip.ParsePrefix(child.Spec.CIDR)

		return err == nil && p.Overlaps(prefix) && Backs(s, &child)
	})
}

// delegated checks that it does not overlap a child pool, except for the Subnet that backs the
// child pool.
func (c *subnetChecker) delegated(prefix netip.Prefix, a SubnetNeighbors) {
	for i := range a.Children {
		child := &a.Children[i]
		p, err := netip.ParsePrefix(child.Spec.CIDR)
		if err != nil || !p.Overlaps(prefix) || Backs(c.subnet, child) {
			continue
		}
		c.refuse(ReasonDelegated, fmt.Sprintf("%s overlaps %s of the child pool %s", prefix, p, child.Name), fmt.Sprintf("take it from pool %s, or choose a block that is free", child.Name))
	}
}
