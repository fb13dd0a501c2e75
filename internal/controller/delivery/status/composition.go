package status

import (
	"context"

	"github.com/arbor-control/arbor/internal/controller/delivery/model"
)

// A compositionWrite is something to be written to the composition of a view: its ownership report,
// whether its objects have drifted, or the last correction of drift.
type compositionWrite struct {
	view              *model.Composition
	drift, correction bool
}

// Report has the ownership report of a view written.
func (w *Writer) Report(v *model.Composition) { w.add(compositionWrite{view: v}) }

// Drifted has the condition about drift of a view written.
func (w *Writer) Drifted(v *model.Composition) { w.add(compositionWrite{view: v, drift: true}) }

// Corrected has the last correction of a view written.
func (w *Writer) Corrected(v *model.Composition) { w.add(compositionWrite{view: v, correction: true}) }

func (w *Writer) add(c compositionWrite) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.views[c] = true
	w.wakeUp()
}

func (w *Writer) do(ctx context.Context, c compositionWrite) error {
	switch {
	case c.drift:
		return w.writeDrift(ctx, c.view)
	case c.correction:
		return w.writeCorrection(ctx, c.view)
	}

	return w.writeReport(ctx, c.view)
}
