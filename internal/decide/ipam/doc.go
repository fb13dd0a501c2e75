// Package ipam has the rules for SubnetPools, Subnets and SubnetClaims. Webhooks,
// controllers and the command line ask it, so that all decide alike:
//
//	SubnetPool    CheckPool, AdmitPool    what admission rejects
//	              DecidePool              whether a pool gets the range that it asks for
//	              DecideBacking           which Subnet of the parent holds a child pool
//	              PoolStatus              what its status shows
//	Subnet        CheckSubnet             what admission rejects
//	              DecideSubnet            whether its block may be used
//	SubnetClaim   ReadClaim               what it asks for, or why that is impossible
//	              NewSubnet               the Subnet to create for it
//	              ClaimAdopts             which Subnets it can take over
//
// Package audit, below, checks all objects of a cluster together, and package
// poolblocks translates them to blocks of engine/ledger.
//
// # A Subnet is allocated
//
// No two Subnets of a pool that overlap are ever both Allocated, whichever managers
// create and decide on them: two that both act as leader, with old caches, one of them
// suspended for an hour before its last write. This takes no lock and no ledger, only
// this order of steps:
//
//  1. A Subnet is created Pending.
//  2. The manager that decides on it takes one snapshot of the pool's Subnets that
//     contains this one in its newest version, however old the snapshot is otherwise.
//  3. DecideSubnet returns Failed if the snapshot contains an overlapping Subnet that
//     is Allocated, or one that is Pending with a smaller resourceVersion; otherwise
//     it returns Allocated.
//  4. The decision is written on condition that the Subnet still has the version that
//     was decided on. If not, it is decided again.
//
// # Why no two Subnets have the same addresses
//
// Suppose A and B overlap and both became Allocated, A in the
// version a, B in the version b, and a < b (versions of one resource are
// ordered, as etcd's revisions are). B was decided on in version b, so from a state at
// or after b. A had its version a by then, or a later one:
//
//   - If A was Allocated in that state, B became Failed.
//   - If A was Pending in version a, which is smaller, B became Failed.
//   - A cannot have had any other version, or the decision on A, which was written
//     on condition of a, would have been rejected.
//
// Either way B is not Allocated. The tests walk through every order of events
// for up to three blocks and do not find another.
//
// Two Subnets of a pool also exclude each other if both were created for claims of
// the same clusterID. The argument is the same, because the spec of a Subnet never
// changes. A Subnet that is being deleted does not count for this rule: it cannot
// come back.
//
// Pools change, so DecideSubnet also needs the pool, read from the API server after the
// Subnet was known in the version that is decided on. A Subnet is allocated only if the
// pool is not being deleted and the block is inside of what the pool has
// (status.cidr) and of what it asks for (spec.cidr). A pool is removed, or gives up
// addresses, only after a live list of its Subnets, which comes after the deletion
// or the change of the spec. A Subnet that is not in that list was created later, so
// the read of its pool is later still and shows the deletion or the new spec. The
// other half of the proof is below.
//
// resourceVersions that cannot be compared decide nothing: the Subnet stays Pending.
//
// Failed is final and counts as absent. Subnets that are being deleted count
// until they are gone. Subnets created by hand, and those whose status was lost
// with a backup, are decided like any other Subnet.
//
// # A pool is opened
//
// Two pools never allocate the same addresses, whichever managers run: two that
// both act as leader, with old caches, one of them suspended for an hour before its
// last write, with or without webhooks. The range that a pool has is status.cidr,
// valid only with the pool's own UID in status.uid. A pool is a candidate if it is
// not being deleted, asks for another range (spec.cidr), and its generation was not
// rejected (status.lost). DecidePool decides about candidates:
//
//   - R1: A root gets its range unless another root has an overlapping range, or is
//     a candidate for one with a smaller resourceVersion.
//   - R2: A pool that cannot be opened is rejected. It then counts as absent, so that
//     it blocks no other pool. When the reason is gone, one write makes it a
//     candidate again, of a new version, and R1 applies.
//   - R3: A child is not compared with pools. It gets its range if that is inside
//     of its backing Subnet: a Subnet of the parent that is Allocated, has the
//     finalizer from its creation, and whose status.poolUID is the UID of the child.
//   - R5: A pool that opens for the first time, or gives up addresses, does so only
//     after a live list shows that it contains all its Subnets that are not Failed.
//     The list begins when the version that is decided on is known.
//   - A pool is not opened over Allocated Subnets that no open pool contains. They
//     were stored by versions that did not open pools, or a finalizer was removed
//     by force. For Subnets of child pools a backing Subnet is enough.
//
// R4 is the part of DecideSubnet: a Subnet is allocated only inside of
// status.cidr and spec.cidr of its pool, which is read from the API server after
// the Subnet is known.
//
// The facts come from the informer's store, which must hold the pool in the version
// that is decided on, and the decision is written on condition of that version.
//
// # Why no two pools have the same addresses
//
// Suppose the roots A and B have overlapping ranges, A decided in version a, B in version
// b, and a < b. B's facts are from a state at or after b. A had version a until its
// decision was written, because that write was on condition of a. So in that state A
// was a candidate with the smaller version, or it had the range, or it had given it
// up since. In the first two cases B was rejected. This is why a rejected pool needs a
// new version before it is opened (R2): as long as it is rejected, B does not count
// it, and with its old version it would not count B.
//
// If A gave the range up, by R5 or by its deletion, a live list showed no Subnet of
// A in it. A Subnet that was created before that list is in the list. A Subnet that
// was created later is decided on after a live read of A, which is later than the list,
// so it shows that A is being deleted or asks for another range (R4). In no case is
// a Subnet of A allocated there.
//
// A child C allocates what is inside of its backing Subnet. No other Subnet of the
// parent overlaps that one while it is there, as shown above. It stays:
// it has a finalizer, and is released only after live reads, first that no pool has
// the UID in its status.poolUID, then that no Subnet which is not Failed is in the
// pool of that name. The order matters where a finalizer was removed by force.
// Binding it to another pool is a write under its version that has to find
// status.poolUID empty or the UID of a pool that is gone, so it backs one pool at a
// time. It does not matter how late the child is created, or whether its
// SubnetPoolClaim still exists: without a Subnet that is bound to it, it is not
// opened.
//
// The tests walk through every order of events in small worlds: creations,
// deletions, resizes, writes that change nothing, late decisions, re-creations under
// one name, child pools, SubnetPoolClaims, an upgrade, and finalizers removed by
// force. They find no collision, and nothing that waits for free addresses in an end
// state. With any one of the clauses left out they find one.
//
// Not covered: a finalizer that is removed by force while a decision on a Subnet of
// that pool is on its way, or while the watch of Subnets is behind that of pools by
// more than that; two versions of the manager at once, and an etcd that was
// restored to smaller revisions while a manager runs.
package ipam
