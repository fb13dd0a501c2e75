package release

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
)

// claimed are the clauses about Subnets of claims.
var claimed = []clause{
	keepIf("Unclaimed", func(f *Facts) (string, bool) { return "it is not for a claim", f.Subnet.Spec.ClaimRef == nil }),
	keepIf("Status", func(f *Facts) (string, bool) {
		return "its status is that of another Subnet", hasForeignStatus(f.Subnet)
	}),
	keepIf("Child", func(f *Facts) (string, bool) { return "a pool is made of it", isDelegated(f) }),
	// Two managers that serve one claim at the same time cause this.
	releaseIf("Surplus", func(f *Facts) bool { return f.Claim != nil && ipamrules.IsSurplus(f.Claim, f.Subnet) }),
	keepIf("Unknown", func(f *Facts) (string, bool) { return "no claim has had it yet", lastClaim(f) == "" }),
	keepIf("Holder", func(f *Facts) (string, bool) {
		return "its claim has it", f.Claim != nil && f.Claim.UID == lastClaim(f)
	}),
	// A claim of the same name may be a restored one.
	keepIf("Wanted", func(f *Facts) (string, bool) {
		return "a claim of the same name wants it", f.Claim != nil && ipamrules.ClaimWants(f.Claim, f.Subnet)
	}),
}

// Claimed decides about the Subnet of a claim, which is not being deleted. It is released
// when its claim is gone, or is bound to another Subnet. One that no known claim has had is
// kept: its claim may not be restored yet. The block of a child pool is kept until the pool
// is gone; see Backing.
func Claimed(f Facts) Decision { return decide(claimed, &f) }

// isDelegated reports whether a child pool is made of a Subnet or may become so. The pool of
// a Subnet that was stored before spec.backs existed may have any name, so only Backing can
// tell that it is gone.
func isDelegated(f *Facts) bool {
	s := f.Subnet
	switch {
	case s.Status.Phase == v1alpha1.SubnetFailed:
		return false
	case s.Spec.Backs == nil:
		return s.Status.PoolUID != ""
	}

	return isFor(f.Child, s)
}

// lastClaim returns the UID of the claim that had a Subnet last, "" if it is not known.
func lastClaim(f *Facts) types.UID {
	s := f.Subnet
	switch {
	case s.Status.UID == s.UID && s.Status.ClaimUID != "":
		return s.Status.ClaimUID
	case ipamrules.IsOriginal(s) && f.ClaimDeleted, isCreatedFor(s, f.Pool) && f.Waited >= f.Grace:
		return s.Spec.ClaimRef.UID
	}

	return ""
}

// isCreatedFor reports whether Arbor created a Subnet for a claim of this pool, nil if there
// is none, so that the claim existed then. A Subnet of a backup was created for a pool with
// another UID, or long ago.
func isCreatedFor(s *v1alpha1.Subnet, p *v1alpha1.SubnetPool) bool {
	return p != nil && ipamrules.IsOriginal(s) && s.Spec.ClaimRef.PoolUID == p.UID && !ipamrules.IsRestoring(p)
}

// DecideAgain returns after what time to decide again about a Subnet that no claim has had:
// it was judged after its claim was deleted, or its claim is not restored yet. It is 0 if
// time changes nothing.
func DecideAgain(f Facts) time.Duration {
	s := f.Subnet
	if s.Spec.ClaimRef == nil || s.Status.ClaimUID != "" || !isCreatedFor(s, f.Pool) {
		return 0
	}

	return max(0, f.Grace-f.Waited)
}
