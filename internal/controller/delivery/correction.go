package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// correctionPause is the minimum time between two writes of the last correction of a
// composition.
const correctionPause = 10 * time.Second

// A correctionLog has the last correction of drift of a composition. It may be used by any
// number of goroutines.
type correctionLog struct {
	mu   sync.Mutex
	last enov1.Correction
	// due is when the last correction is written, or was.
	due time.Time
}

// note records a correction, and returns after how long it is written; ok is false if a
// write is coming anyway.
func (l *correctionLog) note(c enov1.Correction, now time.Time) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = c
	switch {
	case now.Before(l.due):
		return 0, false
	case now.Sub(l.due) < correctionPause:
		l.due = l.due.Add(correctionPause)
	default:
		l.due = now
	}

	return l.due.Sub(now), true
}

func (l *correctionLog) read() enov1.Correction {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.last
}

// corrected records that an object was corrected, for the status of its composition. s is
// what was known before.
func (d *Deliverer) corrected(v *view, it *item, s situation) {
	c := enov1.Correction{
		Time: d.timestamp(), Manager: s.seen.writer, Deleted: s.seen.known && !s.seen.present,
		APIVersion: it.Object.GetAPIVersion(), Kind: it.Object.GetKind(), Namespace: it.Object.GetNamespace(), Name: it.Object.GetName(),
	}
	if s.seen.present && s.seen.uid != it.memory.uid {
		c.Deleted = true // and another client has created it again
	}
	if wait, ok := v.corrections.note(c, d.now()); ok {
		time.AfterFunc(wait, func() { d.status.corrected(v) })
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
