package symphony

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/symphony"
	"github.com/arbor-control/arbor/internal/kube"
)

// apply does what was decided, in its order, and nothing more once something has
// failed: what comes later may need what comes before.
func (r *Reconciler) apply(ctx context.Context, s *enov1.Symphony, d *decide.Decision) error {
	if d.Hold {
		return r.finalizer(ctx, s, controllerutil.AddFinalizer)
	}
	if err := r.compositions(ctx, d); err != nil {
		return errors.Join(err, r.reject(ctx, s, d, err))
	}
	if d.Release {
		return r.finalizer(ctx, s, controllerutil.RemoveFinalizer)
	}

	return r.status(ctx, s, d.Status)
}

func (r *Reconciler) status(ctx context.Context, s *enov1.Symphony, status enov1.SymphonyStatus) error {
	now := s.DeepCopy()
	now.Status = status
	_, err := kube.WriteStatus(ctx, r.client, now, s.Status, now.Status)

	return err
}

// A failureError is a write that failed, in words that are the same each time.
type failureError struct {
	what string
	err  error
}

func (f *failureError) Error() string { return f.what + ": " + f.err.Error() }
func (f *failureError) Unwrap() error { return f.err }

// reject reports on the Symphony what the API server rejects: only another spec can help. It has
// the causes only, because the whole error has a name that was generated for the attempt, and each
// attempt would be another message.
func (r *Reconciler) reject(ctx context.Context, s *enov1.Symphony, d *decide.Decision, err error) error {
	var (
		f      *failureError
		answer apierrors.APIStatus
	)
	if !apierrors.IsInvalid(err) || !errors.As(err, &f) || !errors.As(err, &answer) || answer.Status().Details == nil {
		return nil
	}
	var causes []string
	for _, c := range answer.Status().Details.Causes {
		causes = append(causes, c.Field+": "+c.Message)
	}

	return r.status(ctx, s, decide.Refuse(s, d.Status, f.what+": "+strings.Join(causes, "; "), r.now()))
}

func (r *Reconciler) compositions(ctx context.Context, d *decide.Decision) error {
	if err := r.change(ctx, d.Before); err != nil {
		return err
	}
	for _, c := range d.Delete {
		// One of the same name would be another one.
		err := client.IgnoreNotFound(r.client.Delete(ctx, c, client.Preconditions{UID: &c.UID}))
		if err != nil {
			return fmt.Errorf("cannot delete Composition %s/%s: %w", c.Namespace, c.Name, err)
		}
	}
	for _, c := range d.Create {
		if err := r.client.Create(ctx, c); err != nil {
			return &failureError{fmt.Sprintf("cannot create the composition of variation %q", c.Spec.Synthesizer.Name), err}
		}
	}

	return r.change(ctx, d.After)
}

// change writes compositions, on condition that they are as they were read.
func (r *Reconciler) change(ctx context.Context, all []decide.Change) error {
	for _, c := range all {
		if err := r.client.Patch(ctx, c.To, client.MergeFromWithOptions(c.From, client.MergeFromWithOptimisticLock{})); err != nil {
			return &failureError{fmt.Sprintf("cannot change Composition %s/%s", c.From.Namespace, c.From.Name), err}
		}
	}

	return nil
}

// finalizer changes that of a Symphony.
func (r *Reconciler) finalizer(ctx context.Context, s *enov1.Symphony, change func(client.Object, string) bool) error {
	changed := s.DeepCopy()
	if !change(changed, enov1.Finalizer) {
		return nil
	}
	if err := r.client.Patch(ctx, changed, client.MergeFromWithOptions(s, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot change the finalizers of Symphony %s/%s: %w", s.Namespace, s.Name, err)
	}

	return nil
}
