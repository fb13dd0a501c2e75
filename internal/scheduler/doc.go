// Package scheduler is kube-scheduler with gangs: pods that name a PodGroup are placed
// with all the others of their group, as its tree requires, or not at all. All other
// pods take the usual way.
//
// It and the packages below are the only ones next to the embedded control plane that
// import k8s.io/kubernetes/pkg/scheduler, which has no stable API. What they rely on beyond
// signatures is checked when the scheduler starts; see setup.go.
//
// # From a pod to a binding
//
//	pod ── gate (PreEnqueue) ── queue (QueueSort) ── next ─┬─ plain: kube-scheduler
//	       until its group is     by priority, then the    │
//	       valid and complete     age of the group         └─ gang: the cycle
//
//	the cycle   take every member from the queue                 cycle.go
//	            engine/gang places them in a world               package placement
//	            all fit: Permit, PreBind for all, then Bind      package binding
//	            else: put them back                              reject.go
//
// The world is a transaction on the scheduler's cache. One goroutine places pods, and
// places that a cycle only tries are never seen by others: what counts as placed
// before the API server knows is in package podgroups.
//
// # Packages
//
//	gate, backoff       when a gang is tried
//	placement           where it fits; on the live cache, or on a copy
//	binding             reserves and binds all of its pods or none
//	preempt             making room for it: search, reservation, eviction
//	reservation         the room that is kept while victims terminate
//	plainpreemption     preemption by pods without a PodGroup
//	eviction, stale     deleting pods, and what is left of gangs that lost pods
//	report              status, conditions and events
//	oracle, dump        answers without a running scheduler
//	podgroups           PodGroups and their pods, from informers
//	settings, profiles  options and plugins
//	worker, gangmetrics, podinfo
//
// Which event has which gang tried again is in wake.go.
package scheduler
