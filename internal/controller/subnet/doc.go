// Package subnet reconciles Subnets: it decides on those that are Pending, releases those
// whose claim is gone, and keeps a released block unused for as long as its pool specifies.
//
//	decide.go    Pending becomes Allocated or Failed, in one write of the status
//	shared.go    reads of the pool that concurrent decisions share
//	release.go   a Subnet without its claim is deleted
//	cooldown.go  a Subnet that is being deleted keeps its block for spec.reuseAfter
//
// Subnets that back a child pool keep their finalizer until the pool guard removes it.
package subnet
