package preemption

import "time"

// A Phase is how far the preemption of one gang has come.
type Phase int

const (
	// Idle gangs have nothing under way.
	Idle Phase = iota
	// Planned gangs wait for the scheduling goroutine to verify their plan.
	Planned
	// Reserved gangs have their room reserved in memory.
	Reserved
	// Recorded gangs have the record of the reservation on their PodGroup.
	Recorded
	// Nominated gangs have the places in the status of their pods.
	Nominated
	// Evicted gangs wait for victims that are terminating.
	Evicted
	// Freed gangs wait to be placed where the victims were.
	Freed
	// BackedOff gangs do not preempt until a time.
	BackedOff
)

// hasPlan reports whether there is a plan in a phase.
func (p Phase) hasPlan() bool { return p >= Planned && p <= Freed }

// hasEvicted reports whether victims were evicted in a phase, or before it.
func (p Phase) hasEvicted() bool { return p == Evicted || p == Freed }

// An Action is what the scheduler has to do next.
type Action int

const (
	// Wait does nothing until the returned time, or until a fact changes.
	Wait Action = iota
	// Search looks for victims.
	Search
	// Record writes the record of the reservation to the PodGroup.
	Record
	// Nominate writes the places to the status of the pods.
	Nominate
	// Evict deletes the victims.
	Evict
	// Renew verifies the plan for a gang that has changed since. It writes nothing.
	Renew
	// RecordAgain writes the record and the places of a plan that was renewed.
	RecordAgain
	// Release ends the reservation, and removes its record and nominations.
	Release
)

// Limits of a preemption.
const (
	// PlanTimeout is how long a plan may wait to be verified.
	PlanTimeout = 10 * time.Second
	// RoomTimeout is how long room stays reserved once the last victim is gone, and how
	// long it stays reserved for a gang that does not have enough pods.
	RoomTimeout = 30 * time.Second
	// MaxEviction is how long the API server may take to delete a victim. How long a
	// victim may then take to terminate is its own grace period.
	MaxEviction = 10 * time.Minute
	// RetryTimeout is how long an action is retried after API errors.
	RetryTimeout = 30 * time.Second
	// MaxVerifications is how many plans in a row may turn out to be outdated.
	MaxVerifications = 3
	// FirstBudget and MaxBudget bound one search; each search that takes too long
	// doubles the next.
	FirstBudget, MaxBudget = 5 * time.Second, time.Minute
	// FirstBackOff and MaxBackOff bound the back-off after a failure.
	FirstBackOff, MaxBackOff = 10 * time.Second, 10 * time.Minute

	// cacheDelay is how long to wait for the scheduler's cache, which is updated within
	// milliseconds.
	cacheDelay = 20 * time.Millisecond
	// evictAgain is how long the informer may take to show that a victim was deleted.
	evictAgain = 5 * time.Second

	searchShare          = 20
	firstRetry, maxRetry = 250 * time.Millisecond, 5 * time.Second
)

// A State is what is remembered of one gang between two steps. The zero value is
// Idle.
type State struct {
	Phase Phase
	// Since is when the phase began.
	Since time.Time
	// Errors counts the API errors in a row, Failing is when the first of them was, and
	// Retry is when to try again.
	Errors  int
	Failing time.Time
	Retry   time.Time
	// Incomplete is since when the gang does not have enough pods; zero if it has.
	Incomplete time.Time
	// Outdated counts plans in a row that did not pass verification.
	Outdated int
	// Failures counts preemptions in a row that did not place the gang, and Until
	// is when the back-off ends.
	Failures int
	Until    time.Time
	// Slow counts searches in a row that exceeded their budget.
	Slow int
}

// Facts are what the scheduler knows of a gang and its victims.
type Facts struct {
	Now time.Time
	// Applies reports that the gang exists, can be read, and, if there is a plan, is the
	// one that the plan was made for.
	Applies bool
	// Incomplete reports that the gang does not have enough pods to be tried.
	Incomplete bool
	// Changed reports that the plan was verified for another spec or for other pods of
	// the gang, and Unrecorded that its record is not up to date.
	Changed, Unrecorded bool
	// Deadline is when the reservation ends at the latest; zero if there is no plan. It is
	// the same after a restart.
	Deadline time.Time
	// Placed reports that every minimum is met by bound pods.
	Placed bool
	// Unplaced reports that the gang was tried since the last search and does not fit.
	Unplaced bool
	// Unprepared is until when the gang must not preempt, because one of its pods could not be
	// prepared for its node; zero if it may.
	Unprepared time.Time
	// Binding reports that the gang has its minimum, and that not all of it is bound.
	Binding bool
	// Victims is how many victims still use the room, and Running how many of them were
	// not deleted.
	Victims, Running int
	// Cached is how many victims are gone and still in the scheduler's cache, which
	// another watch handler updates.
	Cached int
	// Using names the victims that still use the room, and Stuck those of them that do not
	// terminate.
	Using, Stuck []string
}

// Next returns the next action. With Wait, it also returns when to call it again if no fact changes
// before; zero means never.
func (s State) Next(f Facts) (next State, action Action, at time.Time) {
	s = s.noteMissing(f)
	switch {
	case f.Placed || !f.Applies:
		return s.end(f)
	case f.Now.Before(s.Retry):
		return s, Wait, s.Retry
	case !s.Phase.hasPlan():
		return s.start(f)
	case f.Incomplete:
		return s.awaitMembers(f)
	case f.Binding:
		return s, Wait, f.Now.Add(RoomTimeout) // no pod has to be evicted unless that fails
	case f.overdue() || f.unprepared():
		return s, Release, time.Time{}
	case f.Changed || f.Unrecorded:
		return s.adapt(f)
	}

	return s.step(f)
}

// noteMissing records since when pods of the gang are missing.
func (s State) noteMissing(f Facts) State {
	switch {
	case !f.Incomplete:
		s.Incomplete = time.Time{}
	case s.Incomplete.IsZero():
		s.Incomplete = f.Now
	}

	return s
}

// overdue reports whether the reservation has to end.
func (f Facts) overdue() bool { return !f.Deadline.IsZero() && !f.Now.Before(f.Deadline) }

// unprepared reports whether the gang could not use the room.
func (f Facts) unprepared() bool { return f.Now.Before(f.Unprepared) }

// end is for a gang that is placed, or no longer the one that should be placed.
func (s State) end(f Facts) (next State, action Action, at time.Time) {
	switch {
	case s.Phase.hasPlan():
		return s, Release, time.Time{}
	case f.Placed:
		return State{}, Wait, time.Time{}
	}

	return s.enter(Idle, f.Now), Wait, time.Time{}
}

// start searches if the gang does not fit and does not back off.
func (s State) start(f Facts) (next State, action Action, at time.Time) {
	if s.Phase == BackedOff {
		if f.Now.Before(s.Until) {
			return s, Wait, s.Until
		}
		s = s.enter(Idle, f.Now)
	}
	if !f.Unplaced || f.Incomplete {
		return s, Wait, time.Time{}
	}
	if f.unprepared() {
		return s, Wait, f.Unprepared
	}

	return s, Search, time.Time{}
}

// adapt is for a plan that was made for another spec, or other pods, of the gang.
func (s State) adapt(f Facts) (next State, action Action, at time.Time) {
	switch {
	case !s.Phase.hasEvicted():
		return s, Release, time.Time{} // another search costs nothing
	case f.Changed:
		return s, Renew, time.Time{}
	default:
		return s, RecordAgain, time.Time{}
	}
}

// awaitMembers is for a gang that does not have enough pods. If some were deleted, their
// controller creates them again soon, so room that victims have left stays reserved for a
// while. No pod is evicted until then.
func (s State) awaitMembers(f Facts) (next State, action Action, at time.Time) {
	until := s.Incomplete.Add(RoomTimeout)
	switch {
	case s.Phase == Planned || !f.Now.Before(until) || f.overdue():
		return s, Release, time.Time{}
	case !s.Phase.hasEvicted():
		return s, Wait, until
	}
	next, action, at = s.step(f)
	if action == Evict {
		return s, Wait, until
	}
	if action == Wait && at.After(until) {
		at = until
	}

	return next, action, at
}

func (s State) step(f Facts) (next State, action Action, at time.Time) {
	switch s.Phase {
	case Reserved:
		return s, Record, time.Time{}
	case Recorded:
		return s, Nominate, time.Time{}
	case Nominated:
		return s, Evict, time.Time{}
	case Evicted:
		return s.awaitVictims(f)
	case Freed:
		return s.until(f, s.Since.Add(RoomTimeout), Release)
	case Planned:
		return s.until(f, s.Since.Add(PlanTimeout), Release)
	case Idle, BackedOff:
	}

	return s.start(f)
}

// awaitVictims waits until the last victim is gone, unless one does not terminate.
func (s State) awaitVictims(f Facts) (next State, action Action, at time.Time) {
	switch {
	case f.Victims == 0 && f.Cached > 0:
		return s, Wait, f.Now.Add(cacheDelay) // a try would not see the room yet
	case f.Victims == 0:
		s = s.enter(Freed, f.Now)

		return s, Wait, s.Since.Add(RoomTimeout)
	case len(f.Stuck) > 0 || f.Running > 0 && f.Now.Sub(s.Since) > MaxEviction:
		return s, Release, time.Time{}
	case f.Running > 0 && f.Now.Sub(s.Since) > evictAgain:
		return s, Evict, time.Time{}
	case f.Running > 0:
		return s, Wait, s.Since.Add(evictAgain + 1)
	default:
		return s, Wait, f.Now.Add(RoomTimeout) // a victim may become overdue
	}
}

// until waits for a time and then takes an action.
func (s State) until(f Facts, at time.Time, then Action) (State, Action, time.Time) {
	if f.Now.Before(at) {
		return s, Wait, at
	}

	return s, then, time.Time{}
}

func (s State) enter(p Phase, now time.Time) State {
	s.Phase, s.Since = p, now

	return s.succeeded()
}

// succeeded forgets API errors.
func (s State) succeeded() State {
	s.Errors, s.Failing, s.Retry = 0, time.Time{}, time.Time{}

	return s
}

// Edited reports that the gang has another spec than before. That is another problem, so
// neither a back-off nor a delay applies any more; the budget of a search does.
func (s State) Edited() State {
	if s.Phase != Idle && s.Phase != BackedOff {
		return s
	}

	return State{Slow: s.Slow}
}
