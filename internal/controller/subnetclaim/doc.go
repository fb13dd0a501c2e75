// Package subnetclaim serves SubnetClaims in two steps that have only the objects in
// common.
//
// The allocator works by pool, in rounds. A round reads all claims of the pool that
// are not Bound and have no Subnet. It reserves blocks for them one after the other,
// the oldest claim first (round.go), and then creates their Subnets, many at once
// (create.go). The choice may be wrong, because the counts of a pool can be behind:
// the subnet controller decides whether a Subnet gets its block. When a Subnet loses
// its block, the pool is counted again before the next choice (contention.go).
//
// A request to create a Subnet has one of three outcomes. Created: the reservation
// lasts until the watch brings the Subnet. Rejected: the reservation ends, the claim
// reports the message of the API server and is retried after a delay of its own
// (backoff.go). Unknown, after a timeout for example: the reservation stays until a
// live read by name has shown whether the Subnet exists (settle.go).
//
// The binder (bind.go) works by claim: it binds a claim to its Subnet once that is
// Allocated, deletes a Failed one, after which the claim waits again, and reports
// when the Subnet of a bound claim is lost.
package subnetclaim
