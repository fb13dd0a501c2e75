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
	"github.com/arbor-control/arbor/internal/controller/delivery/event"
	"github.com/arbor-control/arbor/internal/controller/delivery/health"
	"github.com/arbor-control/arbor/internal/controller/delivery/kinds"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/decide/objecthealth"
)

// reportHealth writes the condition Healthy of a composition if it is another than before.
func (d *Deliverer) reportHealth(ctx context.Context, name types.NamespacedName) error {
	v := d.View(name)
	if v == nil {
		d.Health.Drop(name)

		return nil
	}
	if wait := d.Health.Begin(name); wait > 0 {
		return nil
	}
	if v.IsForeign() {
		d.Health.SetState(name, objecthealth.Current) // it is not counted here

		return nil
	}
	var state objecthealth.State
	condition := v.UnknownHealth()
	if condition == nil {
		s, complete := d.Health.Summarize(name, v.HealthItems(), d.healthTimeout)
		if !complete {
			return nil
		}
		if !s.Next.IsZero() {
			d.Health.Writes.AddAfter(name, max(s.Next.Sub(d.Now()), health.Gather))
		}
		condition, state = new(s.Condition()), s.State()
	}
	d.Health.SetState(name, state)
	condition.Message = event.Clip(condition.Message)

	return d.writeHealth(ctx, v, *condition)
}

func (d *Deliverer) writeHealth(ctx context.Context, v *model.Composition, condition metav1.Condition) error {
	c := &enov1.Composition{}
	if err := d.Client.Get(ctx, v.Name, c); err != nil {
		return client.IgnoreNotFound(err)
	}
	if c.UID != v.UID || c.Status.CurrentSynthesis == nil || model.SlicesOf(c.Status.CurrentSynthesis) != v.SliceNames {
		return nil // there is another view soon
	}
	next := c.DeepCopy()
	condition.ObservedGeneration = c.Generation
	if !meta.SetStatusCondition(&next.Status.Conditions, condition) {
		return nil
	}
	err := d.Client.Status().Patch(ctx, next, client.MergeFromWithOptions(c, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot write condition %s of composition %s: %w", enov1.ConditionHealthy, v.Name, err)
	}
	d.Health.Written(v.Name)

	return nil
}

// readForHealth reads an object, nil if there is none.
func (d *Deliverer) readForHealth(ctx context.Context, target health.Target) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(target.GVK)
	if err := d.Remote.Get(d.View(target.Composition).AsAccount(ctx), target.At.NamespacedName, live); err != nil {
		if kinds.IsUnserved(err) || client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("cannot read %s %s: %w", target.GVK.Kind, target.At.NamespacedName, err)
		}

		return nil, nil //nolint:nilnil // it does not exist
	}

	return live, nil
}
