package delivery

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/event"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
)

// conditions are those of a composition that delivery writes. They are absent unless
// they are true.
func (d *Deliverer) conditions(v *model.Composition) []metav1.Condition {
	suspended := metav1.Condition{Type: enov1.ConditionSuspended}
	if v.Suspended != "" {
		suspended.Reason, suspended.Message = enov1.ReasonRequested, event.Clip(v.Suspended)
	}
	if v.Shared {
		return []metav1.Condition{suspended} // no delivery knows all manifests
	}
	blocked := metav1.Condition{Type: enov1.ConditionPruneBlocked}
	if v.PruneSet.Blocked != "" {
		blocked.Reason, blocked.Message = v.PruneSet.Blocked, v.PruneSet.Message(d.PruneGuard)
	}
	waiting := metav1.Condition{Type: enov1.ConditionPruneWaiting}
	if text := v.PruneWaiting(); text != "" {
		waiting.Reason, waiting.Message = enov1.ReasonApplyRejected, event.Clip(text)
	}

	all := []metav1.Condition{suspended, blocked, waiting}
	if v.Denials.Unsure(d.Now()) {
		return all
	}

	return append(all, v.DeniedCondition())
}

// reportConditions writes the conditions of a composition that delivery knows about.
func (d *Deliverer) reportConditions(ctx context.Context, v *model.Composition, c *enov1.Composition) error {
	if v.Foreign {
		return nil
	}
	changed := c.DeepCopy()
	for _, cond := range d.conditions(v) {
		if cond.Reason == "" {
			meta.RemoveStatusCondition(&changed.Status.Conditions, cond.Type)

			continue
		}
		cond.Status, cond.ObservedGeneration = metav1.ConditionTrue, c.Generation
		meta.SetStatusCondition(&changed.Status.Conditions, cond)
	}
	if equality.Semantic.DeepEqual(changed.Status.Conditions, c.Status.Conditions) {
		return nil
	}
	err := d.Client.Status().Patch(ctx, changed, client.MergeFromWithOptions(c, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot write the conditions of composition %s: %w", v.Name, err)
	}
	d.tellSuspended(v, c)

	return nil
}

// tellSuspended records events when a composition is suspended and resumed. c is as it
// was before its conditions were written.
func (d *Deliverer) tellSuspended(v *model.Composition, c *enov1.Composition) {
	was := meta.IsStatusConditionTrue(c.Status.Conditions, enov1.ConditionSuspended)
	switch is := v.Suspended != ""; {
	case was == is || v.Deleting:
	case is:
		d.Events.Record(v.Owner, nil, corev1.EventTypeNormal, "Suspended", v.Suspended)
	default:
		d.Events.Record(v.Owner, nil, corev1.EventTypeNormal, "Resumed", "the composition is delivered again")
	}
}
