// Package invariant checks what must be true of a whole cluster once it has settled,
// whatever happened to it before.
//
//	NoOverlap      two blocks of a namespace share no address, even of different pools, unless one
//	               backs the pool of the other
//	NothingLost    acknowledged objects exist, acknowledged deletions are done, and every claim
//	               keeps the block that its status had
//	Bound          every claim has its block
//	NoOrphans      no block belongs to an object that is gone
//	StatusTrue     every status agrees with a recount
//	NothingStuck   no object waits for a finalizer, and no Failed block is left
//	Converged      every Composition is Ready, and the cluster agrees with its slices
//	InputsTrue     the output of the programs for the current inputs is in the cluster
//	NoLeftovers    every object that eno applied is in a slice, and every slice in a synthesis
//	WhollyOwned    eno owns no part of a container that its manifest does not name
//	GroupsTrue     the condition of every PodGroup agrees with its spec
//	OneOwner       an object is in the current synthesis of one Composition, and eno owns its
//	               fields by one Apply and no Update
//	HookOnce       a Patch that deletes its target deletes it exactly once per synthesis
//	NothingUndone  a value that overrides leave to another field manager is not overwritten
//	NothingDeleted an object of every synthesis was never deleted, not even for a moment
//
// The last three need a [History], since a snapshot does not show them.
//
// [Check] is a function of a [Snapshot] and of a [Ledger], which has the results that a client
// of the cluster got. [Take] takes a snapshot. A cluster under load violates most of these for
// moments: check until they hold, not once.
package invariant
