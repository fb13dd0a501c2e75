// Package invariant says what must be true of a whole cluster once it has settled,
// whatever happened to it before.
//
//	NoOverlap    no two blocks of a namespace share an address, of whatever pools, unless one backs
//	             the pool of the other
//	NothingLost  what was acknowledged is there, what was acknowledged as deleted is not,
//	             and who was told a block has that one still
//	Bound        every claim has its block
//	NoOrphans    nothing was taken for, or from, what is gone
//	StatusTrue   every status says what a recount says
//	NothingStuck nothing waits for a finalizer, and no block that Failed is left
//	Converged    every Composition is Ready, and the cluster has what its slices say
//	InputsTrue   what the programs make of their inputs, as they are now, is there
//	NoLeftovers  nothing that is applied as eno is in no slice, and no slice is in no synthesis
//	WhollyOwned  no container is left that eno owns a part of and does not name
//	GroupsTrue   the condition of every PodGroup is that of its spec
//	OneOwner     an object is in the current synthesis of one Composition, and eno owns its fields
//	             by one Apply and no Update
//	HookOnce     a Patch that deletes its target deletes it exactly once per synthesis
//	NothingUndone  a value that overrides leave to another writer is not overwritten
//	NothingDeleted what every synthesis has was never deleted, not even for a moment
//
// The last three need a [History], since a snapshot does not show them.
//
// [Check] is a function of a [Snapshot] and of a [Ledger], which is what somebody who
// wrote to the cluster was told. [Take] takes a snapshot. A cluster that is at work
// breaks most of these for moments: check until they hold, not once.
package invariant
