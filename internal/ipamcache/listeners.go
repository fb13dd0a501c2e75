package ipamcache

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// syncInterval is how often a controller that starts asks whether the initial lists
// have been delivered.
const syncInterval = 10 * time.Millisecond

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// A listener is a queue, the events it wants, and how long events for one pool are
// gathered for it.
type listener struct {
	queue  queue
	wants  Want
	gather time.Duration
}

// Want is the kind of events that a controller listens to.
type Want int

const (
	// Everything is each event that changes the figures of a pool, or the pool.
	Everything Want = iota
	// Room is each event that may leave more room in a pool, and each event that
	// changes the pool itself.
	Room
)

// Source wakes a controller whose requests are pools. Events for one pool within the
// time gather wake it once. The controller starts when the initial lists have been
// delivered: before that it would choose blocks that are taken, and count a part.
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
	// The events from before this controller.
	for _, key := range s.feed.pools.keys() {
		q.Add(reconcile.Request{NamespacedName: key})
	}

	return nil
}

// WaitForSync is called by the controller before it works.
func (s *subscription) WaitForSync(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, syncInterval, true, func(context.Context) (bool, error) { return s.feed.synced(), nil })
}

// wake wakes the listeners of a pool: those of Everything if something changed, and
// those of Room if there may be more of it.
func (f *Feed) wake(pool types.NamespacedName, changed, room bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.listeners {
		if l.wants == Everything && changed || l.wants == Room && room {
			l.queue.AddAfter(reconcile.Request{NamespacedName: pool}, l.gather)
		}
	}
}

// OnLost has a function called with the pool of each claim's Subnet that has failed.
// It must not call Recount.
func (f *Feed) OnLost(call func(pool types.NamespacedName)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = append(f.lost, call)
}

func (f *Feed) callLost(pool types.NamespacedName) {
	f.mu.Lock()
	calls := slices.Clone(f.lost)
	f.mu.Unlock()
	for _, call := range calls {
		call(pool)
	}
}
