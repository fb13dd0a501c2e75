// Package scheduler is kube-scheduler with gangs: pods that name a PodGroup are
// placed with all the others of their group, as its tree says, or not at all.
// Every other pod takes the way it always took.
//
// It is the only package, beside the embedded control plane, that knows
// k8s.io/kubernetes/pkg/scheduler, which promises nobody a stable API. What it
// relies on beyond signatures is checked when it starts; see assumptions.go.
//
// # The way of a pod
//
//	pod ── gate (PreEnqueue) ── queue (QueueSort) ── next ─┬─ plain: kube-scheduler
//	       waits for its group    by priority, then the    │
//	       to be good and whole   age of the group         └─ gang: the cycle
//
//	the cycle:  take every member from the queue
//	            engine/gang places them in a world (world.go, fit.go)
//	            all fit: bind them (bind.go)    else: put them back (reject.go)
//
// The world is a transaction on the scheduler's Cache. Nothing else reads that
// between two steps, because there is one goroutine that places pods, and
// nothing is held when the cycle ends: a gang that has to wait waits with empty
// hands.
//
// The same code runs on a private Cache to answer questions that must not
// change anything: would it fit, and what would have to go so that it does
// (trial.go, preempt.go, victims.go, search.go).
package scheduler
