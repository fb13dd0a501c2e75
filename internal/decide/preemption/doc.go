// Package preemption decides what happens next to a gang that preempts other gangs. It is pure: the
// scheduler passes the facts, carries out one action, and reports how that ended.
//
//	          a try failed           the plan was found       verified on the live cluster
//	  Idle ───────────────► (Search) ─────────────► Planned ─────────────► Reserved
//	   ▲                                                                      │ Record
//	   │ time is over                                                         ▼
//	BackedOff ◄──── Release ◄─── any phase below                           Recorded
//	                   ▲          that does not                               │ Nominate
//	                   │          go on                                       ▼
//	                   │                                                  Nominated
//	                   │ 30 s without success      all victims are gone       │ Evict
//	                 Freed ◄─────────────────────────────────────────────── Evicted
//
// Every phase has an error path: an API error is retried with a back-off and then
// given up with a reason, a victim that does not terminate ends the reservation, and
// a gang that is placed or deleted ends everything at once.
//
// A gang may be edited, and its pods may be deleted and created again, while it waits.
// Before the first eviction that ends the plan, because another search costs nothing.
// After it, the plan is renewed: it is verified for the gang as it is now, and recorded
// again. It is released only if it no longer applies, or if pods stay missing.
//
// Search and Renew use one copy of the cluster. Gangs take turns to use it, see [Turns]. No
// other action needs a turn: a slow API server does not keep other gangs from searching.
package preemption
