// Package subnet decides which Subnets may be used.
//
// No two Subnets of a pool that overlap are ever both Allocated, whoever
// creates and judges them: two managers that both believe to lead, caches that
// are old, a process that was paused for an hour before its last write. It
// takes no lock and no ledger, only this order of things:
//
//  1. A Subnet is created Pending.
//  2. Whoever judges it takes one snapshot of the pool's Subnets that holds
//     this one in its newest version, however old the snapshot is otherwise.
//  3. Judge says Failed if the snapshot holds an overlapping Subnet that is
//     Allocated, or one that is Pending with a smaller resource version;
//     otherwise it says Allocated.
//  4. The verdict is written on condition that the Subnet still has the
//     version that was judged. If not, it is judged again.
//
// Why that is enough. Say A and B overlap and both became Allocated, A in the
// version a, B in the version b, and a < b (versions of one resource are
// ordered, as etcd's revisions are). B's judge saw B in version b, so it saw a
// state at or after b. A had its version a by then, or a later one:
//
//   - Was A Allocated in that state, B was failed.
//   - Was A Pending in version a, which is smaller, B was failed.
//   - A cannot have been there in any other version, or A's own verdict, which
//     was written on condition of a, would have been refused.
//
// Either way B is not Allocated. The tests walk through every order of events
// for up to three blocks and do not find another.
//
// Two Subnets of a pool also exclude each other if both were created for claims of
// the same clusterID. The argument is the same, because the spec of a Subnet never
// changes. A Subnet that is being deleted does not count for this rule: it cannot
// come back.
//
// Pools change, so Judge also asks for the pool, read from the API server after the
// Subnet was known in the version that is judged. A Subnet is allocated only if the
// pool is not being deleted and the block is inside of what the pool has
// (status.cidr) and of what it asks for (spec.cidr). A pool is removed, or gives up
// addresses, only after a live list of its Subnets, which comes after the deletion
// or the change of the spec. A Subnet that is not in that list was created later, so
// the read of its pool is later still and shows the deletion or the new spec. Package
// pool has the other half of the proof.
//
// resourceVersions that cannot be compared decide nothing: the Subnet stays Pending.
//
// Failed is final and counts as absent. Subnets that are being deleted count
// until they are gone. Subnets made by hand, and those whose status was lost
// with a backup, are judged like all others.
package subnet
