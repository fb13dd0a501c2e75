package subnetclaim

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// gather is how long claims that need no block any more are gathered: only the
// number of waiting claims changes.
const gather = time.Second

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// claimEvents maps events of claims to the pools that they name.
func claimEvents() handler.Funcs {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueue(q, e.Object, 0) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if delay, ok := delayOf(e.ObjectOld, e.ObjectNew); ok {
				enqueue(q, e.ObjectNew, delay)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if c, ok := e.Object.(*v1alpha1.SubnetClaim); ok && c.Status.Phase != v1alpha1.ClaimBound {
				enqueue(q, c, gather)
			}
		},
	}
}

// delayOf returns how soon the allocator must know of a change of a claim, if at all.
// The spec of a claim never changes, and what happens to its Subnet comes by the feed.
func delayOf(before, now client.Object) (time.Duration, bool) {
	x, ok := before.(*v1alpha1.SubnetClaim)
	y, too := now.(*v1alpha1.SubnetClaim)
	bound := ok && too && y.Status.Phase == v1alpha1.ClaimBound
	switch {
	case !ok || !too:
		return 0, false
	case bound != (x.Status.Phase == v1alpha1.ClaimBound):
		return gather, true
	}

	return 0, !bound && x.Annotations[v1alpha1.BlockAnnotation] != y.Annotations[v1alpha1.BlockAnnotation]
}

func enqueue(q queue, o client.Object, delay time.Duration) {
	if c, ok := o.(*v1alpha1.SubnetClaim); ok {
		q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: c.Namespace, Name: c.Spec.PoolRef}}, delay)
	}
}
