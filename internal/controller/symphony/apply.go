package symphony

import (
	"context"
	"fmt"

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
		return err
	}
	if d.Release {
		return r.finalizer(ctx, s, controllerutil.RemoveFinalizer)
	}
	now := s.DeepCopy()
	now.Status = d.Status
	_, err := kube.WriteStatus(ctx, r.client, now, s.Status, now.Status)

	return err
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
			return fmt.Errorf("cannot create a Composition of %s: %w", c.Spec.Synthesizer.Name, err)
		}
	}

	return r.change(ctx, d.After)
}

// change writes compositions, on condition that they are as they were read.
func (r *Reconciler) change(ctx context.Context, all []decide.Change) error {
	for _, c := range all {
		if err := r.client.Patch(ctx, c.To, client.MergeFromWithOptions(c.From, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("cannot change Composition %s/%s: %w", c.From.Namespace, c.From.Name, err)
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
