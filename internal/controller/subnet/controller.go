package subnet

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
)

// workers is how many Subnets are reconciled at once. Most of the time they wait for a
// shared read of a pool or for a write.
const workers = 16

// A Reconciler reconciles Subnets.
type Reconciler struct {
	client   client.Client
	reader   client.Reader
	pools    *poolReader
	deleted  *kube.RecentlyDeleted
	recorder events.EventRecorder
	now      func() time.Time
	// grace is how long a Subnet without a claim is kept in case the claim is about
	// to be restored.
	grace time.Duration
}

// SetupWithManager starts it with the manager.
func SetupWithManager(mgr ctrl.Manager, grace time.Duration) error {
	r := &Reconciler{
		client: mgr.GetClient(), reader: mgr.GetAPIReader(), pools: newPoolReader(mgr.GetAPIReader()),
		deleted: kube.NewRecentlyDeleted(time.Now), recorder: mgr.GetEventRecorder("arbor-subnets"), now: time.Now, grace: grace,
	}

	return ctrl.NewControllerManagedBy(mgr).
		Named("subnet").
		For(&v1alpha1.Subnet{}).
		Watches(&v1alpha1.SubnetPool{}, handler.EnqueueRequestsFromMapFunc(r.ofPool), builder.WithPredicates(poolChanged)).
		Watches(&v1alpha1.SubnetClaim{}, r.claimEvents()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(kube.Patient(reconcile.AsReconciler(mgr.GetClient(), r)))
}

// Reconcile takes the next step for a Subnet.
func (r *Reconciler) Reconcile(ctx context.Context, s *v1alpha1.Subnet) (reconcile.Result, error) {
	if s.DeletionTimestamp != nil {
		return r.cool(ctx, s)
	}
	// Each of these ends in a write, whose event continues here.
	for _, step := range []func(context.Context, *v1alpha1.Subnet) (bool, error){r.stripOwners, r.resetStatus, r.release} {
		if done, err := step(ctx, s); done || err != nil {
			return reconcile.Result{}, err
		}
	}
	switch s.Status.Phase {
	case v1alpha1.SubnetPending, "":
		return reconcile.Result{}, r.decide(ctx, s)
	case v1alpha1.SubnetAllocated:
		if err := r.protect(ctx, s); err != nil {
			return reconcile.Result{}, err
		}
	case v1alpha1.SubnetFailed:
	}
	after, err := r.unclaimed(ctx, s)

	return reconcile.Result{RequeueAfter: after}, err
}
