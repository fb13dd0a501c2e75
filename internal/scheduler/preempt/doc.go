// Package preempt makes room for gangs that do not fit.
//
//	a gang does not fit ── search for victims ── verify ── reserve ── record, nominate, evict
//	                       search.go, dryrun.go  record.go claim.go          record.go, nomination.go, steps.go
//
// Which step follows is decided by package decide/preemption; the [Preemptor] carries it out.
// Searches work on a copy of the cluster and take turns (turns.go). The scheduling goroutine
// verifies a plan on the live cluster before its room is reserved. A gang that changes while
// its victims terminate keeps its room if that still fits (renew.go). Reservations that
// another process has recorded are recovered before the first pod is placed (recover.go).
package preempt
