// Package synthesis decides about the syntheses of Compositions: when one is started and why, how
// it ends, and what is reported about it.
//
//	        Schedule, Begin            Promote
//	wish ──────────────────▶ in flight ────────▶ current ──▶ previous ──▶ history
//	 ▲                           │ Fail, timeout
//	 └────────── Retry ──────────┘
//
// A Wish (wish.go) is why a composition should have a synthesis. A Plan (plan.go) is which of all
// compositions get one now: there is a limit of concurrent syntheses, namespaces take turns
// (slots.go), and changes that reach many compositions are rolled out one by one. What is in flight
// was written to the status under its resourceVersion, so of several managers one started it; it
// ends by Promote or Fail (move.go), which reject managers that are too late.
//
// The manifests of a synthesis are split into slices (slice.go). An object that is in the current
// synthesis and not in the new one is carried along as a tombstone, and stays one until a slice
// reports that the object is deleted.
//
// Pods (pods.go) decides which pods a composition should have, if programs run in pods, and why
// other pods must be deleted.
//
// Look (look.go) is everything that is reported about one composition: inputs, dependencies,
// progress, conditions, and a summary.
package synthesis
