package status

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/metric"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
)

// writeCorrection writes the last correction of a composition.
func (w *Writer) writeCorrection(ctx context.Context, v *model.Composition) error {
	data, err := correctionPatch(v.UID, v.Corrections.Read())
	if err != nil {
		return err
	}
	err = w.Client.Status().Patch(ctx, v.Owner.DeepCopy(), client.RawPatch(types.MergePatchType, data))
	// There may be another composition of this name, to which it does not belong.
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		w.metrics.WriteErrors.WithLabelValues(metric.OpPatch).Inc()

		return fmt.Errorf("cannot write the last correction of composition %s: %w", v.Name, err)
	}

	return nil
}

// correctionPatch is a merge patch that replaces the last correction of a composition. What
// the correction does not have is removed.
func correctionPatch(uid types.UID, c enov1.Correction) ([]byte, error) {
	all, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c)
	if err != nil {
		return nil, err
	}
	for _, field := range []string{"manager", "deleted", "namespace"} {
		if _, ok := all[field]; !ok {
			all[field] = nil
		}
	}

	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": map[string]any{"lastCorrection": all}})
}

// writeDrift writes the condition Drifted of a composition, and removes it when there is
// no drift.
func (w *Writer) writeDrift(ctx context.Context, v *model.Composition) error {
	c := &enov1.Composition{}
	if err := w.Client.Get(ctx, v.Name, c); err != nil {
		return client.IgnoreNotFound(err)
	}
	if c.UID != v.UID || c.Status.CurrentSynthesis == nil || model.SlicesOf(c.Status.CurrentSynthesis) != v.SliceNames || v.IsShared() {
		return nil
	}
	next := c.DeepCopy()
	var changed bool
	if message := v.Drift.Message(); message != "" {
		changed = meta.SetStatusCondition(&next.Status.Conditions, metav1.Condition{
			Type: enov1.ConditionDrifted, Status: metav1.ConditionTrue, Reason: enov1.ReasonObjectsChanged, Message: message, ObservedGeneration: c.Generation,
		})
	} else {
		changed = meta.RemoveStatusCondition(&next.Status.Conditions, enov1.ConditionDrifted)
	}
	if !changed {
		return nil
	}
	err := w.Client.Status().Patch(ctx, next, client.MergeFromWithOptions(c, client.MergeFromWithOptimisticLock{}))
	if err != nil && !apierrors.IsNotFound(err) {
		w.metrics.WriteErrors.WithLabelValues(metric.OpPatch).Inc()

		return fmt.Errorf("cannot write condition %s of composition %s: %w", enov1.ConditionDrifted, v.Name, err)
	}

	return nil
}

func (w *Writer) writeReport(ctx context.Context, v *model.Composition) error {
	data, err := json.Marshal(map[string]any{"status": map[string]any{"ownership": v.OwnershipStatus()}})
	if err != nil {
		return err
	}
	err = w.Client.Status().Patch(ctx, v.Owner.DeepCopy(), client.RawPatch(types.MergePatchType, data))
	if client.IgnoreNotFound(err) != nil {
		w.metrics.WriteErrors.WithLabelValues(metric.OpPatch).Inc()

		return fmt.Errorf("cannot write the ownership report of composition %s: %w", v.Name, err)
	}

	return nil
}
