// Package symphony decides about the Compositions of a Symphony: which exist, their specs, and
// their common progress.
//
//	spec ──▶ score: variations in the order of dependsOn, or what is wrong
//	           │
//	           ▼
//	       Decide ──▶ Before ▶ Delete ▶ Create ▶ After, and the status
//
// A score (score.go) is a valid spec. With an invalid one nothing is done: no composition is
// created, changed or deleted until it is fixed, and the condition has the reason.
//
// Decide (decide.go) returns what can be done immediately. The rest follows in later rounds, when
// what it needs exists: a composition is created after those that it depends on, because it must
// name them and only the API server knows their names; and nothing is set anywhere while something
// must still be removed.
//
// The status (status.go) is about every variation that counts, also one that has
// no composition yet.
package symphony
