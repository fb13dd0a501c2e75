package audit

import (
	"fmt"
	"strings"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// claim checks that a claim has one Subnet, the one in its status.
func (x *inspector) claim(c *v1alpha1.SubnetClaim) {
	if c.DeletionTimestamp != nil {
		return
	}
	o := Object{v1alpha1.SubnetClaimKind, c.Namespace, c.Name}
	x.owner(o, c, c.Spec.PoolRef)
	if has := x.allocated[named(c.Namespace, c.Name)]; len(has) > 1 {
		x.add(SeverityError, o, verdict.Problem{
			Reason: ReasonSeveralSubnets, Field: fieldSubnetRef, Value: c.Status.SubnetRef,
			Message: fmt.Sprintf("%d Subnets are Allocated for it, such as %s and %s", len(has), has[0].Name, has[1].Name),
			Fix:     "delete those that status.subnetRef does not name",
		})
	}
	if c.Status.Phase == v1alpha1.ClaimBound {
		x.bound(o, c)
	}
}

// bound checks that the Subnet of a bound claim matches the claim.
func (x *inspector) bound(o Object, c *v1alpha1.SubnetClaim) {
	lie := func(reason, field, value, message, fix string) {
		x.add(SeverityError, o, verdict.Problem{Reason: reason, Field: field, Value: value, Message: message, Fix: fix})
	}
	name := c.Status.SubnetRef
	for _, s := range x.allocated[named(c.Namespace, c.Name)] {
		if name == "" && s.Spec.CIDR == c.Status.AllocatedCIDR {
			name = s.Name // bound before a status could name it
		}
	}
	switch s := x.subnets[named(c.Namespace, name)]; {
	case name == "":
		lie(ReasonSubnetLost, fieldSubnetRef, name, "it is Bound, but names no Subnet", fixClaim)
	case s == nil:
		lie(ReasonSubnetLost, fieldSubnetRef, name,
			fmt.Sprintf("it is Bound, but Subnet %s is gone: %s may be handed out to somebody else", name, c.Status.AllocatedCIDR), fixClaim)
	case x.claimOf(s) != c:
		lie(ReasonSubnetOfAnother, fieldSubnetRef, name, fmt.Sprintf("it is Bound, but Subnet %s was not taken for it%s", name, takenFor(s)), fixClaim)
	case !isAllocated(s):
		phase := s.Status.Phase
		if phase == "" {
			phase = v1alpha1.SubnetPending
		}
		lie(ReasonSubnetNotAllocated, fieldSubnetRef, name, fmt.Sprintf("it is Bound, but Subnet %s is %s", name, phase), fixClaim)
	case !same(s.Spec.CIDR, c.Status.AllocatedCIDR):
		lie(ReasonCIDRDiffers, fieldAllocated, c.Status.AllocatedCIDR, fmt.Sprintf("its Subnet %s has %s", name, s.Spec.CIDR),
			fixInUse)
	}
}

func takenFor(s *v1alpha1.Subnet) string {
	if s.Spec.ClaimRef == nil {
		return ""
	}

	return fmt.Sprintf(", but for SubnetClaim %s of UID %q", s.Spec.ClaimRef.Name, s.Spec.ClaimRef.UID)
}

// poolClaim asks that the pool of a bound claim is there, and is made of the
// block that was taken for it.
func (x *inspector) poolClaim(c *v1alpha1.SubnetPoolClaim) {
	if c.Status.Phase != v1alpha1.ClaimBound || c.DeletionTimestamp != nil {
		return
	}
	lie := func(reason, message, fix string) {
		x.add(SeverityError, Object{v1alpha1.SubnetPoolClaimKind, c.Namespace, c.Name}, verdict.Problem{
			Reason: reason, Field: fieldBoundPool, Value: c.Status.BoundPoolName, Message: message, Fix: fix,
		})
	}
	p := x.pools[named(c.Namespace, c.Status.BoundPoolName)]
	block := x.block(c)
	switch {
	case p == nil:
		lie(ReasonPoolNotFound, fmt.Sprintf("it is Bound, but pool %q does not exist", c.Status.BoundPoolName), fixClaim)
	case block == nil:
		lie(ReasonBlockNotFound, fmt.Sprintf("it is Bound, but the SubnetClaim %s that took the block of its pool from %s is gone", c.Name, c.Spec.ParentPoolRef), fixInUse)
	case !inside(p.Spec.CIDR, block.Status.AllocatedCIDR):
		lie(ReasonCIDRDiffers, fmt.Sprintf("its pool %s has %s, but %q was taken for it from %s", p.Name, p.Spec.CIDR, block.Status.AllocatedCIDR, c.Spec.ParentPoolRef),
			fixInUse)
	}
}

// block returns the claim for the block that the pool of a claim is made of.
func (x *inspector) block(c *v1alpha1.SubnetPoolClaim) *v1alpha1.SubnetClaim {
	mine := func(block *v1alpha1.SubnetClaim) bool {
		name, uid := madeFor(block)

		return name == c.Name && isSame(uid, c.UID)
	}
	if block := x.claims[named(c.Namespace, c.Name)]; block != nil && mine(block) {
		return block
	}
	// Older ones were given a name that begins with their owner's.
	for key, block := range x.claims {
		if key.Namespace == c.Namespace && strings.HasPrefix(key.Name, c.Name+"-") && mine(block) {
			return block
		}
	}

	return nil
}
