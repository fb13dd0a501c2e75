// Package audit checks all pools, Subnets and claims together, and finds what none of
// them shows alone:
//
//	overlaps      two objects that have the same addresses
//	orphans       an object whose pool or claim does not exist
//	wrong status  a status that differs from what the objects show
//
// [Inspect] is for the objects of a cluster, [Preview] for manifests that are about to be
// applied. Neither compares all objects with all: prefixes either nest or are disjoint, so
// one walk by address finds everything that overlaps, and tens of thousands of Subnets
// take a fraction of a second.
//
// Each problem is reported once, for the object that has to change: for a Subnet that is
// outside of its pool, and not for the pool as well. A Failed object counts as absent, and
// one that is being deleted is not an orphan.
package audit
