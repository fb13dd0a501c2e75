package subnetclaim

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Two managers that serve one pool choose the same blocks at the same time, and
// each takes from the other what it needs: nothing is lost, and nothing gets
// done. As on a shared wire, who collides waits for a random time, longer after
// each collision, until one of them has the pool for itself.
const (
	shortest  = 10 * time.Millisecond
	doublings = 9 // up to some seconds
	// forgotten is how long after its last collision a pool is as good as new.
	forgotten = 10 * time.Second
)

// A contention says how long to leave a pool alone.
type contention struct {
	mu    sync.Mutex
	pools map[types.NamespacedName]*collisions
}

type collisions struct {
	count       int
	last, until time.Time
}

func newContention() *contention {
	return &contention{pools: map[types.NamespacedName]*collisions{}}
}

// lost tells that a block was lost to somebody else. What is lost while the
// pool is left alone was chosen before, and counts as the same collision.
func (c *contention) lost(pool types.NamespacedName, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.pools[pool]
	if !ok || now.Sub(p.last) > forgotten {
		p = &collisions{}
		c.pools[pool] = p
	}
	p.last = now
	if now.Before(p.until) {
		return
	}
	p.until = now.Add(wait.Jitter(shortest, float64(int(1)<<min(p.count, doublings))))
	p.count++
}

// pause is how long a pool should still be left alone.
func (c *contention) pause(pool types.NamespacedName, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.pools[pool]
	if !ok {
		return 0
	}
	if now.Sub(p.last) > forgotten {
		delete(c.pools, pool)
	}

	return max(p.until.Sub(now), 0)
}
