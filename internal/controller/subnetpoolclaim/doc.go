// Package subnetpoolclaim serves SubnetPoolClaims: it takes a block from the parent by
// an ordinary SubnetClaim, so that the block is checked like every other one, and makes a
// pool of it.
//
//	SubnetPoolClaim x ──▶ SubnetClaim x ──▶ Subnet     the block, in the parent
//	        └──────────▶ SubnetPool x                 the pool of that block
//
// Both have the name of the SubnetPoolClaim, also in the label PoolClaimLabel. UIDs and
// owner references connect nothing, because a restore changes them.
//
// The deletion takes the opposite way: first the pool, which stays until nothing is
// left in it, then the claim for the block, and then the finalizer of the
// SubnetPoolClaim. The pool guard releases the Subnet when both are gone.
//
// Two managers may serve one SubnetPoolClaim at the same time: one creates an object for it
// while the other releases it. So the SubnetPoolClaim is read from the API server before and
// after each creation. A claim for a block that is left behind nevertheless is released after
// the restore grace period; see PoolBlock in internal/decide/ipam/release.
package subnetpoolclaim
