package poolstatus

import (
	"context"
	"net/netip"
	"slices"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// onPools wakes the undecided pools that a change of another pool may concern: those
// near its ranges, and its children. Its own events come from the view.
func onPools(cache client.Reader) handler.EventHandler {
	w := &waker{cache}

	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if p, ok := e.Object.(*v1alpha1.SubnetPool); ok {
				w.around(ctx, q, p)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, ok := e.ObjectOld.(*v1alpha1.SubnetPool)
			now, is := e.ObjectNew.(*v1alpha1.SubnetPool)
			if ok && is && differs(before, now) {
				w.around(ctx, q, before, now)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if p, ok := e.Object.(*v1alpha1.SubnetPool); ok {
				w.around(ctx, q, p)
			}
		},
	}
}

// differs reports whether the decision about another pool may depend on the change.
func differs(a, b *v1alpha1.SubnetPool) bool {
	return a.UID != b.UID || a.Spec.CIDR != b.Spec.CIDR || a.Open() != b.Open() || a.Status.Lost != b.Status.Lost ||
		a.ParentName() != b.ParentName() || (a.DeletionTimestamp == nil) != (b.DeletionTimestamp == nil)
}

// onSubnets wakes the undecided pools that a Subnet was, or is, in the way of, or
// which it backs.
func onSubnets(cache client.Reader) handler.EventHandler {
	w := &waker{cache}

	return handler.Funcs{
		// After a relist, a Subnet can appear with its status. At the start all pools
		// are reconciled.
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if s, ok := e.Object.(*v1alpha1.Subnet); ok && !e.IsInInitialList && backs(s) && allocated(s) {
				w.near(ctx, q, s.Namespace, s.Spec.CIDR)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, ok := e.ObjectOld.(*v1alpha1.Subnet)
			now, is := e.ObjectNew.(*v1alpha1.Subnet)
			if ok && is && mayUnblock(before, now) {
				w.near(ctx, q, now.Namespace, now.Spec.CIDR)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if s, ok := e.Object.(*v1alpha1.Subnet); ok {
				w.near(ctx, q, s.Namespace, s.Spec.CIDR)
			}
		},
	}
}

// mayUnblock reports whether a pool may be opened, or not, because of a change: a Subnet
// has failed or lost its status, or one that backs a child pool has changed.
func mayUnblock(before, now *v1alpha1.Subnet) bool {
	if before.UID != now.UID || before.Status.Phase != now.Status.Phase && (allocated(before) || now.Status.Phase == v1alpha1.SubnetFailed) {
		return true
	}
	if !backs(now) {
		return false
	}

	return before.Status.Phase != now.Status.Phase || before.Status.PoolUID != now.Status.PoolUID ||
		protected(before) != protected(now)
}

// backs reports whether a Subnet is, or becomes, the block of a child pool.
func backs(s *v1alpha1.Subnet) bool { return s.Spec.Backs != nil || s.Status.PoolUID != "" }

// A waker finds the pools that an event concerns.
type waker struct{ cache client.Reader }

// around wakes the undecided pools around all ranges of a pool, before and after a
// change.
func (w *waker) around(ctx context.Context, q queue, states ...*v1alpha1.SubnetPool) {
	var ranges []string
	for _, p := range states {
		ranges = append(ranges, p.Spec.CIDR, p.Open())
	}
	slices.Sort(ranges)
	self := states[0]
	for _, cidr := range slices.Compact(ranges) {
		w.near(ctx, q, self.Namespace, cidr)
	}
	children, err := kube.ChildPools(ctx, w.cache, self.Namespace, self.Name)
	w.enqueue(ctx, q, children, err)
}

// near wakes the undecided pools that overlap a block.
func (w *waker) near(ctx context.Context, q queue, namespace, cidr string) {
	block, err := netip.ParsePrefix(cidr)
	if err != nil {
		return
	}
	pools, err := kube.PoolsNear(ctx, w.cache, namespace, block.Masked())
	w.enqueue(ctx, q, pools, err)
}

func (*waker) enqueue(ctx context.Context, q queue, pools []v1alpha1.SubnetPool, err error) {
	if err != nil {
		// A cache fails only when the manager stops.
		ctrl.LoggerFrom(ctx).Error(err, "Cannot find the pools that an event concerns")
	}
	for i := range pools {
		if undecided(&pools[i]) {
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&pools[i])}, gather)
		}
	}
}
