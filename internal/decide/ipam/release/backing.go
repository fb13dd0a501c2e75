package release

import (
	"fmt"
	"time"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
)

// backing are the clauses about Subnets that child pools are made of.
var backing = []clause{
	keepIf("Status", func(f *Facts) (string, bool) {
		return "its status is that of another Subnet", f.Subnet.DeletionTimestamp == nil && hasForeignStatus(f.Subnet)
	}),
	// No pool was, or can be, opened in a Subnet that was never Allocated.
	releaseIf("Unused", func(f *Facts) bool {
		return f.Subnet.DeletionTimestamp != nil && f.Subnet.Status.Phase != v1alpha1.SubnetAllocated
	}),
	keepIf("Child", func(f *Facts) (string, bool) {
		return fmt.Sprintf("pool %s is made of it", ChildName(f.Subnet)), isFor(f.Child, f.Subnet)
	}),
	keepIf("Restoring", func(f *Facts) (string, bool) {
		return fmt.Sprintf("pool %s is being restored", f.Subnet.Spec.PoolRef),
			f.Pool != nil && f.Pool.DeletionTimestamp == nil && ipamrules.IsRestoring(f.Pool)
	}),
	keepIf("Unclaimed", func(f *Facts) (string, bool) {
		s := f.Subnet

		return "no claim has had it yet", s.Spec.ClaimRef != nil && s.Status.ClaimUID == "" && s.DeletionTimestamp == nil
	}),
	keepIf("Claim", func(f *Facts) (string, bool) {
		return fmt.Sprintf("SubnetClaim %s has it", claimName(f)), isClaimed(f)
	}),
	keepIf("Inside", func(f *Facts) (string, bool) { return f.Inside, f.Inside != "" }),
	waitFor("Expected", expected),
	waitFor("Cooling", func(f *Facts) time.Duration { return Cooling(*f) }),
}

// Backing decides about a Subnet that a child pool is, or was, made of. It is released when
// nothing depends on it.
func Backing(f Facts) Decision { return decide(backing, &f) }

// claimName returns the name of the claim of a Subnet, "" if there is none.
func claimName(f *Facts) string {
	if f.Claim == nil {
		return ""
	}

	return f.Claim.Name
}

// isClaimed reports whether a claim has, or may take, a backing Subnet. One that is being
// deleted cannot be taken by a new claim.
func isClaimed(f *Facts) bool {
	s, c := f.Subnet, f.Claim
	if c == nil || c.Spec.PoolRef != s.Spec.PoolRef || c.Spec.ClusterID != s.Spec.ClusterID {
		return false
	}

	return s.DeletionTimestamp == nil || c.UID == s.Status.ClaimUID
}

// expected returns how long a Subnet that no pool has had is kept, because its pool may
// still be restored. No pool is expected in a parent that is being deleted. The Subnet of
// a claim waits for the claim.
func expected(f *Facts) time.Duration {
	s := f.Subnet
	if s.Spec.Backs == nil || s.Spec.ClaimRef != nil || s.DeletionTimestamp != nil || s.Status.PoolUID != "" {
		return 0
	}
	if f.Pool != nil && f.Pool.DeletionTimestamp != nil {
		return 0
	}

	return max(0, f.Grace-f.Waited)
}
