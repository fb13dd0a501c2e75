package preemption

import "time"

// Did reports that an action succeeded.
func (s State) Did(action Action, now time.Time) State {
	switch action {
	case Record:
		return s.enter(Recorded, now)
	case Nominate:
		return s.enter(Nominated, now)
	case Evict:
		if s.Phase == Evicted { // some had to be evicted again
			s = s.succeeded()
			s.Retry = now.Add(evictAgain)

			return s
		}

		return s.enter(Evicted, now)
	case RecordAgain:
		return s.succeeded()
	case Wait, Search, Renew, Release: // Renew writes nothing, so API errors still count
	}

	return s
}

// Failed reports an API error. It returns true if the action is not to be retried.
func (s State) Failed(now time.Time) (State, bool) {
	if s.Errors == 0 {
		s.Failing = now
	}
	s.Errors++
	s.Retry = now.Add(backOff(firstRetry, maxRetry, s.Errors))

	return s, now.Sub(s.Failing) > RetryTimeout
}

// Found reports that a search found a plan.
func (s State) Found(now time.Time) State {
	s.Slow = 0

	return s.enter(Planned, now)
}

// Exceeded reports that a search exceeded its budget. The gang backs off, and the
// next search has more time.
func (s State) Exceeded(now time.Time) State {
	s.Slow++

	return s.BackOff(now)
}

// Pause reports that no search can help now, and how long it took to find out. The next
// one waits until searches for this gang take a twentieth of the time at most.
func (s State) Pause(now time.Time, took time.Duration) State {
	s.Retry = now.Add(searchShare * took)

	return s
}

// Delay reports that the gang may not preempt before a time.
func (s State) Delay(until time.Time) State {
	s.Retry = until

	return s
}

// Budget returns how long the next search may take.
func (s State) Budget() time.Duration { return backOff(FirstBudget, MaxBudget, s.Slow+1) }

// Verified reports that the room of a plan is reserved.
func (s State) Verified(now time.Time) State {
	s.Outdated = 0

	return s.enter(Reserved, now)
}

// Rejected reports that a plan no longer holds. The search is repeated some times,
// then the gang backs off.
func (s State) Rejected(now time.Time) State {
	s.Outdated++
	if s.Outdated < MaxVerifications {
		return s.enter(Idle, now)
	}
	s.Outdated = 0

	return s.BackOff(now)
}

// BackOff ends a preemption that did not place the gang.
func (s State) BackOff(now time.Time) State {
	s.Failures++
	s = s.enter(BackedOff, now)
	s.Until = now.Add(backOff(FirstBackOff, MaxBackOff, s.Failures))

	return s
}

// backOff doubles from first with every try after the first, up to limit.
func backOff(first, limit time.Duration, tries int) time.Duration {
	d := first
	for range tries - 1 {
		if d = 2 * d; d >= limit {
			return limit
		}
	}

	return d
}

// A Cause is why a reservation was released.
type Cause int

const (
	// Done means that the gang is placed.
	Done Cause = iota
	// Superseded means that the gang was edited or deleted, or does not have enough pods
	// any more.
	Superseded
	// Outdated means that the plan was never verified.
	Outdated
	// Blocked means that an API error or a victim that does not terminate stood in
	// the way.
	Blocked
	// Expired means that the gang was not placed although every victim is gone.
	Expired
	// Unprepared means that a pod of the gang could not be prepared for its node.
	Unprepared
)

// Released reports that the reservation, or the plan, was released, and why.
func (s State) Released(f Facts) (State, Cause) {
	switch {
	case f.Placed:
		return State{}, Done
	case !f.Applies || !s.Phase.hasEvicted() && (f.Incomplete || f.Changed):
		return s.enter(Idle, f.Now), Superseded // the gang is another one, or no pod was evicted
	case f.unprepared():
		return s.enter(Idle, f.Now), Unprepared
	case f.Incomplete:
		return s.BackOff(f.Now), Superseded
	case s.Phase == Planned:
		return s.Rejected(f.Now), Outdated
	case s.Phase == Freed:
		return s.BackOff(f.Now), Expired
	default:
		return s.BackOff(f.Now), Blocked
	}
}
