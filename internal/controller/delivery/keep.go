package delivery

import (
	"context"
	"time"

	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// While an earlier readiness group of a synthesis is not ready, the objects of later
// groups are still those that the synthesis before delivered. They are kept as they were
// applied last, until it is their turn.

// keeps reports whether an item whose turn it is not is kept as it was applied last by
// this process. Objects with overrides are not: what those made of a manifest then may
// be wrong now. Neither are objects that a Patch of this synthesis decides about.
func (v *view) keeps(it *item) bool {
	m := it.memory

	return !v.deleting && v.suspended == "" && !it.Tombstone && !it.IsPatch() && !it.Overridden() && !it.chained && it.problem == nil &&
		m.judged == nil && m.desired != "" && m.tracked
}

// corrects reports whether changes are corrected as soon as they are seen.
func (d *Deliverer) corrects() bool { return d.drift != DriftReport && d.drift != DriftInterval }

// keep recreates or corrects an object as it was applied last. The state of the item is
// about what is desired now, and stays as it is.
func (d *Deliverer) keep(ctx context.Context, k key, v *view, it *item) (time.Duration, error) {
	m := it.memory
	r := *it.Resource
	if r.Object = m.desired.object(); r.Object == nil {
		return 0, nil
	}
	last := it.as(&r, m.desired, "")
	last.previous = "" // what is desired now may never have been applied
	s := d.gather(v, last, decide.Situation{})
	if !s.Drifted {
		d.permitted(v, it)

		return 0, nil
	}
	if !d.corrects() {
		return 0, nil
	}
	if hold := m.damper.Hold(d.now()); hold > 0 {
		return hold, nil
	}
	a, s, err := d.decide(ctx, v, last, s)
	if err != nil {
		return 0, d.cannotKeep(v, last, s, err)
	}
	switch a.Verb {
	case decide.Wait:
		return patience, nil
	case decide.Create, decide.Replace, decide.Apply:
	default:
		return 0, nil
	}
	live, err := d.write(ctx, v, last, a, s)
	if err != nil {
		return 0, d.cannotKeep(v, last, s, err)
	}
	d.permitted(v, it)
	d.metrics.did(a.Verb)
	d.wrote(k, v, last, live, s)
	m.created(live, a.Verb)

	return 0, nil
}

// cannotKeep returns the error of an object that could not be kept. A missing permission is
// reported in the condition of the composition, because the state of the item does not show it.
func (d *Deliverer) cannotKeep(v *view, last *item, s situation, err error) error {
	err = last.discreet(err, s.Live)
	d.deny(v, last, err)

	return err
}
