package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// corrected records that an object was corrected, for the status of its composition. s is
// what was known before.
func (w *worker) corrected(v *view, it *item, s situation) {
	c := enov1.Correction{
		Time: w.timestamp(), Manager: s.seen.writer, Deleted: s.seen.known && !s.seen.present,
		APIVersion: it.Object.GetAPIVersion(), Kind: it.Object.GetKind(), Namespace: it.Object.GetNamespace(), Name: it.Object.GetName(),
	}
	if s.seen.present && s.seen.uid != it.memory.uid {
		c.Deleted = true // and another client has created it again
	}
	if wait, ok := v.corrections.note(c, w.now()); ok {
		time.AfterFunc(wait, func() { w.status.corrected(v) })
	}
}

// writeCorrection writes the last correction of a composition.
func (w *statusWriter) writeCorrection(ctx context.Context, v *view) error {
	data, err := correctionPatch(v.uid, v.corrections.read())
	if err != nil {
		return err
	}
	err = w.client.Status().Patch(ctx, v.owner.DeepCopy(), client.RawPatch(types.MergePatchType, data))
	// There may be another composition of this name, to which it does not belong.
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		w.metrics.writeErrors.WithLabelValues(opPatch).Inc()

		return fmt.Errorf("cannot write the last correction of composition %s: %w", v.name, err)
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
