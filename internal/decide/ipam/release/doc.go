// Package release decides when a Subnet is deleted, and how long its block stays unused
// then. It has no I/O: a controller gathers Facts and carries the Decision out.
//
// Two rules decide, each a list of clauses in which the first that applies decides:
//
//	claimed.go   the Subnet of a claim is released when the claim is gone
//	backing.go   the Subnet that a child pool is made of is released when the pool is gone
//	held.go      which claim and which pool have had a Subnet
//	cooldown.go  spec.reuseAfter
//	poolblock.go the claim for the block of a SubnetPoolClaim that is gone
//
// The difficult part is a restore. A backup brings Subnets, claims and pools back in any
// order and with new UIDs, so that a Subnet whose claim or pool does not exist may be one
// that nothing needs any more, or one whose claim or pool has not arrived yet. The status
// tells them apart: status.claimUID and status.poolUID name a claim and a pool that have
// existed at the same time as this very Subnet, by its UID. If that claim or pool does not
// exist, it was deleted. The UIDs in the spec prove nothing, because a backup contains them.
//
// A controller that acts on its cache may act on the past. So it decides twice, first on
// facts from its cache and then, if they say that the Subnet is released, on facts from
// the API server, and deletes on condition of UID and resourceVersion. A claim that adopts
// the Subnet, and a pool that is bound to it, change the resourceVersion and win.
//
// The tests walk all orders of a restore with these rules, and remove each clause once.
package release
