// Package subnetpool protects pools: a pool that something was taken from is deleted only when
// nothing is left in it, and a child pool has a Subnet of its parent that keeps its addresses from
// other claims.
package subnetpool

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/ipamcache"
	"github.com/arbor-control/arbor/internal/kube"
)

const (
	workers = 4

	recorderName = "arbor-subnets"
)

// A Guard keeps the finalizer and the records on every pool, and the backing Subnets
// of child pools.
type Guard struct {
	client   client.Client
	reader   client.Reader
	recorder events.EventRecorder
	restores *restores
	// unbacked reports why a child pool has no backing Subnet, "" if it has one.
	unbacked func(ctx context.Context, pool types.NamespacedName, message string)
}

// SetupWithManager adds the controllers to a manager. A restored pool allocates again
// when nothing of it has arrived for the time grace. Errors that keep a child pool from
// having a backing Subnet go to unbacked.
func SetupWithManager(mgr ctrl.Manager, feed *ipamcache.Feed, grace time.Duration, unbacked func(context.Context, types.NamespacedName, string)) error {
	g := &Guard{
		unbacked: unbacked,
		client:   mgr.GetClient(), reader: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder(recorderName),
		restores: newRestores(grace, feed.LastArrival),
	}
	w := &waker{cache: mgr.GetClient(), restores: g.restores}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("pool-guard").
		For(&v1alpha1.SubnetPool{}, builder.WithPredicates(notFiguresOnly)).
		Watches(&v1alpha1.SubnetPool{}, w.relatives()).
		Watches(&v1alpha1.Subnet{}, w.subnets()).
		Watches(&v1alpha1.SubnetClaim{}, w.claims()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: kube.NewRetryLimiter()}).
		Complete(kube.Patient(reconcile.AsReconciler(mgr.GetClient(), g)))
	if err != nil {
		return err
	}
	r := &Releaser{
		client: mgr.GetClient(), reader: mgr.GetAPIReader(), recorder: g.recorder,
		grace: grace, now: time.Now, known: kube.NewFirstSeen(2 * grace),
	}

	return ctrl.NewControllerManagedBy(mgr).
		Named("pool-blocks").
		For(&v1alpha1.Subnet{}, builder.WithPredicates(backingOnly)).
		Watches(&v1alpha1.SubnetPool{}, handler.EnqueueRequestsFromMapFunc(w.blocksOf), builder.WithPredicates(released)).
		Watches(&v1alpha1.Subnet{}, handler.EnqueueRequestsFromMapFunc(w.blockAround), builder.WithPredicates(freed)).
		Watches(&v1alpha1.SubnetClaim{}, handler.EnqueueRequestsFromMapFunc(w.blocksFor), builder.WithPredicates(comesOrGoes)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: kube.NewRetryLimiter()}).
		Complete(kube.Patient(reconcile.AsReconciler(mgr.GetClient(), r)))
}

// Reconcile protects a pool, or removes the protection of one that is deleted and
// empty.
func (g *Guard) Reconcile(ctx context.Context, p *v1alpha1.SubnetPool) (reconcile.Result, error) {
	if p.DeletionTimestamp != nil {
		g.restores.forget(client.ObjectKeyFromObject(p))

		return reconcile.Result{}, g.release(ctx, p)
	}
	if wrote, err := g.protect(ctx, p); err != nil || wrote {
		return reconcile.Result{}, err // the event of the write comes back here
	}
	if err := g.back(ctx, p); err != nil {
		return reconcile.Result{}, err
	}

	return g.endRestore(ctx, p)
}
