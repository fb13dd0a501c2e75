// Package poolblocks translates SubnetPools and Subnets into what package ledger counts.
// Controllers, command line and audit all count pools with it.
package poolblocks

import (
	"cmp"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/cidr"
	"github.com/arbor-control/arbor/engine/ledger"
)

// RangeOf returns the addresses that a pool allocates from, and whether it does. A
// pool that is not open has the range that it asks for. An open one has what is both
// in its status and in its spec. The range is not valid if there is none.
func RangeOf(p *v1alpha1.SubnetPool) (netip.Prefix, bool) {
	spec := readRange(p.Spec.CIDR)
	if p.Open() == "" {
		return spec, false
	}
	status := readRange(p.Open())
	switch {
	case !spec.IsValid() || !status.IsValid() || !spec.Overlaps(status):
		return netip.Prefix{}, true
	case spec.Bits() < status.Bits():
		return status, true
	}

	return spec, true
}

// readRange returns the prefix of a pool, which is not valid if it cannot be one.
func readRange(text string) netip.Prefix {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}
	}
	if _, err := cidr.New(prefix); err != nil {
		return netip.Prefix{}
	}

	return prefix
}

// BlockOf returns the block that a Subnet takes from its pool. It is false for a Subnet that takes
// none: one that is Failed, or whose CIDR is not a prefix. Bits behind the length do not matter:
// the Subnet reserves those addresses.
func BlockOf(s *v1alpha1.Subnet) (ledger.Block, bool) {
	b := ledger.Block{ID: SubnetID(s), Name: s.Name, Owner: s.Spec.ClusterID, Claim: claimOf(s)}
	pool := s.Status.PoolUID
	if s.Spec.Backs != nil {
		pool = cmp.Or(pool, s.Spec.Backs.UID)
	}
	if pool != "" {
		b.Backs = ledger.ChildID(string(pool))
	}
	b.Delegated = pool != "" || s.Spec.Backs != nil
	if s.DeletionTimestamp != nil && s.Status.Phase == v1alpha1.SubnetAllocated {
		b.Released = s.DeletionTimestamp.Unix()
	}
	prefix, err := netip.ParsePrefix(s.Spec.CIDR)
	if err != nil || s.Status.Phase == v1alpha1.SubnetFailed {
		return b, false
	}
	b.Prefix = prefix.Masked()

	return b, true
}

// SubnetID returns the ID of a Subnet's block: its UID, or its name in a manifest,
// which has no UID.
func SubnetID(s *v1alpha1.Subnet) string { return identity(s.UID, s.Name) }

// claimOf returns the UID of the claim that has a Subnet. A Subnet that is being deleted
// keeps its addresses until it is gone, but neither its claim nor its clusterID: a new
// claim of the same clusterID gets another block.
func claimOf(s *v1alpha1.Subnet) string {
	if s.DeletionTimestamp != nil {
		return ""
	}
	if s.Status.ClaimUID != "" || s.Spec.ClaimRef == nil {
		return string(s.Status.ClaimUID)
	}
	if s.Status.Phase == v1alpha1.SubnetAllocated && s.Status.UID != "" {
		// The manager has found that the claim of that UID does not have it.
		return identity("", s.Spec.ClaimRef.Name)
	}

	return identity(s.Spec.ClaimRef.UID, s.Spec.ClaimRef.Name)
}

// identity is a UID, or a name where there is no UID. A UID has no slash.
func identity(uid types.UID, name string) string {
	return cmp.Or(string(uid), "name/"+name)
}

// DelegationOf returns the block that a child pool takes from its parent. It is false for a pool
// that takes none: one that was rejected, or whose CIDR is not a prefix.
func DelegationOf(p *v1alpha1.SubnetPool) (ledger.Block, bool) {
	b := ledger.Block{ID: ChildID(p), Name: p.Name, Delegated: true}
	prefix, err := netip.ParsePrefix(cmp.Or(p.Open(), p.Spec.CIDR))
	if err != nil || isRefused(p) {
		return b, false
	}
	b.Prefix = prefix.Masked()

	return b, true
}

// ChildID returns the ID of a child pool's block.
func ChildID(p *v1alpha1.SubnetPool) string { return ledger.ChildID(identity(p.UID, p.Name)) }

// isRefused reports whether Arbor has rejected a pool as it is, and it has no range from before.
func isRefused(p *v1alpha1.SubnetPool) bool {
	return p.Open() == "" && p.Status.Lost != 0 && p.Status.Lost == p.Generation
}
