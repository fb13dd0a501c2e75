// Package subnetpool guards pools: one from which something is taken cannot
// vanish under it.
package subnetpool

import (
	"context"
	"fmt"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/internal/view"
)

const page = 500

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
		WatchesRawSource(feed.Source(view.Room, 0)).
		Complete(kube.Patient(reconcile.AsReconciler(mgr.GetClient(), g)))
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
		return reconcile.Result{}, client.IgnoreNotFound(fmt.Errorf("cannot write the finalizer of pool %s/%s: %w", p.Namespace, p.Name, err))
	}

	return reconcile.Result{}, nil
}

// used says whether anything lives in a pool. The cache is asked first: a pool
// that it shows to be used needs no other answer. That it is empty, the API
// server must say, because the cache may be behind.
func (g *Guard) used(ctx context.Context, p *v1alpha1.SubnetPool) (bool, error) {
	subnets := &v1alpha1.SubnetList{}
	err := g.client.List(ctx, subnets, client.InNamespace(p.Namespace), client.MatchingFields{kube.SubnetPoolRefIndexKey: p.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("cannot list Subnets: %w", err)
	}
	if slices.ContainsFunc(subnets.Items, func(s v1alpha1.Subnet) bool { return s.Status.Phase != v1alpha1.SubnetFailed }) {
		return true, nil
	}
	children, err := kube.ChildPools(ctx, g.client, p.Namespace, p.Name)
	if err != nil || len(children) > 0 {
		return true, err
	}

	return g.usedForSure(ctx, p)
}

func (g *Guard) usedForSure(ctx context.Context, p *v1alpha1.SubnetPool) (bool, error) {
	// In pages: a namespace may have more Subnets than one wants to hold twice.
	subnets := &v1alpha1.SubnetList{}
	for more := true; more; more = subnets.Continue != "" {
		if err := g.reader.List(ctx, subnets, client.InNamespace(p.Namespace), client.Limit(page), client.Continue(subnets.Continue)); err != nil {
			return false, fmt.Errorf("cannot list Subnets: %w", err)
		}
		if slices.ContainsFunc(subnets.Items, func(s v1alpha1.Subnet) bool {
			return s.Spec.PoolRef == p.Name && s.Status.Phase != v1alpha1.SubnetFailed
		}) {
			return true, nil
		}
	}
	pools := &v1alpha1.SubnetPoolList{}
	if err := g.reader.List(ctx, pools, client.InNamespace(p.Namespace)); err != nil {
		return false, fmt.Errorf("cannot list SubnetPools: %w", err)
	}

	return slices.ContainsFunc(pools.Items, func(o v1alpha1.SubnetPool) bool { return o.ParentName() == p.Name }), nil
}
