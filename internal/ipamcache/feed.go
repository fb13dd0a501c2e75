package ipamcache

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
)

// Kinds of events.
const (
	Created = "create"
	Updated = "update"
	Deleted = "delete"
)

// A Feed keeps Pools current from watches, and then wakes the controllers that work
// on the pools which an event concerns. A controller that an event has woken sees the
// event in Pools.
type Feed struct {
	pools *Pools
	// seen counts the events of Subnets that changed a ledger.
	seen    func(kind string)
	started time.Time

	// order makes each event, and each recount from its list to its end, one step.
	// Otherwise a recount could undo an event that came after the list.
	order sync.Mutex

	mu            sync.Mutex
	listeners     []listener
	lost          []func(pool types.NamespacedName)
	registrations []toolscache.ResourceEventHandlerRegistration
	// ours are the versions of pools that were written by this process.
	ours map[types.NamespacedName]string
	// arrivals are when the last Subnet of each pool was created.
	arrivals map[types.NamespacedName]time.Time
}

// NewFeed returns a Feed of Pools.
func NewFeed(p *Pools, seen func(kind string)) *Feed {
	return &Feed{
		pools: p, seen: seen, started: time.Now(),
		ours: map[types.NamespacedName]string{}, arrivals: map[types.NamespacedName]time.Time{},
	}
}

// Start listens to the informers of a cache.
func (f *Feed) Start(ctx context.Context, c cache.Cache) error {
	for object, handle := range map[client.Object]func(kind string, before, now any){
		&v1alpha1.Subnet{}:     f.subnet,
		&v1alpha1.SubnetPool{}: f.pool,
	} {
		informer, err := c.GetInformer(ctx, object)
		if err != nil {
			return fmt.Errorf("cannot watch %T: %w", object, err)
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { handle(Created, nil, o) },
			UpdateFunc: func(before, o any) { handle(Updated, before, o) },
			DeleteFunc: func(o any) { handle(Deleted, o, nil) },
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

// synced reports whether the initial lists have been delivered.
func (f *Feed) synced() bool {
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

// LastArrival returns when a Subnet of a pool was last created, as the watch has seen
// it. It is not before this Feed was made: what came earlier is not known.
func (f *Feed) LastArrival(pool types.NamespacedName) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at, ok := f.arrivals[pool]; ok {
		return at
	}

	return f.started
}

// arrived records the creation of a Subnet.
func (f *Feed) arrived(pool types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.arrivals[pool] = time.Now()
}

// forget removes what is kept of a pool that nothing is known of any more.
func (f *Feed) forget(pool types.NamespacedName) {
	if f.pools.knows(pool) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.arrivals, pool)
}

// Recount replaces what is known of a pool by what a cache holds, in case they ever
// differ, and wakes the controllers if they did.
func (f *Feed) Recount(ctx context.Context, cache client.Reader, key types.NamespacedName) error {
	f.order.Lock()
	defer f.order.Unlock()
	pool := &v1alpha1.SubnetPool{}
	err := cache.Get(ctx, key, pool)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot get pool %s: %w", key, err)
	}
	subnets := &v1alpha1.SubnetList{}
	fields := client.MatchingFields{kube.SubnetPoolRefIndexKey: key.Name}
	if err := cache.List(ctx, subnets, client.InNamespace(key.Namespace), fields, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("cannot list Subnets: %w", err)
	}
	children, err := kube.ChildPools(ctx, cache, key.Namespace, key.Name)
	if err != nil {
		return err
	}
	f.setRange(key, pool)
	if f.pools.Replace(key, all(subnets.Items, children)) {
		f.wake(key, true, true)
	}
	f.forget(key)

	return nil
}
