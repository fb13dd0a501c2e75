// Package subnetclaim serves SubnetClaims, in two steps that meet only in the
// objects.
//
// The allocator (allocate.go) works by pool: it takes all claims that wait for
// one, chooses blocks for them from the view and creates their Subnets, many at
// once. Its choice may be wrong, since a view can be behind; the judge of
// Subnets finds out.
//
// The binder (bind.go) works by claim: it binds a claim to its Subnet when that
// has been Allocated, clears away one that Failed, which makes the claim wait
// again, and says so when the Subnet of a bound claim is lost.
package subnetclaim
