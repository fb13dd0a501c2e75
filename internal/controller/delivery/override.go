package delivery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/kube"
)

// A judgement is what overrides make of a manifest in view of one version of the
// live object. As long as that is the current one, nobody has to look again.
type judgement struct {
	of      *decide.Resource
	with    *metav1.ObjectMeta
	version string

	item   *item
	states []decide.Override
}

// about is as much of the metadata of a composition as expressions can ask for.
func about(c *enov1.Composition) *metav1.ObjectMeta {
	known := &metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, Labels: maps.Clone(c.Labels), Annotations: maps.Clone(c.Annotations)}
	if c.DeletionStarted() { // what depends on the composition must not notice earlier
		known.DeletionTimestamp = c.DeletionTimestamp
	}

	return known
}

// inform tells a view what its composition is like now, and returns the items that
// may be others for it.
func (v *view) inform(c *enov1.Composition) []*item {
	v.mu.Lock()
	defer v.mu.Unlock()
	if maps.Equal(v.about.Labels, c.Labels) && maps.Equal(v.about.Annotations, c.Annotations) {
		return nil
	}
	v.about = about(c)

	return slices.DeleteFunc(slices.Clone(v.items), func(it *item) bool { return hidden(it) || !it.Overridden() && (!it.Watched() || it.state.Ready != nil) })
}

// asked is what expressions are told about the composition.
func (v *view) asked() *metav1.ObjectMeta {
	v.mu.Lock()
	defer v.mu.Unlock()

	return v.about
}

// as is the item with another resource, which was made for a version of the live
// object. Its state stays that of the view.
func (i *item) as(r *decide.Resource, t text, base string) *item {
	return &item{Resource: r, of: i.of, text: t, place: i.place, slice: i.slice, index: i.index, problem: i.problem, previous: i.previous, rivals: i.rivals, memory: i.memory, base: base}
}

// override returns an item as its overrides make it, with the live object if that
// had to be looked at. One without overrides is returned as it is, for nothing.
func (d *Deliverer) override(ctx context.Context, k key, v *view, it *item) (*item, decide.Situation, error) {
	if !it.Overridden() {
		return it, decide.Situation{}, nil
	}
	m, with := it.memory, v.asked()
	// Also what is left alone is watched: a change may end that.
	if !v.deleting && !it.Tombstone {
		d.track(k, it, it.Object)
	}
	if j := m.judged; j != nil && j.of == it.of && j.with == with && d.current(j) {
		return j.item, decide.Situation{}, nil
	}
	live, err := d.read(ctx, it)
	if err != nil {
		return it, decide.Situation{}, err
	}
	j := &judgement{of: it.of, with: with}
	if err := d.judge(ctx, v, it, live, j); err != nil {
		return it, decide.Situation{Looked: true, Live: live}, v.orGone(it, err)
	}

	return j.item, decide.Situation{Looked: true, Live: live}, nil
}

// orGone is an error about the settings of an item, nil if its object is to be deleted:
// they never keep it from that.
func (v *view) orGone(it *item, err error) error {
	if v.deleting || it.Tombstone {
		return nil
	}

	return err
}

// current says whether the live object is still the one that was judged by, as far
// as its watch knows.
func (d *Deliverer) current(j *judgement) bool {
	m := j.item.memory
	if !m.tracked || d.due(j.item) {
		return false
	}
	seen := d.watches.observe(m.at, j.version)
	if !seen.present {
		return seen.known && j.version == ""
	}

	return seen.version == j.version || older(seen.version, j.version)
}

// judge evaluates the overrides of an item, and remembers what came of it.
func (d *Deliverer) judge(ctx context.Context, v *view, it *item, live *unstructured.Unstructured, j *judgement) error {
	r, states, err := it.Override(live, j.with)
	if live != nil {
		j.version = live.GetResourceVersion()
	}
	j.states = states
	last := it.memory.judged
	if last == nil || !slices.Equal(last.states, states) {
		d.show(ctx, v, it, live, states)
		if err == nil {
			d.warnOverridden(v, it, r, live)
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
func (d *Deliverer) show(ctx context.Context, v *view, it *item, live *unstructured.Unstructured, states []decide.Override) {
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
		d.tell(v, it, "OverridePassedOver", strings.Join(failed, "; "))
	}
}

// verdict evaluates overrides again after a write. If they now want something else,
// and only because of what they wanted before, they may go on like that for ever.
func (d *Deliverer) verdict(ctx context.Context, k key, v *view, it *item, live *unstructured.Unstructured) {
	m := it.memory
	if !it.Overridden() || m.judged == nil || live == nil {
		return
	}
	j := &judgement{of: m.judged.of, with: m.judged.with}
	if err := d.judge(ctx, v, it, live, j); err != nil {
		m.judged = nil
		d.queue.Add(k)

		return
	}
	m.turned = j.item.text != it.text
	if m.turned {
		m.damper.Corrected(d.now())
		d.queue.Add(k)
	}
}

// restless is how long an object is to be left alone whose overrides take back what
// they do.
func (d *Deliverer) restless(v *view, it *item, s situation) time.Duration {
	hold := it.memory.damper.Hold(d.now())
	if !it.memory.turned || s.InSync || hold == 0 {
		return 0
	}
	err := fmt.Errorf("annotation %s: its overrides take back what they do: they changed the object %d times, and it is left alone for a while; "+
		"write conditions that still hold when the override is done, such as !has(self.data.a) || pathManagedByEno", enov1.AnnotationOverrides, it.memory.damper.Rounds())
	d.failed(v, it, err, false)
	d.tell(v, it, "Contested", err.Error())

	return hold
}
