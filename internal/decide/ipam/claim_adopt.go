package ipam

import (
	"net/netip"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// ClaimWants reports whether a Subnet is the block of a claim: it names the claim, its
// pool and its clusterID, and has the block that the claim is bound to, or one that
// the claim asks for. UIDs do not matter, because a restore changes them.
func ClaimWants(c *v1alpha1.SubnetClaim, s *v1alpha1.Subnet) bool {
	if c.DeletionTimestamp != nil || !named(c, s) {
		return false
	}
	if c.Status.Phase == v1alpha1.ClaimBound {
		return sameBlock(s.Spec.CIDR, c.Status.AllocatedCIDR)
	}

	return asksFor(c, s)
}

// ClaimSuits reports whether a Subnet names a claim, its pool and its clusterID, and has a block
// that the claim asks for. A Subnet created by hand can name any claim.
func ClaimSuits(c *v1alpha1.SubnetClaim, s *v1alpha1.Subnet) bool {
	return named(c, s) && asksFor(c, s)
}

// ClaimInsists reports whether a claim wants a Subnet and can be given no other block.
func ClaimInsists(c *v1alpha1.SubnetClaim, s *v1alpha1.Subnet) bool {
	exact, ok := ExactBlock(c)

	return ok && sameBlock(exact.String(), s.Spec.CIDR) && ClaimWants(c, s)
}

// ClaimAdopts reports whether a claim can take a Subnet now: it wants it, and the Subnet has a
// phase and is not being deleted. A status with the UID of another Subnet counts as none.
func ClaimAdopts(c *v1alpha1.SubnetClaim, s *v1alpha1.Subnet) bool {
	allocated := s.Status.Phase == v1alpha1.SubnetAllocated && (s.Status.UID == s.UID || s.Status.UID == "")

	return allocated && s.DeletionTimestamp == nil && ClaimWants(c, s)
}

// IsSurplus reports whether a Subnet was taken for a claim that is bound to another
// one. Two managers that serve one claim at the same time cause this.
func IsSurplus(c *v1alpha1.SubnetClaim, s *v1alpha1.Subnet) bool {
	if c.Status.Phase != v1alpha1.ClaimBound || c.Status.SubnetRef == s.Name || !named(c, s) {
		return false
	}
	if s.Status.Phase == v1alpha1.SubnetFailed {
		return true
	}
	own := s.Spec.ClaimRef.UID == c.UID || s.Status.ClaimUID == c.UID

	return own && !sameBlock(s.Spec.CIDR, c.Status.AllocatedCIDR)
}

// sameBlock reports whether two CIDRs are the same block. Host bits and the way an
// address is written make no difference.
func sameBlock(a, b string) bool {
	x, err := netip.ParsePrefix(a)
	if err != nil {
		return a == b
	}
	y, err := netip.ParsePrefix(b)

	return err == nil && x.Masked() == y.Masked()
}

// named reports whether a Subnet names a claim, its pool and its clusterID.
func named(c *v1alpha1.SubnetClaim, s *v1alpha1.Subnet) bool {
	return s.Spec.ClaimRef != nil && s.Spec.ClaimRef.Name == c.Name && s.Namespace == c.Namespace &&
		s.Spec.PoolRef == c.Spec.PoolRef && s.Spec.ClusterID == c.Spec.ClusterID
}

// asksFor reports whether the block of a Subnet is one that a claim asks for. The
// record does not matter for a Subnet that was taken for this very claim: it was
// taken according to the record, or before there was one.
func asksFor(c *v1alpha1.SubnetClaim, s *v1alpha1.Subnet) bool {
	block, err := netip.ParsePrefix(s.Spec.CIDR)
	if err != nil {
		return false
	}
	if record, ok := RecordedBlock(c); ok && record != block.Masked() && s.Spec.ClaimRef.UID != c.UID {
		return false
	}
	if c.Spec.BlockSize != nil {
		return block.Bits() == int(*c.Spec.BlockSize)
	}
	exact, err := netip.ParsePrefix(c.Spec.RequestedCIDR)

	return err == nil && exact.Masked() == block.Masked()
}

// ClaimRecord returns the value of BlockAnnotation for a claim that is bound.
func ClaimRecord(c *v1alpha1.SubnetClaim) string {
	return c.Spec.PoolRef + "/" + c.Status.AllocatedCIDR
}
