// Package scheduler is kube-scheduler with gangs: pods that name a PodGroup are placed
// with all the others of their group, as its tree requires, or not at all. All other
// pods take the usual way.
//
// It is the only package next to the embedded control plane that imports
// k8s.io/kubernetes/pkg/scheduler, which has no stable API. What it relies on beyond
// signatures is checked when it starts; see setup.go.
//
// # From a pod to a binding
//
//	pod ── gate (PreEnqueue) ── queue (QueueSort) ── next ─┬─ plain: kube-scheduler
//	       until its group is     by priority, then the    │
//	       valid and complete     age of the group         └─ gang: the cycle
//
//	the cycle   take every member from the queue                 cycle.go
//	            engine/gang places them in a world               world.go, fit.go, memo.go
//	            all fit: Permit, PreBind for all, then Bind      permit.go, round.go, bind.go
//	            else: put them back                              reject.go
//
// The world is a transaction on the scheduler's cache. One goroutine places pods, and
// places that a cycle only tries are never seen by others: what counts as placed
// before the API server knows is in groups.committed.
//
// # Making room
//
//	a gang does not fit ── search for victims ── verify ── reserve ── record, nominate, evict
//	cycle.go               search.go, dryrun.go  record.go claim.go          record.go, evict.go
//
// The steps and their error paths are decided by package preemption and carried out by
// the preemptor (preempt.go). A gang that changes while its victims terminate keeps its
// room if that still fits (renew.go). Plain pods preempt through the plugin in
// plainpreemption.go, which takes gangs as wholes.
//
// # Other workers
//
// Which event has which gang tried again is in wake.go. The reporter (report.go) only
// reports; staleness (stale.go) evicts what is left of gangs that lost pods. A panic in
// a worker affects one group (recovered.go).
package scheduler
