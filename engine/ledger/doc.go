// Package ledger counts one pool of addresses: which blocks watches have seen,
// which blocks are reserved for claims, and what is left.
//
// A [Pool] has a range and blocks. A block is a Subnet or a child pool, and its ID
// decides which one it is; names are for messages only. A reservation belongs to a
// claim and is kept apart from the blocks: it ends when a watch brings the block
// ([Pool.Put]), when that block is gone ([Pool.Drop]), or when the claim does not
// get it ([Pool.Cancel]). [Pool.Overdue] finds reservations that no watch has ended.
//
// # Overlaps
//
// Each address is counted once. Of two blocks that overlap the first one counts,
// and the other waits until it fits:
//
//	block          counts if
//	own            no other block has one of its addresses
//	delegated      likewise, but several of one prefix count once, as delegated,
//	               together with an own block of that prefix
//	child pool     likewise, unless a Subnet that backs it is there: then that
//	               Subnet counts, and the child pool does not
//
// Blocks that wait are tried again, the oldest first, when the block that they wait
// for is gone. Blocks outside of the range wait until the range changes.
//
// # Ranges
//
// A pool without a range has neither figures nor reservations, but it remembers its
// blocks. A closed pool has figures and no reservations.
//
// # Cost
//
// Every operation but [Pool.SetRange], [Pool.Replace] and [Pool.Figures] takes a
// time that does not depend on the number of blocks, apart from those that wait for
// the same block.
//
// A Pool is not safe for concurrent use.
package ledger
