package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/kube"
)

// override returns an item as its overrides make it, with the live object if that had to be read.
// One without overrides is returned as it is, without a request.
func (w *Worker) override(ctx context.Context, k queue.Key, v *model.Composition, it *model.Item) (*model.Item, decide.Situation, error) {
	if !it.Overridden() {
		return it, decide.Situation{}, nil
	}
	m, with := it.Memory, v.Metadata()
	// Also what is left alone is watched: a change may end that.
	if !v.Deleting && !it.Tombstone {
		w.track(k, it, it.Object)
	}
	if j := m.Evaluated; j != nil && j.Original == it.Original && j.Metadata == with && w.current(j) {
		return j.Item, decide.Situation{}, nil
	}
	live, err := w.read(ctx, it)
	if err != nil {
		return it, decide.Situation{}, err
	}
	j := &model.Evaluation{Original: it.Original, Metadata: with}
	if err := w.evaluate(ctx, v, it, live, j); err != nil {
		return it, decide.Situation{Looked: true, Live: live}, v.OrGone(it, err)
	}

	return j.Item, decide.Situation{Looked: true, Live: live}, nil
}

// current reports whether the live object is still the one that overrides were evaluated with, as
// far as its watch knows.
func (w *Worker) current(j *model.Evaluation) bool {
	m := j.Item.Memory
	if !m.Watched || w.due(j.Item) {
		return false
	}

	return w.Watches.Observe(m.Location, j.Version).IsStill(j.Version)
}

// evaluate evaluates the overrides of an item, and remembers what came of it.
func (w *Worker) evaluate(ctx context.Context, v *model.Composition, it *model.Item, live *unstructured.Unstructured, j *model.Evaluation) error {
	r, states, err := it.Override(live, j.Metadata)
	if live != nil {
		j.Version = live.GetResourceVersion()
	}
	j.States = states
	last := it.Memory.Evaluated
	if last == nil || !slices.Equal(last.States, states) {
		w.reportOverrides(ctx, v, it, live, states)
		if err == nil {
			w.warnOverridden(v, it, r, live)
		}
	}
	if last == nil || last.Original != j.Original {
		it.Memory.Reverting = false // another synthesis has other overrides
	}
	if err != nil {
		return err
	}
	j.Item = it.WithResource(r, model.PackObject(r.Object), j.Version)
	it.Memory.Evaluated = j

	return nil
}

// reportOverrides records events about overrides. Those that fail are passed over, so users need to
// know. They often fail before the object exists, and may then.
func (w *Worker) reportOverrides(ctx context.Context, v *model.Composition, it *model.Item, live *unstructured.Unstructured, states []decide.Override) {
	var all, failed []string
	for _, s := range states {
		text := kube.DiscreetText(s.String(), it.SecretValues(live)...)
		all = append(all, text)
		if s.State.Failed() && live != nil {
			failed = append(failed, text)
		}
	}
	logr.FromContextOrDiscard(ctx).V(1).Info("evaluated overrides", "composition", v.Name.String(), "object", it.String(), "overrides", all)
	if len(failed) > 0 {
		w.report(v, it, "OverridePassedOver", strings.Join(failed, "; "))
	}
}

// reevaluate evaluates overrides again after a write. If they now want something else, and only
// because of what they wanted before, this may never end.
func (w *Worker) reevaluate(ctx context.Context, k queue.Key, v *model.Composition, it *model.Item, live *unstructured.Unstructured) {
	m := it.Memory
	if !it.Overridden() || m.Evaluated == nil || live == nil {
		return
	}
	j := &model.Evaluation{Original: m.Evaluated.Original, Metadata: m.Evaluated.Metadata}
	if err := w.evaluate(ctx, v, it, live, j); err != nil {
		m.Evaluated = nil
		w.Queue.Add(k)

		return
	}
	m.Reverting = j.Item.Packed != it.Packed
	if m.Reverting {
		m.Damper.Corrected(w.Now())
		w.Queue.Add(k)
	}
}

// holdOverrides is how long an object must be left alone whose overrides take back what they do.
func (w *Worker) holdOverrides(v *model.Composition, it *model.Item, s situation) time.Duration {
	hold := it.Memory.Damper.HoldReverting(it.Memory.Reverting, s.InSync, w.Now())
	if hold == 0 {
		return 0
	}
	err := fmt.Errorf("annotation %s: its overrides take back what they do: they changed the object %d times, and it is left alone for a while; "+
		"write conditions that still hold when the override is done, such as !has(self.data.a) || pathManagedByEno", enov1.AnnotationOverrides, it.Memory.Damper.Rounds())
	w.settleFailure(v, it, err, false)
	w.report(v, it, "Contested", err.Error())

	return hold
}
