// Package synthesis decides about the syntheses of Compositions: when one is
// begun and why, what becomes of it, and what is said about it.
//
//	        Schedule, Begin            Promote
//	wish ──────────────────▶ in flight ────────▶ current ──▶ previous ──▶ history
//	 ▲                           │ Fail, timeout
//	 └────────── Retry ──────────┘
//
// A Wish (wish.go) is why a composition should have a synthesis. A Plan (plan.go)
// is which of all compositions get one now: there is a limit of syntheses at once,
// namespaces take turns (slots.go), and changes that reach many compositions are
// rolled out one by one. What is in flight was written to the status under its
// resourceVersion, so of several managers one began it; it ends by Promote or
// Fail (move.go), which refuse whoever comes too late.
//
// What a synthesis made is cut into slices (slice.go). Whatever was in the
// current synthesis and is not in the new one goes along as a tombstone, and
// stays one until a slice says that the object is gone.
//
// Pods (pods.go) says which pods a composition should have, if programs run in
// pods, and why others are to go.
//
// Look (look.go) is everything that is said about one composition: inputs,
// dependencies, progress, conditions, and a word for people.
package synthesis
