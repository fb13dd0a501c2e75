package load

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
)

// Slices are watched, without their content: what another client does to a slice of a current
// synthesis is undone. One that is lost is restored, since nothing else knows which objects were
// delivered from it, and states that were overwritten are written again.

// CheckSlices compares the slices that other clients have changed with what is known, and
// repairs them. One that cannot be repaired now, for example because its namespace is being
// deleted, is tried again, and holds up nothing else.
func (l *Loader) CheckSlices(ctx context.Context, v *model.Composition, c *enov1.Composition) {
	if !v.IsOfSlices(c) || v.Foreign {
		return
	}
	for _, s := range v.Slices {
		if !s.Events.Take() {
			continue
		}
		if err := l.checkSlice(ctx, v, s, c); err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Cannot repair a slice", "slice", s.String())
			s.Events.SawDeletion() // whatever it was, it is checked again
			l.RequeueAfter(v.Name, repairAfter(err))
		}
	}
}

// repairAfter returns after how long a repair that failed is tried again: soon, unless another client
// has to do something first.
func repairAfter(err error) time.Duration {
	if model.IsRejected(err) || apierrors.IsForbidden(err) {
		return model.ReloadDelay
	}

	return model.RepairRetry
}

// CheckMissed has those slices of a new view checked that were deleted when no view could note it. The
// cache does not have them any more. If slices were missing when the view was made, they are read again
// later.
func (l *Loader) CheckMissed(ctx context.Context, v, old *model.Composition) {
	if after := l.ReloadAfter(v); after > 0 {
		l.RequeueAfter(v.Name, after)
	}
	for name, s := range v.Slices {
		if old != nil && old.Slices[name] != nil && old.Slices[name].Events == s.Events {
			continue
		}
		o := &metav1.PartialObjectMetadata{}
		o.SetGroupVersionKind(enov1.GroupVersion.WithKind(enov1.ResourceSliceKind))
		if err := l.Client.Get(ctx, s.NamespacedName, o); err != nil {
			s.Events.SawDeletion()
			l.Requeue(v.Name)
		}
	}
}

// IsCurrent reports whether a view, if there is one, is still that of its composition. One that lacks
// slices is so for a limited time: a backup may restore them, for example.
func (l *Loader) IsCurrent(v *model.Composition, c *enov1.Composition) bool {
	return v.IsOf(l.VersionOf(c)) && (v.ReloadAt.IsZero() || l.Now().Before(v.ReloadAt))
}

// ReloadAfter returns after how long the slices of a view are read again, 0 if none is missing. Every
// reconciliation asks for it: another request for the composition replaces the one that waits.
func (l *Loader) ReloadAfter(v *model.Composition) time.Duration {
	if v.ReloadAt.IsZero() {
		return 0
	}

	return max(v.ReloadAt.Sub(l.Now()), time.Millisecond)
}

// checkSlice compares one slice with what is known. One that does not belong to the composition is
// lost, and restored once another client has deleted it.
func (l *Loader) checkSlice(ctx context.Context, v *model.Composition, s *model.Slice, c *enov1.Composition) error {
	live := &enov1.ResourceSlice{}
	err := l.Reader.Get(ctx, s.NamespacedName, live)
	switch {
	case apierrors.IsNotFound(err):
		return l.restore(ctx, v, s, c)
	case err != nil:
		return fmt.Errorf("cannot read slice %s: %w", s.NamespacedName, err)
	}
	problem, err := l.problemOf(ctx, live, c)
	if err != nil {
		return err
	}
	was := s.Reject(problem)
	if was == "" && problem != "" {
		l.Events.Record(v.Owner, nil, corev1.EventTypeWarning, "SliceRejected", "another client has replaced a slice, to which no states are written: "+problem)
	}
	switch {
	case problem != "":
		return &model.RejectedError{Reason: problem}
	case was != "": // a state that had to be written was left out
		l.publishAll(v, slices.DeleteFunc(slices.Clone(v.Items), func(it *model.Item) bool { return it.Slice != s || it.Foreign }))
	case !v.Shared: // otherwise the other delivery writes its states, too
		l.publishAll(v, v.Overwritten(s, live))
	}

	return nil
}

func (l *Loader) publishAll(v *model.Composition, all []*model.Item) {
	for _, it := range all {
		l.Publish(v, it, v.StateOf(it))
	}
}
