package delivery

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/kube"
)

// override returns an item as its overrides make it, with the live object if that
// had to be looked at. One without overrides is returned as it is, for nothing.
func (w *worker) override(ctx context.Context, k key, v *view, it *item) (*item, decide.Situation, error) {
	if !it.Overridden() {
		return it, decide.Situation{}, nil
	}
	m, with := it.memory, v.asked()
	// Also what is left alone is watched: a change may end that.
	if !v.deleting && !it.Tombstone {
		w.track(k, it, it.Object)
	}
	if j := m.judged; j != nil && j.of == it.of && j.with == with && w.current(j) {
		return j.item, decide.Situation{}, nil
	}
	live, err := w.read(ctx, it)
	if err != nil {
		return it, decide.Situation{}, err
	}
	j := &judgement{of: it.of, with: with}
	if err := w.judge(ctx, v, it, live, j); err != nil {
		return it, decide.Situation{Looked: true, Live: live}, v.orGone(it, err)
	}

	return j.item, decide.Situation{Looked: true, Live: live}, nil
}

// current says whether the live object is still the one that was judged by, as far
// as its watch knows.
func (w *worker) current(j *judgement) bool {
	m := j.item.memory
	if !m.tracked || w.due(j.item) {
		return false
	}
	seen := w.watches.observe(m.at, j.version)
	if !seen.present {
		return seen.known && j.version == ""
	}

	return seen.version == j.version || older(seen.version, j.version)
}

// judge evaluates the overrides of an item, and remembers what came of it.
func (w *worker) judge(ctx context.Context, v *view, it *item, live *unstructured.Unstructured, j *judgement) error {
	r, states, err := it.Override(live, j.with)
	if live != nil {
		j.version = live.GetResourceVersion()
	}
	j.states = states
	last := it.memory.judged
	if last == nil || !slices.Equal(last.states, states) {
		w.show(ctx, v, it, live, states)
		if err == nil {
			w.warnOverridden(v, it, r, live)
		}
	}
	if last == nil || last.of != j.of {
		it.memory.turned = false // another synthesis has other overrides
	}
	if err != nil {
		return err
	}
	j.item = it.as(r, textOf(r.Object), j.version)
	it.memory.judged = j

	return nil
}

// show tells what became of overrides. Those that fail are passed over, so people
// have to be told. They often do before the object is there, and may then.
func (w *worker) show(ctx context.Context, v *view, it *item, live *unstructured.Unstructured, states []decide.Override) {
	var all, failed []string
	for _, s := range states {
		text := kube.DiscreetText(s.String(), it.secrets(live)...)
		all = append(all, text)
		if s.State.Failed() && live != nil {
			failed = append(failed, text)
		}
	}
	logr.FromContextOrDiscard(ctx).V(1).Info("evaluated overrides", "composition", v.name.String(), "object", it.String(), "overrides", all)
	if len(failed) > 0 {
		w.tell(v, it, "OverridePassedOver", strings.Join(failed, "; "))
	}
}

// verdict evaluates overrides again after a write. If they now want something else,
// and only because of what they wanted before, they may go on like that for ever.
func (w *worker) verdict(ctx context.Context, k key, v *view, it *item, live *unstructured.Unstructured) {
	m := it.memory
	if !it.Overridden() || m.judged == nil || live == nil {
		return
	}
	j := &judgement{of: m.judged.of, with: m.judged.with}
	if err := w.judge(ctx, v, it, live, j); err != nil {
		m.judged = nil
		w.queue.Add(k)

		return
	}
	m.turned = j.item.text != it.text
	if m.turned {
		m.damper.Corrected(w.now())
		w.queue.Add(k)
	}
}

// restless is how long an object is to be left alone whose overrides take back what
// they do.
func (w *worker) restless(v *view, it *item, s situation) time.Duration {
	hold := it.memory.damper.Hold(w.now())
	if !it.memory.turned || s.InSync || hold == 0 {
		return 0
	}
	err := fmt.Errorf("annotation %s: its overrides take back what they do: they changed the object %d times, and it is left alone for a while; "+
		"write conditions that still hold when the override is done, such as !has(self.data.a) || pathManagedByEno", enov1.AnnotationOverrides, it.memory.damper.Rounds())
	w.failed(v, it, err, false)
	w.tell(v, it, "Contested", err.Error())

	return hold
}
