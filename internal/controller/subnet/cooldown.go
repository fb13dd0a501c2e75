package subnet

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/claim"
)

// reuseAfter returns how long the blocks of a pool stay unused after their release.
func reuseAfter(p *v1alpha1.SubnetPool) time.Duration {
	if p == nil || p.Spec.ReuseAfter == nil {
		return 0
	}

	return p.Spec.ReuseAfter.Duration
}

// backs reports whether a Subnet is the block of a child pool. The pool guard removes
// the finalizer of such a Subnet.
func backs(s *v1alpha1.Subnet) bool {
	return s.Spec.Backs != nil || s.Status.PoolUID != ""
}

// protect adds the finalizer to an Allocated Subnet of a pool with spec.reuseAfter.
func (r *Reconciler) protect(ctx context.Context, s *v1alpha1.Subnet) error {
	if controllerutil.ContainsFinalizer(s, v1alpha1.Finalizer) {
		return nil
	}
	p, err := r.cachedPool(ctx, s.Namespace, s.Spec.PoolRef)
	if err != nil || reuseAfter(p) <= 0 || p.DeletionTimestamp != nil {
		return err
	}
	before := s.DeepCopy()
	controllerutil.AddFinalizer(s, v1alpha1.Finalizer)

	return r.patch(ctx, s, before)
}

// cool removes the finalizer of a Subnet that is being deleted, once its block may be
// used again.
func (r *Reconciler) cool(ctx context.Context, s *v1alpha1.Subnet) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(s, v1alpha1.Finalizer) || backs(s) && s.Status.Phase != v1alpha1.SubnetFailed {
		return reconcile.Result{}, nil
	}
	p, err := r.cachedPool(ctx, s.Namespace, s.Spec.PoolRef)
	if err != nil {
		return reconcile.Result{}, err
	}
	c, err := r.cachedClaim(ctx, s)
	if err != nil {
		return reconcile.Result{}, err
	}
	if left := cooling(s, p, c, r.now()); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	before := s.DeepCopy()
	controllerutil.RemoveFinalizer(s, v1alpha1.Finalizer)

	return reconcile.Result{}, r.patch(ctx, s, before)
}

// cooling returns how long the block of a Subnet that is being deleted stays unused.
// It ends early if the Subnet never held its block, if its pool is being deleted, and
// for the claim of its name if that can be given no other block: p and c are nil if
// there is no such object.
func cooling(s *v1alpha1.Subnet, p *v1alpha1.SubnetPool, c *v1alpha1.SubnetClaim, now time.Time) time.Duration {
	switch {
	case s.Status.Phase != v1alpha1.SubnetAllocated, p == nil, p.DeletionTimestamp != nil:
		return 0
	case c != nil && c.Status.Phase != v1alpha1.ClaimBound && claim.Insists(c, s):
		return 0
	}

	return max(0, s.DeletionTimestamp.Add(reuseAfter(p)).Sub(now))
}

// cachedPool returns a pool from the cache, nil if there is none. It belongs to the
// cache.
func (r *Reconciler) cachedPool(ctx context.Context, namespace, name string) (*v1alpha1.SubnetPool, error) {
	p := &v1alpha1.SubnetPool{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, p, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read pool %s/%s: %w", namespace, name, err)
	}

	return p, nil
}

// cachedClaim returns the claim that a Subnet names from the cache, nil if there is
// none. It belongs to the cache.
func (r *Reconciler) cachedClaim(ctx context.Context, s *v1alpha1.Subnet) (*v1alpha1.SubnetClaim, error) {
	if s.Spec.ClaimRef == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	c := &v1alpha1.SubnetClaim{}
	err := r.client.Get(ctx, claimKey(s), c, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read SubnetClaim %s: %w", claimKey(s), err)
	}

	return c, nil
}
