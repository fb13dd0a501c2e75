// Package synthesis makes ResourceSlices of Compositions. Three hands share the
// work and meet in the objects.
//
// The scheduler (schedule.go) reads all compositions and begins the syntheses whose turn it is, by
// a write to the status that only one of several managers can make. The manager that made it runs
// the synthesis.
//
// The worker (work.go) runs it, by a Runner of package synthesis; or, if programs
// run in pods, sees it end. Pods are the business of package synthesispod.
//
// The reconciler (reconcile.go) works by composition: it keeps the status true,
// gives up what was in flight for too long, clears away slices that no synthesis
// needs, and lets a composition go when its objects are gone.
//
// A manager can be killed between any two writes. Before the first, nothing happened. After it, a
// synthesis is in flight that no manager runs: it is canceled after its timeout, and started again.
// Slices that were written for it belong to no synthesis then, and are deleted.
package synthesis
