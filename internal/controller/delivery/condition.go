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
)

// conditions are those of a composition that delivery writes. They are absent unless
// they are true.
func (d *Deliverer) conditions(v *view) []metav1.Condition {
	suspended := metav1.Condition{Type: enov1.ConditionSuspended}
	if v.suspended != "" {
		suspended.Reason, suspended.Message = enov1.ReasonRequested, clip(v.suspended)
	}
	if v.shared {
		return []metav1.Condition{suspended} // no delivery knows all manifests
	}
	blocked := metav1.Condition{Type: enov1.ConditionPruneBlocked}
	if v.pruning.blocked != "" {
		blocked.Reason, blocked.Message = v.pruning.blocked, v.pruning.message(d.pruneGuard)
	}
	waiting := metav1.Condition{Type: enov1.ConditionPruneWaiting}
	if text := v.pruneWaiting(); text != "" {
		waiting.Reason, waiting.Message = enov1.ReasonApplyRejected, clip(text)
	}

	all := []metav1.Condition{suspended, blocked, waiting}
	if v.denials.unsure(d.now()) {
		return all
	}

	return append(all, v.deniedCondition())
}

// reportConditions writes the conditions of a composition that delivery knows about.
func (d *Deliverer) reportConditions(ctx context.Context, v *view, c *enov1.Composition) error {
	if v.elsewhere {
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
	err := d.client.Status().Patch(ctx, changed, client.MergeFromWithOptions(c, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot write the conditions of composition %s: %w", v.name, err)
	}
	d.tellSuspended(v, c)

	return nil
}

// tellSuspended records events when a composition is suspended and resumed. c is as it
// was before its conditions were written.
func (d *Deliverer) tellSuspended(v *view, c *enov1.Composition) {
	was := meta.IsStatusConditionTrue(c.Status.Conditions, enov1.ConditionSuspended)
	switch is := v.suspended != ""; {
	case was == is || v.deleting:
	case is:
		d.events.record(v.owner, nil, corev1.EventTypeNormal, "Suspended", v.suspended)
	default:
		d.events.record(v.owner, nil, corev1.EventTypeNormal, "Resumed", "the composition is delivered again")
	}
}
