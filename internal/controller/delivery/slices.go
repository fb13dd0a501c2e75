package delivery

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
)

// Slices are watched, without their content: what another client does to a slice of a current
// synthesis is undone. One that is lost is restored, since nothing else knows which objects were
// delivered from it, and states that were overwritten are written again.

// checkSlices compares the slices that other clients have changed with what is known, and
// repairs them. One that cannot be repaired now, for example because its namespace is being
// deleted, is tried again, and holds up nothing else.
func (l *loader) checkSlices(ctx context.Context, v *view, c *enov1.Composition) {
	if !v.isOfSlices(c) || v.elsewhere {
		return
	}
	for _, s := range v.parts {
		if !s.events.take() {
			continue
		}
		if err := l.checkSlice(ctx, v, s, c); err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Cannot repair a slice", "slice", s.String())
			s.events.sawDeletion() // whatever it was, it is checked again
			l.requeueAfter(v.name, repairAfter(err))
		}
	}
}

// repairAfter returns after how long a repair that failed is tried again: soon, unless another client
// has to do something first.
func repairAfter(err error) time.Duration {
	if isRejected(err) || apierrors.IsForbidden(err) {
		return reloadDelay
	}

	return repairRetry
}

// checkMissed has those slices of a new view checked that were deleted when no view could note it. The
// cache does not have them any more. If slices were missing when the view was made, they are read again
// later.
func (l *loader) checkMissed(ctx context.Context, v, old *view) {
	if after := l.reloadAfter(v); after > 0 {
		l.requeueAfter(v.name, after)
	}
	for name, s := range v.parts {
		if old != nil && old.parts[name] != nil && old.parts[name].events == s.events {
			continue
		}
		o := &metav1.PartialObjectMetadata{}
		o.SetGroupVersionKind(enov1.GroupVersion.WithKind(enov1.ResourceSliceKind))
		if err := l.client.Get(ctx, s.NamespacedName, o); err != nil {
			s.events.sawDeletion()
			l.requeue(v.name)
		}
	}
}

// isCurrent reports whether a view, if there is one, is still that of its composition. One that lacks
// slices is so for a limited time: a backup may restore them, for example.
func (l *loader) isCurrent(v *view, c *enov1.Composition) bool {
	return v.isOf(l.versionOf(c)) && (v.reloadAt.IsZero() || l.now().Before(v.reloadAt))
}

// reloadAfter returns after how long the slices of a view are read again, 0 if none is missing. Every
// reconciliation asks for it: another request for the composition replaces the one that waits.
func (l *loader) reloadAfter(v *view) time.Duration {
	if v.reloadAt.IsZero() {
		return 0
	}

	return max(v.reloadAt.Sub(l.now()), time.Millisecond)
}

// checkSlice compares one slice with what is known. One that does not belong to the composition is
// lost, and restored once another client has deleted it.
func (l *loader) checkSlice(ctx context.Context, v *view, s *slice, c *enov1.Composition) error {
	live := &enov1.ResourceSlice{}
	err := l.reader.Get(ctx, s.NamespacedName, live)
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
	was := s.reject(problem)
	if was == "" && problem != "" {
		l.events.record(v.owner, nil, corev1.EventTypeWarning, "SliceRejected", "another client has replaced a slice, to which no states are written: "+problem)
	}
	switch {
	case problem != "":
		return &rejectedError{problem}
	case was != "": // what was to be written was left out
		l.publishAll(v, slices.DeleteFunc(slices.Clone(v.items), func(it *item) bool { return it.slice != s || it.elsewhere }))
	case !v.shared: // otherwise the other delivery writes its states, too
		l.publishAll(v, v.overwritten(s, live))
	}

	return nil
}

func (l *loader) publishAll(v *view, all []*item) {
	for _, it := range all {
		l.publish(v, it, v.stateOf(it))
	}
}
