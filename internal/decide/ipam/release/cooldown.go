package release

import (
	"time"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
)

// Cooling returns how long the block of a Subnet that is being deleted stays unused: for
// spec.reuseAfter of its pool. That ends early if the Subnet never held its block, if its
// pool is being deleted, for the claim of its name if that can be given no other block, and
// for a child pool that was created again in the block.
func Cooling(f Facts) time.Duration {
	s, p := f.Subnet, f.Pool
	switch {
	case s.DeletionTimestamp == nil, s.Status.Phase != v1alpha1.SubnetAllocated:
		return 0
	case p == nil, p.DeletionTimestamp != nil, p.Spec.ReuseAfter == nil:
		return 0
	case f.Claim != nil && f.Claim.Status.Phase != v1alpha1.ClaimBound && ipamrules.ClaimInsists(f.Claim, s):
		return 0
	case f.Child != nil && IsBacking(s) && asksFor(f.Child, s):
		return 0
	}

	return max(0, s.DeletionTimestamp.Add(p.Spec.ReuseAfter.Duration).Sub(f.Now))
}
