package apply

import (
	"context"
	"time"

	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// While an earlier readiness group of a synthesis is not ready, the objects of later
// groups are still those that the synthesis before delivered. They are kept as they were
// applied last, until it is their turn.

// corrects reports whether changes are corrected as soon as they are seen.
func (w *Worker) corrects() bool {
	return w.Drift != decide.DriftReport && w.Drift != decide.DriftInterval
}

// keep recreates or corrects an object as it was applied last. The state of the item is
// about what is desired now, and stays as it is.
func (w *Worker) keep(ctx context.Context, k queue.Key, v *model.Composition, it *model.Item) (time.Duration, error) {
	m := it.Memory
	r := *it.Resource
	if r.Object = m.Desired.Unpack(); r.Object == nil {
		return 0, nil
	}
	last := it.WithResource(&r, m.Desired, "")
	last.Previous = "" // the desired object may never have been applied
	s := w.gatherKnown(v, last, decide.Situation{})
	if !s.Drifted {
		w.allow(v, it)

		return 0, nil
	}
	if !w.corrects() {
		return 0, nil
	}
	if hold := m.Damper.Hold(w.Now()); hold > 0 {
		return hold, nil
	}
	a, s, err := w.decide(ctx, v, last, s)
	if err != nil {
		return 0, w.cannotKeep(v, last, s, err)
	}
	switch a.Verb {
	case decide.Wait:
		return retryAfter, nil
	case decide.Create, decide.Replace, decide.Apply:
	default:
		return 0, nil
	}
	live, err := w.write(ctx, v, last, a, s)
	if err != nil {
		return 0, w.cannotKeep(v, last, s, err)
	}
	w.allow(v, it)
	w.Metrics.Did(a.Verb)
	w.wrote(k, v, last, live, s)
	m.Created(live, a.Verb)

	return 0, nil
}

// cannotKeep returns the error of an object that could not be kept. A missing permission is
// reported in the condition of the composition, because the state of the item does not show it.
func (w *Worker) cannotKeep(v *model.Composition, last *model.Item, s situation, err error) error {
	err = last.Redact(err, s.Live)
	w.deny(v, last, err)

	return err
}
