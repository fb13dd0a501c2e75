package subnet

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipam/release"
	"github.com/arbor-control/arbor/internal/kube"
)

// reuseAfter returns how long the blocks of a pool stay unused after their release.
func reuseAfter(p *v1alpha1.SubnetPool) time.Duration {
	if p == nil || p.Spec.ReuseAfter == nil {
		return 0
	}

	return p.Spec.ReuseAfter.Duration
}

// protect adds the finalizer to an Allocated Subnet of a pool with spec.reuseAfter.
func (r *Reconciler) protect(ctx context.Context, s *v1alpha1.Subnet) error {
	if controllerutil.ContainsFinalizer(s, v1alpha1.Finalizer) {
		return nil
	}
	p, err := kube.Find(ctx, r.client, &v1alpha1.SubnetPool{}, s.Namespace, s.Spec.PoolRef)
	if err != nil || reuseAfter(p) <= 0 || p.DeletionTimestamp != nil {
		return err
	}
	before := s.DeepCopy()
	controllerutil.AddFinalizer(s, v1alpha1.Finalizer)

	return r.patch(ctx, s, before)
}

// cool removes the finalizer of a Subnet that is being deleted, once its block may be used again.
// The pool guard removes that of a Subnet which backs a child pool. The cache is asked first. Only
// the API server knows that nothing keeps the block unused.
func (r *Reconciler) cool(ctx context.Context, s *v1alpha1.Subnet) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(s, v1alpha1.Finalizer) || release.IsBacking(s) && s.Status.Phase != v1alpha1.SubnetFailed {
		return reconcile.Result{}, nil
	}
	for _, from := range []source{r.cache(), r.server()} {
		if left, err := r.cooling(ctx, from, s); err != nil || left > 0 {
			return reconcile.Result{RequeueAfter: left}, err
		}
	}
	before := s.DeepCopy()
	controllerutil.RemoveFinalizer(s, v1alpha1.Finalizer)

	return reconcile.Result{}, r.patch(ctx, s, before)
}

// cooling returns how long the block of a Subnet stays unused. A claim and a child pool can only
// end that early, so they are read only if the pool specifies that it lasts: many Subnets of a pool
// may end their cool-down at the same time.
func (r *Reconciler) cooling(ctx context.Context, from source, s *v1alpha1.Subnet) (time.Duration, error) {
	p, err := from.pool(ctx, types.NamespacedName{Namespace: s.Namespace, Name: s.Spec.PoolRef})
	if err != nil || release.Cooling(release.Facts{Subnet: s, Pool: p, Now: r.now()}) == 0 {
		return 0, err
	}
	facts, err := r.facts(ctx, from, s)
	if err != nil {
		return 0, err
	}
	facts.Pool = p

	return release.Cooling(facts), nil
}
