package gate

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/arbor-control/arbor/engine/gang"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/gangmetrics"
	"github.com/arbor-control/arbor/internal/scheduler/podgroups"
	"github.com/arbor-control/arbor/internal/scheduler/worker"
)

// Gates has, for each gang, why its pods may not enter the queue. The event handlers
// compute it, outside of every lock of the queue; PreEnqueue, which runs under such a
// lock, only reads it.
type Gates struct {
	groups *podgroups.Index
	wake   func(types.NamespacedName)

	// compute is held while a gate is computed and stored, so that the newest state of
	// the informers is stored last.
	compute sync.Mutex
	// computed counts how often that was.
	computed int
	mu       sync.RWMutex
	closed   map[types.NamespacedName]Gate
}

// A Gate is one result, nil if the gate is open.
type Gate struct {
	Refusal *decide.Refusal
	Known   bool
	// lacking is how many changes of pods it takes at least until the gate opens, 0 if
	// any change may open it.
	lacking int
}

// New returns gates of which none is computed.
func New(groups *podgroups.Index, wake func(types.NamespacedName)) *Gates {
	return &Gates{groups: groups, wake: wake, closed: map[types.NamespacedName]Gate{}}
}

// Get returns the gate of a gang.
func (s *Gates) Get(key types.NamespacedName) Gate {
	s.mu.RLock()
	defer s.mu.RUnlock()

	return s.closed[key]
}

func (s *Gates) set(key types.NamespacedName, why *decide.Refusal, lacking int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed[key] = Gate{Refusal: why, Known: true, lacking: lacking}
}

// Forget drops the gate of a gang that was deleted.
func (s *Gates) Forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.closed, key)
}

// keys returns the gangs whose gate is closed.
func (s *Gates) keys() []types.NamespacedName {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var keys []types.NamespacedName
	for key, one := range s.closed {
		if one.Refusal != nil {
			keys = append(keys, key)
		}
	}

	return keys
}

// hold returns why a gang may not be tried, nil if it may.
func (s *Gates) hold(key types.NamespacedName) *decide.Refusal {
	g, why := s.groups.Read(key)
	if why != nil {
		return why
	}

	return g.Gate()
}

// Regate computes the gate of a gang again and reports whether it is open.
func (s *Gates) Regate(key types.NamespacedName) bool {
	s.compute.Lock()
	defer s.compute.Unlock()

	return s.computeGate(key)
}

// RegateAfter does so after the change of one pod, if that may matter. Such a change adds
// one pod at most, so a gang that lacks many is not read again for each of them: a gang of
// n pods is read a few times while they are created, and not n times. A pod that is added
// to a gang whose gate is open does not close it; if the pod is wrong, the next attempt to
// place the gang does.
func (s *Gates) RegateAfter(key types.NamespacedName, created bool) bool {
	s.compute.Lock()
	defer s.compute.Unlock()
	is := s.Get(key)
	switch {
	case is.Known && is.Refusal == nil && created:
		return true
	case is.Known && is.Refusal != nil && is.lacking > 1:
		s.set(key, is.Refusal, is.lacking-1)

		return false
	default:
		return s.computeGate(key)
	}
}

// computeGate reads the gang. The caller has the lock for that.
func (s *Gates) computeGate(key types.NamespacedName) bool {
	s.computed++
	g, why := s.groups.Read(key)
	lacking := 0
	if why == nil {
		if why = g.Gate(); why != nil {
			lacking = gang.Lacking(g.Tree, g.Members, g.Rules)
		}
	}
	if why != nil && s.groups.Group(key) == nil && len(s.groups.Members(key)) == 0 {
		s.Forget(key)

		return false
	}
	s.set(key, why, lacking)

	return why == nil
}

// Reads returns how often gangs were read to compute their gates.
func (s *Gates) Reads() int {
	s.compute.Lock()
	defer s.compute.Unlock()

	return s.computed
}

// Limits of the backstop.
const (
	backstopPeriod = time.Minute
	backstopRate   = 500 // gangs per second
)

// Backstop looks, once a minute, for gangs whose gate is closed although it should be
// open, and wakes them. Each is a wake-up that package scheduler has lost: it is
// counted, and tests demand that the count is 0.
func (s *Gates) Backstop(ctx context.Context) {
	limit := flowcontrol.NewTokenBucketRateLimiter(backstopRate, backstopRate)
	tick := time.NewTicker(backstopPeriod)
	defer tick.Stop()
	suspects := map[types.NamespacedName]*decide.Refusal{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			suspects = s.lostWakeUps(ctx, limit, suspects)
		}
	}
}

// lostWakeUps wakes the gangs that were suspects the last time and still are. A gang
// becomes one when its gate differs from what the informers say: an event may be on
// its way.
func (s *Gates) lostWakeUps(ctx context.Context, limit flowcontrol.RateLimiter, before map[types.NamespacedName]*decide.Refusal) map[types.NamespacedName]*decide.Refusal {
	suspects := map[types.NamespacedName]*decide.Refusal{}
	for _, key := range s.keys() {
		if limit.Wait(ctx) != nil {
			return nil
		}
		if was := s.suspect(ctx, key, before[key]); was != nil {
			suspects[key] = was
		}
	}

	return suspects
}

// suspect returns the gate of a gang that is closed and should be open, nil if there is
// none. If it was the same the last time, the gang is woken.
func (s *Gates) suspect(ctx context.Context, key types.NamespacedName, before *decide.Refusal) *decide.Refusal {
	defer worker.Recovered(worker.Backstop, key)
	was := s.Get(key).Refusal
	if was == nil || s.hold(key) != nil {
		return nil
	}
	if before != was {
		return was
	}
	gangmetrics.LostWakeUps.Inc()
	klog.FromContext(ctx).Error(nil, "A gang was not woken when it became complete", "podGroup", key, "gate", was.Reason)
	s.set(key, nil, 0)
	s.wake(key)

	return nil
}
