// Package poolstatus writes the status of SubnetPools: the decision on the range of
// each, and its figures. No other package does.
//
// A pool is reconciled when
//
//  1. a Subnet of it is created, changed or deleted,
//  2. a child pool of it is deleted,
//  3. a child pool of it is created or its spec changes,
//  4. its own spec changes,
//  5. a POST to /recalculate, or the allocator, asks for it,
//  6. the last reconciliation failed.
//
// A pool that asks for a range which it does not have is also reconciled when a pool
// or a Subnet that overlaps it changes, or its parent does.
//
// Figures are the counters of a view that the same events keep current: a
// reconciliation costs the same for ten and for fifty thousand Subnets. Subnets are
// listed only to decide whether a pool can be opened or lose addresses.
package poolstatus
