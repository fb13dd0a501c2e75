package subnet

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/release"
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

// cool removes the finalizer of a Subnet that is being deleted, once its block may be
// used again. The pool guard removes that of a Subnet which backs a child pool. The cache is
// asked first. Only the API server can tell that nothing keeps the block unused.
func (r *Reconciler) cool(ctx context.Context, s *v1alpha1.Subnet) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(s, v1alpha1.Finalizer) || release.IsBacking(s) && s.Status.Phase != v1alpha1.SubnetFailed {
		return reconcile.Result{}, nil
	}
	for _, reader := range []client.Reader{r.client, r.reader} {
		facts, err := r.facts(ctx, reader, s)
		if err != nil {
			return reconcile.Result{}, err
		}
		if left := release.Cooling(facts); left > 0 {
			return reconcile.Result{RequeueAfter: left}, nil
		}
	}
	before := s.DeepCopy()
	controllerutil.RemoveFinalizer(s, v1alpha1.Finalizer)

	return reconcile.Result{}, r.patch(ctx, s, before)
}
