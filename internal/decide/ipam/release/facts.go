package release

import (
	"time"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// Facts are what a decision about a Subnet depends on.
type Facts struct {
	Subnet *v1alpha1.Subnet
	// Pool is the pool that the Subnet is taken from, nil if it does not exist.
	Pool *v1alpha1.SubnetPool
	// Claim is the claim that the Subnet names, nil if it does not exist.
	Claim *v1alpha1.SubnetClaim
	// Child is the pool with the UID in status.poolUID, or else the one that ChildName
	// names, nil if neither exists.
	Child *v1alpha1.SubnetPool
	// Inside describes a Subnet of the child pool that is left in the block, "" if there is
	// none, or if it is not known.
	Inside string
	// ClaimDeleted means that the claim with the UID in spec.claimRef was deleted a short
	// time ago.
	ClaimDeleted bool
	// Waited is how long the Subnet has existed, and Grace how long a Subnet without its
	// claim or its pool is kept in case that is about to be restored.
	Waited, Grace time.Duration
	Now           time.Time
}

// An Action is what to do about a Subnet.
type Action int

// Actions.
const (
	// Keep means that the Subnet is needed, or that another controller decides.
	Keep Action = iota
	// Wait means that time decides.
	Wait
	// Release means that the Subnet is deleted or, if it is being deleted, that its
	// finalizer is removed.
	Release
)

// A Decision is what to do about a Subnet, and why.
type Decision struct {
	Action Action
	// Reason is what the Subnet is kept for.
	Reason string
	// After is how long to wait.
	After time.Duration
}

// A clause decides about some Subnets. It leaves the rest to the clauses after it.
type clause struct {
	name   string
	decide func(*Facts) (Decision, bool)
}

// keepIf returns a clause that keeps some Subnets.
func keepIf(name string, applies func(*Facts) (reason string, applies bool)) clause {
	return clause{name, func(f *Facts) (Decision, bool) {
		reason, ok := applies(f)

		return Decision{Action: Keep, Reason: reason}, ok
	}}
}

// waitFor returns a clause that keeps some Subnets for a time.
func waitFor(name string, left func(*Facts) time.Duration) clause {
	return clause{name, func(f *Facts) (Decision, bool) {
		after := left(f)

		return Decision{Action: Wait, After: after}, after > 0
	}}
}

// releaseIf returns a clause that releases some Subnets.
func releaseIf(name string, applies func(*Facts) bool) clause {
	return clause{name, func(f *Facts) (Decision, bool) { return Decision{Action: Release}, applies(f) }}
}

// decide returns what the first clause decides that applies. A Subnet that no clause is
// about is released.
func decide(clauses []clause, f *Facts) Decision {
	for _, c := range clauses {
		if d, ok := c.decide(f); ok {
			return d
		}
	}

	return Decision{Action: Release}
}

// hasForeignStatus reports whether the status is that of another Subnet, which a backup
// can bring along. It counts as none, and the Subnet controller removes it.
func hasForeignStatus(s *v1alpha1.Subnet) bool { return s.Status.UID != "" && s.Status.UID != s.UID }
