package delivery

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/objecthealth"
)

const (
	// reasonNotApplied is that of an object whose turn has not come.
	reasonNotApplied = "NotApplied"
	// reasonNotDelivered is that of an object that cannot be delivered, and of a manifest
	// that cannot be read.
	reasonNotDelivered = "NotDelivered"
)

// A countedItem is what the health of an item depends on besides its object.
type countedItem struct {
	id   decide.Identity
	kind schema.GroupKind
	name string
	// applied is true if the cluster agrees with the manifest, or its error is passed
	// over. runs is true if workers may work on it.
	applied, passedOver, runs bool
	err                       string
}

// counted are the items of a view that have health: the manifests of objects, which are
// delivered here.
func (v *view) counted() []countedItem {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := make([]countedItem, 0, len(v.items))
	for _, it := range v.items {
		if it.elsewhere || !hidden(it) && (it.Tombstone || it.IsPatch() || it.DisableReconciliation) {
			continue
		}
		one := countedItem{applied: it.state.Reconciled}
		if it.state.ReconciliationError != nil {
			one.err, one.passedOver = *it.state.ReconciliationError, it.state.Reconciled
		}
		if hidden(it) {
			if it.state.Deleted {
				continue // a tombstone of an object that has a manifest, too
			}
			one.name, one.passedOver = fmt.Sprintf("manifest %d of ResourceSlice %s", it.index, it.slice.Name), it.state.Reconciled
		} else {
			one.id, one.kind, one.name, one.runs = it.Identity, it.GVK.GroupKind(), it.String(), v.mayRun(it)
		}
		all = append(all, one)
	}

	return all
}

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

// unjudged is the condition of a composition whose objects are not judged, nil if they are.
func (v *view) unjudged() *metav1.Condition {
	switch {
	case v.deleting:
		return &metav1.Condition{Type: enov1.ConditionHealthy, Status: metav1.ConditionUnknown, Reason: enov1.ReasonDeleting, Message: "the composition is being deleted"}
	case v.suspended != "":
		return &metav1.Condition{Type: enov1.ConditionHealthy, Status: metav1.ConditionUnknown, Reason: enov1.ReasonSuspended, Message: "the objects are not judged while the composition is suspended"}
	case v.shared:
		return &metav1.Condition{Type: enov1.ConditionHealthy, Status: metav1.ConditionUnknown, Reason: enov1.ReasonShared, Message: "several deliveries share the composition, and none of them knows all objects"}
	default:
		return nil
	}
}

// isForeign reports whether other deliveries deliver all manifests that can be read. One of
// them may know all objects, and writes the condition Healthy then.
func (v *view) isForeign() bool { return v.elsewhere || v.shared && len(v.byID) == 0 }

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
	if err := d.remote.Get(d.as(ctx, d.view(target.composition)), target.at.NamespacedName, live); err != nil {
		if isUnserved(err) || client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("cannot read %s %s: %w", target.gvk.Kind, target.at.NamespacedName, err)
		}

		return nil, nil //nolint:nilnil // it does not exist
	}

	return live, nil
}
