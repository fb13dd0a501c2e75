package release

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
)

// IsBacking reports whether a Subnet is, or becomes, the block of a child pool.
func IsBacking(s *v1alpha1.Subnet) bool { return s.Spec.Backs != nil || s.Status.PoolUID != "" }

// ChildName returns the name of the pool that a Subnet backs, "" if it backs none. Subnets
// that were stored before spec.backs existed have that of their claim.
func ChildName(s *v1alpha1.Subnet) string {
	switch {
	case s.Spec.Backs != nil:
		return s.Spec.Backs.Name
	case s.Status.PoolUID != "" && s.Spec.ClaimRef != nil:
		return s.Spec.ClaimRef.Name
	}

	return ""
}

// ClaimHolding returns the UID of the claim that a Subnet was created for, "" if that claim
// does not exist. The claim is the one of that name, nil if there is none. A claim of the
// same name with another UID adopts the Subnet later, if it can.
func ClaimHolding(c *v1alpha1.SubnetClaim, s *v1alpha1.Subnet) types.UID {
	if c == nil || s.Spec.ClaimRef == nil || c.UID != s.Spec.ClaimRef.UID || !ipamrules.ClaimSuits(c, s) {
		return ""
	}

	return c.UID
}

// PoolHolding returns the UID of the pool that a Subnet was created for, "" if that pool
// does not exist. The child is the pool of that name as the API server has it, nil if there
// is none. A pool of the same name with another UID is bound to the Subnet later, if it can
// be.
func PoolHolding(child *v1alpha1.SubnetPool, s *v1alpha1.Subnet) types.UID {
	if child == nil || s.Spec.Backs == nil || child.UID != s.Spec.Backs.UID {
		return ""
	}

	return child.UID
}

// isFor reports whether a pool, nil if there is none, is made of the block of a Subnet or
// may become so: the pool that status.poolUID names, one that the Subnet was created for,
// or one of the same name that asks for addresses of the block. A Subnet that is being
// deleted, and a pool that is, cannot be bound any more.
func isFor(child *v1alpha1.SubnetPool, s *v1alpha1.Subnet) bool {
	switch {
	case child == nil:
		return false
	case s.Status.PoolUID == child.UID:
		return true
	case s.DeletionTimestamp != nil, child.DeletionTimestamp != nil:
		return false
	case s.Status.PoolUID == "" && s.Spec.Backs != nil && s.Spec.Backs.UID == child.UID:
		return true
	}

	return ipamrules.Backs(s, child) && asksFor(child, s)
}

// asksFor reports whether a pool has, or asks for, addresses of a Subnet of its parent.
func asksFor(child *v1alpha1.SubnetPool, s *v1alpha1.Subnet) bool {
	wants, err := netip.ParsePrefix(ipamrules.BackedRange(child))

	return err == nil && child.ParentName() == s.Spec.PoolRef && ipamrules.Contains(s.Spec.CIDR, wants)
}
