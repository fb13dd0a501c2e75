// Package symphony decides about the Compositions of a Symphony: which there are,
// what they say, and how far they have come together.
//
//	spec ──▶ score: variations in the order of dependsOn, or what is wrong
//	           │
//	           ▼
//	       Decide ──▶ Before ▶ Delete ▶ Create ▶ After, and the status
//
// A score (score.go) is a spec that can be played. Of one that cannot nothing is:
// no composition is made, changed or deleted until it is mended, and the
// condition says what is wrong.
//
// Decide (decide.go) says what can be done at once. The rest follows in later
// rounds, when what it needs is there: a composition is made after those that it
// depends on, because it must name them and only the API server knows their
// names; and nothing is set anywhere while something is still to be removed.
//
// The status (status.go) is about every variation that counts, also one that has
// no composition yet.
package symphony
