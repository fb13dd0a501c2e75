package backoff

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// firstEarlyWake is how long after a try without all members the gang is woken.
	firstEarlyWake = time.Second
	// maxEarlyWake bounds that: it doubles with every further try.
	maxEarlyWake = time.Minute
)

// EarlyWakes wakes gangs of which not all members were in the queue. Usually the last
// member brings the gang back by itself; if another plugin holds it, only that plugin knows
// when it is released. So the gang is woken by time too, and less and less often.
type EarlyWakes struct {
	wake func(types.NamespacedName)

	mu    sync.Mutex
	gangs map[types.NamespacedName]*earlyWake
}

type earlyWake struct {
	length  time.Duration
	at      time.Time
	pending bool
}

// NewEarlyWakes returns wake-ups of gangs.
func NewEarlyWakes(wake func(types.NamespacedName)) *EarlyWakes {
	return &EarlyWakes{wake: wake, gangs: map[types.NamespacedName]*earlyWake{}}
}

// Add wakes a gang later, unless it is to be woken already.
func (e *EarlyWakes) Add(key types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.gangs[key]
	if was != nil && was.pending {
		return
	}
	now := time.Now()
	is := &earlyWake{length: firstEarlyWake, pending: true}
	if was != nil && now.Before(was.at.Add(maxEarlyWake)) {
		is.length = min(2*was.length, maxEarlyWake)
	}
	is.at = now.Add(is.length)
	e.gangs[key] = is
	time.AfterFunc(is.length, func() {
		e.mu.Lock()
		is.pending = false
		e.mu.Unlock()
		e.wake(key)
	})
}

// Forget is for a gang that had all its members, or was deleted.
func (e *EarlyWakes) Forget(key types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.gangs, key)
}
