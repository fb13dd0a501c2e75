package delivery

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/objecthealth"
)

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
