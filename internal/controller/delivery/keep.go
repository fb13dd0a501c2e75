package delivery

import (
	"context"
	"time"

	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// While an earlier readiness group of a synthesis is not ready, the objects of later
// groups are still those that the synthesis before delivered. They are kept as they were
// applied last, until it is their turn.

// corrects reports whether changes are corrected as soon as they are seen.
func (w *worker) corrects() bool {
	return w.drift != decide.DriftReport && w.drift != decide.DriftInterval
}

// keep recreates or corrects an object as it was applied last. The state of the item is
// about what is desired now, and stays as it is.
func (w *worker) keep(ctx context.Context, k key, v *view, it *item) (time.Duration, error) {
	m := it.memory
	r := *it.Resource
	if r.Object = m.desired.object(); r.Object == nil {
		return 0, nil
	}
	last := it.as(&r, m.desired, "")
	last.previous = "" // what is desired now may never have been applied
	s := w.gather(v, last, decide.Situation{})
	if !s.Drifted {
		w.permitted(v, it)

		return 0, nil
	}
	if !w.corrects() {
		return 0, nil
	}
	if hold := m.damper.Hold(w.now()); hold > 0 {
		return hold, nil
	}
	a, s, err := w.decide(ctx, v, last, s)
	if err != nil {
		return 0, w.cannotKeep(v, last, s, err)
	}
	switch a.Verb {
	case decide.Wait:
		return patience, nil
	case decide.Create, decide.Replace, decide.Apply:
	default:
		return 0, nil
	}
	live, err := w.write(ctx, v, last, a, s)
	if err != nil {
		return 0, w.cannotKeep(v, last, s, err)
	}
	w.permitted(v, it)
	w.metrics.did(a.Verb)
	w.wrote(k, v, last, live, s)
	m.created(live, a.Verb)

	return 0, nil
}

// cannotKeep returns the error of an object that could not be kept. A missing permission is
// reported in the condition of the composition, because the state of the item does not show it.
func (w *worker) cannotKeep(v *view, last *item, s situation, err error) error {
	err = last.discreet(err, s.Live)
	w.deny(v, last, err)

	return err
}
