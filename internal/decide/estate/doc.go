// Package estate looks at all pools, Subnets and claims together, and finds what
// none of them shows alone.
//
//	overlaps  two who have the same addresses
//	orphans   something that was taken for, or from, what is gone
//	lies      a status that says what is not so
//
// [Inspect] is for what a cluster holds, [Foresee] for what somebody is about to
// apply. Neither compares all with all: prefixes nest or do not meet, so one
// walk by address finds everybody who shares something, and an estate of tens of
// thousands of Subnets takes a fraction of a second.
//
// Each thing is said once, of the object that has to change: of a Subnet that
// lies outside of its pool, not of the pool too. What Failed counts as absent,
// and what is being deleted is no orphan.
package estate
