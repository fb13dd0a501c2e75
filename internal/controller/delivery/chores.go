package delivery

import "context"

// A chore is something to be written to the composition of a view: its ownership report,
// or whether its objects have drifted.
type chore struct {
	view  *view
	drift bool
}

// report has the ownership report of a view written.
func (w *statusWriter) report(v *view) { w.add(chore{view: v}) }

// drifted has the condition about drift of a view written.
func (w *statusWriter) drifted(v *view) { w.add(chore{view: v, drift: true}) }

func (w *statusWriter) add(c chore) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.views[c] = true
	w.nudge()
}

func (w *statusWriter) do(ctx context.Context, c chore) error {
	if c.drift {
		return w.writeDrift(ctx, c.view)
	}

	return w.writeReport(ctx, c.view)
}
