package subnetpool

import (
	"context"
	"maps"
	"net/netip"
	"slices"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/decide/ipam/release"
	"github.com/arbor-control/arbor/internal/kube"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// backingOnly passes events of backing Subnets.
var backingOnly = predicate.NewPredicateFuncs(func(o client.Object) bool {
	s, ok := o.(*v1alpha1.Subnet)

	return ok && release.IsBacking(s)
})

// comesOrGoes passes deletions of claims, and creations of those that a pool is made
// of: the block of an earlier claim of the name may be waiting to be used again.
var comesOrGoes = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool {
		c, ok := e.Object.(*v1alpha1.SubnetClaim)

		return ok && !e.IsInInitialList && ipamrules.ChildPoolOf(c) != ""
	},
	UpdateFunc: func(event.UpdateEvent) bool { return false },
}

// released passes events after which the backing Subnet of a pool may be released: the
// pool is gone, another has its name or asks for other addresses, or its parent is no
// longer being restored or is being deleted, which ends a restore. A pool that is created
// again gets the block of the former one.
var released = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.SubnetPool)
		now, is := e.ObjectNew.(*v1alpha1.SubnetPool)

		return ok && is && (before.UID != now.UID || before.Spec.CIDR != now.Spec.CIDR || ipamrules.IsRestoring(before) && !ipamrules.IsRestoring(now) || deletionBegan(before, now))
	},
}

// notFiguresOnly passes all events of pools but updates of conditions and counters, which
// this controller can cause itself.
var notFiguresOnly = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*v1alpha1.SubnetPool)
	now, is := e.ObjectNew.(*v1alpha1.SubnetPool)
	if !ok || !is || before.UID != now.UID || before.Generation != now.Generation || before.Open() != now.Open() || before.Status.Lost != now.Status.Lost {
		return true
	}

	return deletionBegan(before, now) || before.Status.Parent != now.Status.Parent || !maps.Equal(before.Labels, now.Labels) ||
		!maps.Equal(before.Annotations, now.Annotations) || !slices.Equal(before.Finalizers, now.Finalizers) ||
		len(before.OwnerReferences) != len(now.OwnerReferences)
}}

// deletionBegan reports whether a pool is being deleted since an update.
func deletionBegan(before, now *v1alpha1.SubnetPool) bool {
	return before.DeletionTimestamp == nil && now.DeletionTimestamp != nil
}

// freed passes events after which a Subnet has no addresses.
var freed = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.Subnet)
		now, is := e.ObjectNew.(*v1alpha1.Subnet)

		return ok && is && before.Status.Phase != v1alpha1.SubnetFailed && now.Status.Phase == v1alpha1.SubnetFailed
	},
}

// A waker finds the objects that an event concerns.
type waker struct {
	cache    client.Reader
	restores *restores
}

func requests[T any](items []T, key func(*T) (client.ObjectKey, bool)) []reconcile.Request {
	var all []reconcile.Request
	for i := range items {
		if k, ok := key(&items[i]); ok {
			all = append(all, reconcile.Request{NamespacedName: k})
		}
	}

	return all
}

func keyOf(s *v1alpha1.Subnet) (client.ObjectKey, bool) { return client.ObjectKeyFromObject(s), true }

// check logs an error of the cache, which fails only when the manager stops.
func check(ctx context.Context, err error) {
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot find the objects that an event concerns")
	}
}

// blocksOf returns the Subnets that back a pool, and those that were taken from it.
func (w *waker) blocksOf(ctx context.Context, o client.Object) []reconcile.Request {
	p, ok := o.(*v1alpha1.SubnetPool)
	if !ok {
		return nil
	}
	backing, err := kube.SubnetsFor(ctx, w.cache, p)
	check(ctx, err)
	list := &v1alpha1.SubnetList{}
	check(ctx, w.cache.List(ctx, list, client.InNamespace(p.Namespace), client.MatchingFields{kube.SubnetPoolRefIndexKey: p.Name}, client.UnsafeDisableDeepCopy))

	return append(requests(backing, keyOf), requests(list.Items, func(s *v1alpha1.Subnet) (client.ObjectKey, bool) {
		return client.ObjectKeyFromObject(s), release.IsBacking(s)
	})...)
}

// blockAround returns the backing Subnets around the block of another Subnet.
func (w *waker) blockAround(ctx context.Context, o client.Object) []reconcile.Request {
	s, ok := o.(*v1alpha1.Subnet)
	if !ok {
		return nil
	}
	block, err := netip.ParsePrefix(s.Spec.CIDR)
	if err != nil {
		return nil
	}
	near, err := kube.SubnetsAt(ctx, w.cache, s.Namespace, block.Masked())
	check(ctx, err)

	return requests(near, func(b *v1alpha1.Subnet) (client.ObjectKey, bool) {
		return client.ObjectKeyFromObject(b), release.IsBacking(b) && (b.Spec.Backs == nil || release.ChildName(b) == s.Spec.PoolRef)
	})
}

// blocksFor returns the backing Subnets of a claim.
func (w *waker) blocksFor(ctx context.Context, o client.Object) []reconcile.Request {
	c, ok := o.(*v1alpha1.SubnetClaim)
	if !ok {
		return nil
	}
	taken, err := kube.SubnetsOf(ctx, w.cache, c)
	check(ctx, err)

	return requests(taken, func(s *v1alpha1.Subnet) (client.ObjectKey, bool) {
		return client.ObjectKeyFromObject(s), release.IsBacking(s)
	})
}

// relatives wakes the parent of a pool that is gone, and the children of a pool that
// came, was opened or has changed its range.
func (w *waker) relatives() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			w.children(ctx, q, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, ok := e.ObjectOld.(*v1alpha1.SubnetPool)
			now, is := e.ObjectNew.(*v1alpha1.SubnetPool)
			if ok && is {
				w.changed(ctx, q, before, now)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if p, ok := e.Object.(*v1alpha1.SubnetPool); ok {
				add(q, p.Namespace, p.ParentName())
			}
		},
	}
}

// changed wakes the relatives of a pool that an update concerns.
func (w *waker) changed(ctx context.Context, q queue, before, now *v1alpha1.SubnetPool) {
	if before.UID != now.UID || before.Open() != now.Open() || before.Spec.CIDR != now.Spec.CIDR {
		w.children(ctx, q, now)
	}
	if deletionBegan(before, now) || before.UID != now.UID || before.ParentName() != now.ParentName() {
		add(q, now.Namespace, before.ParentName()) // it may be in a ring, or have left
	}
}

func (w *waker) children(ctx context.Context, q queue, o client.Object) {
	children, err := kube.ChildPools(ctx, w.cache, o.GetNamespace(), o.GetName())
	check(ctx, err)
	for i := range children {
		add(q, children[i].Namespace, children[i].Name)
	}
}

func add(q queue, namespace, pool string) {
	if pool != "" {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: pool}})
	}
}

// subnets wakes the pool of a Subnet that has no addresses any more, the child pool
// that a Subnet backs, and child pools whose Subnets have failed and may have room now.
func (w *waker) subnets() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { w.child(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			w.child(ctx, q, e.ObjectNew)
			if freed.Update(e) {
				w.room(ctx, q, e.ObjectNew)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			w.child(ctx, q, e.Object)
			w.room(ctx, q, e.Object)
		},
	}
}

// child wakes the child pool that a Subnet backs, or can back.
func (*waker) child(_ context.Context, q queue, o client.Object) {
	if s, ok := o.(*v1alpha1.Subnet); ok && release.IsBacking(s) {
		add(q, s.Namespace, release.ChildName(s))
	}
}

// room wakes the pool of a Subnet, and the child pools that have a failed Subnet there.
func (w *waker) room(ctx context.Context, q queue, o client.Object) {
	s, ok := o.(*v1alpha1.Subnet)
	if !ok {
		return
	}
	add(q, s.Namespace, s.Spec.PoolRef)
	block, err := netip.ParsePrefix(s.Spec.CIDR)
	if err != nil {
		return
	}
	near, err := kube.SubnetsNear(ctx, w.cache, s.Namespace, s.Spec.PoolRef, block.Masked())
	check(ctx, err)
	for i := range near {
		if near[i].Spec.Backs != nil && near[i].Status.Phase == v1alpha1.SubnetFailed {
			add(q, s.Namespace, release.ChildName(&near[i]))
		}
	}
}

// claims wakes restored pools: a claim was created, is bound, or gone.
func (w *waker) claims() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if pool, ok := w.restoring(ctx, e.Object); ok {
				w.restores.claimArrived(pool)
				q.Add(reconcile.Request{NamespacedName: pool})
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, ok := e.ObjectOld.(*v1alpha1.SubnetClaim)
			now, is := e.ObjectNew.(*v1alpha1.SubnetClaim)
			if !ok || !is || before.Status.Phase == now.Status.Phase && before.Annotations[v1alpha1.BlockAnnotation] == now.Annotations[v1alpha1.BlockAnnotation] {
				return
			}
			if pool, ok := w.restoring(ctx, now); ok {
				q.Add(reconcile.Request{NamespacedName: pool})
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if pool, ok := w.restoring(ctx, e.Object); ok {
				q.Add(reconcile.Request{NamespacedName: pool})
			}
		},
	}
}

// restoring returns the pool of a claim, if that is being restored.
func (w *waker) restoring(ctx context.Context, o client.Object) (client.ObjectKey, bool) {
	c, ok := o.(*v1alpha1.SubnetClaim)
	if !ok {
		return client.ObjectKey{}, false
	}
	key := client.ObjectKey{Namespace: c.Namespace, Name: c.Spec.PoolRef}
	p := &v1alpha1.SubnetPool{}
	err := w.cache.Get(ctx, key, p, client.UnsafeDisableDeepCopy)
	check(ctx, client.IgnoreNotFound(err))

	return key, err == nil && ipamrules.IsRestoring(p)
}
