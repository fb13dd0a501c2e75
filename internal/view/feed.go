package view

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// Kinds of events.
const (
	Created = "create"
	Updated = "update"
	Deleted = "delete"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// A Feed keeps Pools current from watches, and then wakes whoever works on the
// pools that an event concerns. One hand does both, in this order: who is woken
// by an event sees it in the view.
type Feed struct {
	pools *Pools
	// seen is told of every event of a Subnet.
	seen func(kind string)

	mu            sync.Mutex
	queues        []queue
	registrations []toolscache.ResourceEventHandlerRegistration
}

// NewFeed returns a Feed of a view.
func NewFeed(p *Pools, seen func(kind string)) *Feed {
	return &Feed{pools: p, seen: seen}
}

// Start listens to the informers of a cache.
func (f *Feed) Start(ctx context.Context, c cache.Cache) error {
	for object, handle := range map[client.Object]func(kind string, o any){
		&v1alpha1.Subnet{}:     f.subnet,
		&v1alpha1.SubnetPool{}: f.pool,
	} {
		informer, err := c.GetInformer(ctx, object)
		if err != nil {
			return fmt.Errorf("cannot watch %T: %w", object, err)
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { handle(Created, o) },
			UpdateFunc: func(_, o any) { handle(Updated, o) },
			DeleteFunc: func(o any) { handle(Deleted, o) },
		})
		if err != nil {
			return fmt.Errorf("cannot watch %T: %w", object, err)
		}
		f.register(registration)
	}

	return nil
}

func (f *Feed) register(r toolscache.ResourceEventHandlerRegistration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.registrations = append(f.registrations, r)
}

// Synced says whether everything that was there at the start has been told.
func (f *Feed) Synced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	const watched = 2 // kinds
	if len(f.registrations) < watched {
		return false
	}
	for _, r := range f.registrations {
		if !r.HasSynced() {
			return false
		}
	}

	return true
}

// Source wakes a controller whose requests are pools.
func (f *Feed) Source() source.Source {
	return source.Func(func(_ context.Context, q queue) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.queues = append(f.queues, q)
		// What was told before this controller was there.
		for _, key := range f.pools.keys() {
			q.Add(reconcile.Request{NamespacedName: key})
		}

		return nil
	})
}

func (f *Feed) wake(requests []reconcile.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, q := range f.queues {
		for _, r := range requests {
			q.Add(r)
		}
	}
}

func (f *Feed) subnet(kind string, o any) {
	s, ok := unwrap(o).(*v1alpha1.Subnet)
	if !ok {
		return
	}
	requests := MapSubnetToPool(o)
	for _, r := range requests {
		prefix, err := netip.ParsePrefix(s.Spec.CIDR)
		if kind == Deleted || err != nil || s.Status.Phase == v1alpha1.SubnetFailed {
			f.pools.Drop(r.NamespacedName, s.Name)
		} else {
			f.pools.Put(r.NamespacedName, BlockOf(s, prefix))
		}
		f.seen(kind)
	}
	f.wake(requests)
}

// BlockOf is a Subnet as the view knows it.
func BlockOf(s *v1alpha1.Subnet, prefix netip.Prefix) Block {
	b := Block{Name: s.Name, Prefix: prefix.Masked(), Owner: s.Spec.ClusterID}
	if s.Spec.ClaimRef != nil {
		b.Claim = s.Spec.ClaimRef.UID
	}

	return b
}

func (f *Feed) pool(kind string, o any) {
	p, ok := unwrap(o).(*v1alpha1.SubnetPool)
	if !ok {
		return
	}
	self := client.ObjectKeyFromObject(p)
	prefix, err := netip.ParsePrefix(p.Spec.CIDR)
	gone := kind == Deleted || err != nil
	if gone {
		f.pools.DropPool(self)
	} else {
		f.pools.SetPool(self, prefix)
	}
	parents := MapChildToParent(o)
	for _, r := range parents {
		// A slash cannot be in the name of a Subnet, so they do not meet.
		name := "pool/" + p.Name
		if gone {
			f.pools.Drop(r.NamespacedName, name)
		} else {
			f.pools.Put(r.NamespacedName, Block{Name: name, Prefix: prefix.Masked(), Delegated: true})
		}
	}
	f.wake(append(parents, reconcile.Request{NamespacedName: self}))
}

// enqueueParentPool is the request for a pool. The namespace is never empty:
// pools are namespaced, and so is everything that names one.
func enqueueParentPool(namespace, name string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// MapSubnetToPool is the pool that a Subnet was taken from. It takes what an
// informer hands out, tombstones included.
func MapSubnetToPool(o any) []reconcile.Request {
	s, ok := unwrap(o).(*v1alpha1.Subnet)
	if !ok || s.Spec.PoolRef == "" {
		return nil
	}

	return enqueueParentPool(s.Namespace, s.Spec.PoolRef)
}

// MapChildToParent is the pool that a pool was taken from, if it was: by its
// spec, or by the label that was there before the spec could say so.
func MapChildToParent(o any) []reconcile.Request {
	p, ok := unwrap(o).(*v1alpha1.SubnetPool)
	if !ok {
		return nil
	}
	parent := p.Spec.Parent
	if parent == "" {
		parent = p.Labels[v1alpha1.ParentLabel]
	}
	if parent == "" {
		return nil
	}

	return enqueueParentPool(p.Namespace, parent)
}

func unwrap(o any) any {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		return gone.Obj
	}

	return o
}
