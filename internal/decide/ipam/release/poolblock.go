package release

import (
	"time"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
)

// PoolBlockFacts are what a decision about the claim for the block of a SubnetPoolClaim
// depends on, when neither the SubnetPoolClaim nor its pool exists.
type PoolBlockFacts struct {
	Block *v1alpha1.SubnetClaim
	// Parent is the pool that the block is taken from, nil if it does not exist.
	Parent *v1alpha1.SubnetPool
	// Expected means that Subnets or recorded claims of the missing pool exist, so that the
	// pool is about to be restored.
	Expected bool
	// Waited is how long the claim has been seen without its SubnetPoolClaim, and Grace how
	// long it is kept in case that is about to be restored.
	Waited, Grace time.Duration
}

// shortestWait is the time between two decisions without a grace period.
const shortestWait = time.Second

// PoolBlock decides about the claim for the block of a SubnetPoolClaim that is gone, without
// a pool. One that is being deleted is released at once. Others are released after the grace
// period, unless a restore is under way: the parent is missing or being restored, or objects
// of the pool wait for it.
func PoolBlock(f PoolBlockFacts) Decision {
	switch {
	case f.Block.DeletionTimestamp != nil:
		return Decision{Action: Release}
	case f.Expected, f.Parent == nil, ipamrules.IsRestoring(f.Parent):
		return Decision{Action: Wait, After: max(f.Grace, shortestWait)}
	case f.Waited < f.Grace:
		return Decision{Action: Wait, After: f.Grace - f.Waited}
	}

	return Decision{Action: Release}
}
