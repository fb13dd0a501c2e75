package delivery

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/objecthealth"
)

// summarize is the health of all items. complete is false while objects are not judged
// yet, which a worker has in its queue.
func (t *healthTracker) summarize(name types.NamespacedName, items []countedItem, limit time.Duration) (s objecthealth.Summary, complete bool) {
	objects := make([]objecthealth.Object, 0, len(items))
	t.mu.Lock()
	c := t.of(name)
	now := t.now()
	for _, it := range items {
		o := objecthealth.Object{Name: it.name}
		switch found := c.objects[it.id]; {
		case it.passedOver:
		case it.err != "":
			o.Health = objecthealth.Health{State: objecthealth.Degraded, Reason: reasonNotDelivered, Message: it.err}
		case !it.applied:
			o.Health = objecthealth.Health{State: objecthealth.Progressing, Reason: reasonNotApplied, Message: "it is not applied yet"}
		case objecthealth.RuleOf(it.kind) == objecthealth.Applied:
		case found != nil && found.judged:
			o.Health, o.Since = found.record.Health, found.record.Since
		case it.runs:
			t.mu.Unlock()

			return objecthealth.Summary{}, false
		}
		objects = append(objects, o)
	}
	t.mu.Unlock()

	return objecthealth.Summarize(objects, now, limit), true
}

// reportHealth writes the condition Healthy of a composition if it is another than before.
func (d *Deliverer) reportHealth(ctx context.Context, name types.NamespacedName) error {
	v := d.view(name)
	if v == nil {
		d.health.drop(name)

		return nil
	}
	if wait := d.health.begin(name); wait > 0 {
		return nil
	}
	if v.isForeign() {
		d.health.became(name, objecthealth.Current) // it is not counted here

		return nil
	}
	var state objecthealth.State
	condition := v.unjudged()
	if condition == nil {
		s, complete := d.health.summarize(name, v.counted(), d.healthTimeout)
		if !complete {
			return nil
		}
		if !s.Next.IsZero() {
			d.health.writes.AddAfter(name, max(s.Next.Sub(d.now()), healthGather))
		}
		condition, state = new(s.Condition()), s.State()
	}
	d.health.became(name, state)
	condition.Message = clip(condition.Message)

	return d.writeHealth(ctx, v, *condition)
}

// begin takes a composition whose condition is due, or puts it off.
func (t *healthTracker) begin(name types.NamespacedName) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.of(name)
	if wait = c.pause(t.now()); wait > 0 {
		c.queued = true
		t.writes.AddAfter(name, wait)

		return wait
	}
	c.queued = false

	return 0
}

// became records the state of a composition.
func (t *healthTracker) became(name types.NamespacedName, s objecthealth.State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(name).state = s
}

// wrote records that the condition of a composition was written.
func (t *healthTracker) wrote(name types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(name).written = t.now()
}

func (d *Deliverer) writeHealth(ctx context.Context, v *view, condition metav1.Condition) error {
	c := &enov1.Composition{}
	if err := d.client.Get(ctx, v.name, c); err != nil {
		return client.IgnoreNotFound(err)
	}
	if c.UID != v.uid || c.Status.CurrentSynthesis == nil || slicesOf(c.Status.CurrentSynthesis) != v.slices {
		return nil // there is another view soon
	}
	next := c.DeepCopy()
	condition.ObservedGeneration = c.Generation
	if !meta.SetStatusCondition(&next.Status.Conditions, condition) {
		return nil
	}
	err := d.client.Status().Patch(ctx, next, client.MergeFromWithOptions(c, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot write condition %s of composition %s: %w", enov1.ConditionHealthy, v.name, err)
	}
	d.health.wrote(v.name)

	return nil
}

// readForHealth reads an object, nil if there is none.
func (d *Deliverer) readForHealth(ctx context.Context, target healthTarget) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(target.gvk)
	if err := d.remote.Get(d.view(target.composition).as(ctx), target.at.NamespacedName, live); err != nil {
		if isUnserved(err) || client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("cannot read %s %s: %w", target.gvk.Kind, target.at.NamespacedName, err)
		}

		return nil, nil //nolint:nilnil // it does not exist
	}

	return live, nil
}
