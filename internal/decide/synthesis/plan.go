package synthesis

import "time"

// Plan returns which syntheses to start: those that have all they need, as many as there are slots
// for, and one at a time of those that follow a change which reaches many compositions. Namespaces
// get slots in turn (see slots), and within a namespace the most urgent synthesis is first. The
// order of a rollout within a namespace is another one for every generation of a Synthesizer, and
// the same for every manager. A rollout that breaks too many compositions is halted; those that it
// has broken are retried all the same.
func (l *Ledger) Plan(limits Limits, now time.Time) Plan {
	budgets := l.budgets(limits)
	p := planning{
		Plan:    Plan{Halts: l.halts(budgets, limits.Scope)},
		limits:  limits,
		now:     now,
		rollout: l.lastRollout(),
		budgets: budgets,
		slots:   newSlots(limits.Concurrency, l.running),
	}
	all := l.candidates(limits.Rules)
	for i := range all {
		if !all[i].needsSlot() {
			p.consider(&all[i], true)
		}
	}
	waiting := newLines(all, l.running, l.turns)
	waiting.serve(p.slots, p.consider)
	p.Free = p.slots.left()

	return p.Plan
}

// planning is a Plan that is being made.
type planning struct {
	Plan

	limits Limits
	now    time.Time
	// rollout is when the last synthesis of a rollout was begun.
	rollout time.Time
	budgets budgetSet
	slots   *slots
}

// consider decides about one synthesis, and reports whether it begins.
func (p *planning) consider(s *Start, slot bool) bool {
	if p.budgets.holds(*s) {
		p.Held = append(p.Held, *s)

		return false
	}
	at := s.earliest(p.rollout, p.limits.Cooldown)
	switch {
	case at.After(p.now):
		p.Next = sooner(p.Next, at)
		if !s.Wish.NotBefore.After(p.now) {
			p.Waiting = append(p.Waiting, *s)
		}

		return false
	case !slot: // the end of another synthesis is an event
		p.slots.denied = true
		p.Waiting = append(p.Waiting, *s)

		return false
	}
	p.Begin = append(p.Begin, *s)
	if s.Wish.Cause.deferred() {
		p.rollout = p.now
		p.budgets.begin(*s)
	}

	return true
}
