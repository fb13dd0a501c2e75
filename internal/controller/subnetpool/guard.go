// Package subnetpool guards pools: one from which something is taken cannot
// vanish under it.
package subnetpool

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/internal/view"
)

// A Guard keeps a finalizer on every pool, until it is to be deleted and
// nothing is left in it.
type Guard struct {
	client client.Client
	reader client.Reader
}

// SetupWithManager starts it with the manager.
func SetupWithManager(mgr ctrl.Manager, feed *view.Feed) error {
	g := &Guard{client: mgr.GetClient(), reader: mgr.GetAPIReader()}

	return ctrl.NewControllerManagedBy(mgr).
		Named("pool-guard").
		WatchesRawSource(feed.Source()).
		Complete(reconcile.AsReconciler(mgr.GetClient(), g))
}

// Reconcile puts the finalizer on, or takes it off.
func (g *Guard) Reconcile(ctx context.Context, p *v1alpha1.SubnetPool) (reconcile.Result, error) {
	before := p.DeepCopy()
	if p.DeletionTimestamp == nil {
		controllerutil.AddFinalizer(p, v1alpha1.Finalizer)
	} else {
		used, err := g.used(ctx, p)
		if err != nil || used {
			return reconcile.Result{}, err
		}
		controllerutil.RemoveFinalizer(p, v1alpha1.Finalizer)
	}
	if len(before.Finalizers) == len(p.Finalizers) {
		return reconcile.Result{}, nil
	}
	base := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := g.client.Patch(ctx, p, base); err != nil {
		return reconcile.Result{}, kube.IgnoreStale(fmt.Errorf("cannot write the finalizer of pool %s/%s: %w", p.Namespace, p.Name, err))
	}

	return reconcile.Result{}, nil
}

// used says whether anything lives in a pool. It asks the API server, not a
// cache: a pool is deleted once.
func (g *Guard) used(ctx context.Context, p *v1alpha1.SubnetPool) (bool, error) {
	subnets := &v1alpha1.SubnetList{}
	if err := g.reader.List(ctx, subnets, client.InNamespace(p.Namespace)); err != nil {
		return false, fmt.Errorf("cannot list Subnets: %w", err)
	}
	for i := range subnets.Items {
		if s := &subnets.Items[i]; s.Spec.PoolRef == p.Name && s.Status.Phase != v1alpha1.SubnetFailed {
			return true, nil
		}
	}
	pools := &v1alpha1.SubnetPoolList{}
	if err := g.reader.List(ctx, pools, client.InNamespace(p.Namespace)); err != nil {
		return false, fmt.Errorf("cannot list SubnetPools: %w", err)
	}
	for i := range pools.Items {
		for _, r := range view.MapChildToParent(&pools.Items[i]) {
			if r.Name == p.Name {
				return true, nil
			}
		}
	}

	return false, nil
}
