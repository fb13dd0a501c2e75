package delivery

import "context"

// A chore is something to be written to the composition of a view: its ownership report,
// whether its objects have drifted, or the last correction of drift.
type chore struct {
	view              *view
	drift, correction bool
}

// report has the ownership report of a view written.
func (w *statusWriter) report(v *view) { w.add(chore{view: v}) }

// drifted has the condition about drift of a view written.
func (w *statusWriter) drifted(v *view) { w.add(chore{view: v, drift: true}) }

// corrected has the last correction of a view written.
func (w *statusWriter) corrected(v *view) { w.add(chore{view: v, correction: true}) }

func (w *statusWriter) add(c chore) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.views[c] = true
	w.nudge()
}

func (w *statusWriter) do(ctx context.Context, c chore) error {
	switch {
	case c.drift:
		return w.writeDrift(ctx, c.view)
	case c.correction:
		return w.writeCorrection(ctx, c.view)
	}

	return w.writeReport(ctx, c.view)
}
