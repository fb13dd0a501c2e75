package view

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
)

// Kinds of events.
const (
	Created = "create"
	Updated = "update"
	Deleted = "delete"
)

// syncPause is how often it is asked whether everything has been told.
const syncPause = 10 * time.Millisecond

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// A Feed keeps Pools current from watches, and then wakes whoever works on the
// pools that an event makes a difference to. One hand does both, in this order:
// who is woken by an event sees it in the view.
type Feed struct {
	pools *Pools
	// seen is told of every event of a Subnet that made a difference.
	seen func(kind string)

	mu            sync.Mutex
	listeners     []listener
	lost          []func(pool types.NamespacedName)
	registrations []toolscache.ResourceEventHandlerRegistration
	// ours are the versions of pools that were written here.
	ours map[types.NamespacedName]string
}

// A listener is a queue, what it listens to, and how long events for one pool
// are gathered for it.
type listener struct {
	queue  queue
	wants  Want
	gather time.Duration
}

// Want is what somebody listens to.
type Want int

// What there is to listen to: everything that makes a difference to a pool, or
// only what may leave more room in it.
const (
	Everything Want = iota
	Room
)

// NewFeed returns a Feed of a view.
func NewFeed(p *Pools, seen func(kind string)) *Feed {
	return &Feed{pools: p, seen: seen, ours: map[types.NamespacedName]string{}}
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

// synced says whether everything that was there at the start has been told.
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

// Source wakes a controller whose requests are pools. What happens to one pool
// within the time gather wakes it once. The controller works from when everything
// that was there at the start has been told: before, it would choose blocks that are
// taken, and write counts of a part.
func (f *Feed) Source(wants Want, gather time.Duration) source.SyncingSource {
	return &subscription{f, wants, gather}
}

type subscription struct {
	feed   *Feed
	wants  Want
	gather time.Duration
}

func (*subscription) String() string { return "view of pools" }

// Start is called by the controller.
func (s *subscription) Start(_ context.Context, q queue) error {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	s.feed.listeners = append(s.feed.listeners, listener{q, s.wants, s.gather})
	// What was told before this controller was there.
	for _, key := range s.feed.pools.keys() {
		q.Add(reconcile.Request{NamespacedName: key})
	}

	return nil
}

// WaitForSync is called by the controller before it works.
func (s *subscription) WaitForSync(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, syncPause, true, func(context.Context) (bool, error) { return s.feed.synced(), nil })
}

// wake wakes who wants to know, of an event that leaves more room or not.
func (f *Feed) wake(r reconcile.Request, room bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.listeners {
		if room || l.wants == Everything {
			l.queue.AddAfter(r, l.gather)
		}
	}
}

// OnLost has somebody told of claims that lost their block to another.
func (f *Feed) OnLost(tell func(pool types.NamespacedName)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = append(f.lost, tell)
}

func (f *Feed) tellLost(pool types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, tell := range f.lost {
		tell(pool)
	}
}

// Wrote tells that a pool was written here and has a version now. The event of
// that wakes nobody.
func (f *Feed) Wrote(key types.NamespacedName, version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ours[key] = version
}

// Behind says whether a pool, as a cache has it, is older than what was last
// written here. Since the event of that write wakes nobody, whoever went by such
// a pool would not be told of its mistake.
func (f *Feed) Behind(p *v1alpha1.SubnetPool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	wrote, ok := f.ours[client.ObjectKeyFromObject(p)]
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(p.ResourceVersion, wrote)

	return err != nil || order < 0
}

// echo says whether an event is that of a write from here.
func (f *Feed) echo(kind string, p *v1alpha1.SubnetPool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := client.ObjectKeyFromObject(p)
	if kind == Deleted {
		delete(f.ours, key)
	}

	return kind == Updated && f.ours[key] == p.ResourceVersion
}

// Recount tells the view of a pool anew what a cache holds, in case they ever
// differ. Events that come meanwhile are not lost: the cache is always ahead of
// them.
func (f *Feed) Recount(ctx context.Context, cache client.Reader, key types.NamespacedName) error {
	subnets := &v1alpha1.SubnetList{}
	fields := client.MatchingFields{kube.SubnetPoolRefIndexKey: key.Name}
	if err := cache.List(ctx, subnets, client.InNamespace(key.Namespace), fields, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("cannot list Subnets: %w", err)
	}
	children, err := kube.ChildPools(ctx, cache, key.Namespace, key.Name)
	if err != nil {
		return err
	}
	var blocks []Block
	for i := range subnets.Items {
		s := &subnets.Items[i]
		if prefix, err := netip.ParsePrefix(s.Spec.CIDR); err == nil && s.Status.Phase != v1alpha1.SubnetFailed {
			blocks = append(blocks, BlockOf(s, prefix))
		}
	}
	for i := range children {
		if b, ok := DelegationOf(&children[i]); ok {
			blocks = append(blocks, b)
		}
	}
	f.pools.Recount(key, blocks)

	return nil
}

func (f *Feed) subnet(kind string, o any) {
	s, ok := unwrap(o).(*v1alpha1.Subnet)
	if !ok {
		return
	}
	for _, r := range MapSubnetToPool(o) {
		prefix, err := netip.ParsePrefix(s.Spec.CIDR)
		var news bool
		gone := kind == Deleted || err != nil || s.Status.Phase == v1alpha1.SubnetFailed
		if gone {
			news = f.pools.Drop(r.NamespacedName, s.Name)
		} else {
			news = f.pools.Put(r.NamespacedName, BlockOf(s, prefix))
		}
		if news && s.Status.Phase == v1alpha1.SubnetFailed && s.Spec.ClaimRef != nil {
			f.tellLost(r.NamespacedName)
		}
		if news {
			f.seen(kind)
			f.wake(r, gone)
		}
	}
}

// BlockOf is a Subnet as the view knows it.
func BlockOf(s *v1alpha1.Subnet, prefix netip.Prefix) Block {
	b := Block{Name: s.Name, Prefix: prefix.Masked(), Owner: s.Spec.ClusterID}
	if s.Spec.ClaimRef != nil {
		b.Claim = s.Spec.ClaimRef.UID
	}

	return b
}

// DelegationOf is a child pool as its parent's view knows it. A pool that is no
// prefix has only the name.
func DelegationOf(p *v1alpha1.SubnetPool) (Block, bool) {
	// A slash cannot be in the name of a Subnet, so they do not meet.
	b := Block{Name: "pool/" + p.Name, Delegated: true}
	prefix, err := netip.ParsePrefix(p.Spec.CIDR)
	if err == nil {
		b.Prefix = prefix.Masked()
	}

	return b, err == nil
}

func (f *Feed) pool(kind string, o any) {
	p, ok := unwrap(o).(*v1alpha1.SubnetPool)
	if !ok || f.echo(kind, p) {
		return
	}
	self := client.ObjectKeyFromObject(p)
	block, fit := DelegationOf(p)
	gone := kind == Deleted || !fit
	if gone {
		f.pools.DropPool(self)
	} else {
		f.pools.SetPool(self, netip.MustParsePrefix(p.Spec.CIDR))
	}
	for _, r := range MapChildToParent(o) {
		var news bool
		if gone {
			news = f.pools.Drop(r.NamespacedName, block.Name)
		} else {
			news = f.pools.Put(r.NamespacedName, block)
		}
		if news {
			f.wake(r, true) // it may have had more before
		}
	}
	f.wake(reconcile.Request{NamespacedName: self}, true)
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

// MapChildToParent is the pool that a pool was taken from, if it was.
func MapChildToParent(o any) []reconcile.Request {
	p, ok := unwrap(o).(*v1alpha1.SubnetPool)
	if !ok || p.ParentName() == "" {
		return nil
	}

	return enqueueParentPool(p.Namespace, p.ParentName())
}

func unwrap(o any) any {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		return gone.Obj
	}

	return o
}
