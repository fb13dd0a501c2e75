package subnet

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/kube"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// poolChanged passes the updates of a pool that matter for its Subnets: of its spec,
// of the range that is its own, and its deletion. Counters do not matter.
var poolChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*v1alpha1.SubnetPool)
	after, also := e.ObjectNew.(*v1alpha1.SubnetPool)

	return !ok || !also || before.Generation != after.Generation || before.UID != after.UID || before.Open() != after.Open() ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
}}

// ofPool maps a pool to those of its Subnets that an update of the pool can concern.
func (r *Reconciler) ofPool(ctx context.Context, o client.Object) []reconcile.Request {
	list := &v1alpha1.SubnetList{}
	fields := client.MatchingFields{kube.SubnetPoolRefIndexKey: o.GetName()}
	err := r.client.List(ctx, list, client.InNamespace(o.GetNamespace()), fields, client.UnsafeDisableDeepCopy)
	pool, _ := o.(*v1alpha1.SubnetPool)

	return requests(ctx, list.Items, err, func(s *v1alpha1.Subnet) bool {
		switch s.Status.Phase {
		case v1alpha1.SubnetFailed:
			return s.Spec.ClaimRef != nil && s.Status.ClaimUID == "" // it is kept while the pool is being restored
		case v1alpha1.SubnetAllocated:
			return s.DeletionTimestamp != nil || reuseAfter(pool) > 0 && !controllerutil.ContainsFinalizer(s, v1alpha1.Finalizer)
		case v1alpha1.SubnetPending:
		}

		return true
	})
}

// claimEvents maps a claim to its Subnets: to those that it was not bound to when it
// is bound, to those that are being deleted when it is created, and to all when it is
// deleted.
func (r *Reconciler) claimEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if e.IsInInitialList {
				return // all Subnets are reconciled at the start
			}
			r.enqueue(ctx, e.Object, q, func(_ *v1alpha1.SubnetClaim, s *v1alpha1.Subnet) bool { return s.DeletionTimestamp != nil })
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() {
				r.claimDeleted(ctx, e.ObjectOld, q)
			}
			r.enqueue(ctx, e.ObjectNew, q, ipamrules.IsSurplus)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { r.claimDeleted(ctx, e.Object, q) },
	}
}

func (r *Reconciler) claimDeleted(ctx context.Context, o client.Object, q queue) {
	r.deleted.Add(o.GetUID())
	r.enqueue(ctx, o, q, func(*v1alpha1.SubnetClaim, *v1alpha1.Subnet) bool { return true })
}

// enqueue adds the Subnets of a claim that are wanted.
func (r *Reconciler) enqueue(ctx context.Context, o client.Object, q queue, want func(*v1alpha1.SubnetClaim, *v1alpha1.Subnet) bool) {
	c, ok := o.(*v1alpha1.SubnetClaim)
	if !ok {
		return
	}
	subnets, err := kube.SubnetsOf(ctx, r.client, c)
	for _, request := range requests(ctx, subnets, err, func(s *v1alpha1.Subnet) bool { return want(c, s) }) {
		q.Add(request)
	}
}

// requests returns requests for the Subnets of a list that are wanted. An error can
// only be logged: the handler of an event cannot return it.
func requests(ctx context.Context, list []v1alpha1.Subnet, err error, want func(*v1alpha1.Subnet) bool) []reconcile.Request {
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list Subnets")

		return nil
	}
	var all []reconcile.Request
	for i := range list {
		if s := &list[i]; want(s) {
			all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s)})
		}
	}

	return all
}
