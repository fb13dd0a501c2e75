package subnetclaim

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Two managers that serve one pool choose the same blocks at the same time, and
// each takes from the other what it needs: nothing is lost, and nothing gets
// done. As on a shared wire, each waits for a random time after a collision, longer
// after each, until one of them has the pool for itself.
const (
	shortest  = 10 * time.Millisecond
	doublings = 9 // up to some seconds
	// forgotten is how long after its last collision a pool is as good as new.
	forgotten = 10 * time.Second
)

// A contention counts collisions of pools, and marks pools whose counts are in
// doubt.
type contention struct {
	mu    sync.Mutex
	pools map[types.NamespacedName]*collisions
}

type collisions struct {
	count       int
	last, until time.Time
	// doubt is true if a block was lost that had been counted as free.
	doubt bool
}

func newContention() *contention {
	return &contention{pools: map[types.NamespacedName]*collisions{}}
}

// collided records that another writer was faster. Collisions during a pause stem
// from choices before it, and count as the same collision.
func (c *contention) collided(pool types.NamespacedName, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.collide(pool, now)
}

// lost records a collision in which a created Subnet lost its block. Whatever took
// that block is in the cache by now, so a recount finds it.
func (c *contention) lost(pool types.NamespacedName, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.collide(pool, now).doubt = true
}

func (c *contention) collide(pool types.NamespacedName, now time.Time) *collisions {
	p, ok := c.pools[pool]
	if !ok {
		p = &collisions{}
		c.pools[pool] = p
	}
	if now.Sub(p.last) > forgotten {
		p.count = 0
	}
	p.last = now
	if !now.Before(p.until) {
		p.until = now.Add(wait.Jitter(shortest, float64(int(1)<<min(p.count, doublings))))
		p.count++
	}

	return p
}

// pause is how long a pool should still be left alone.
func (c *contention) pause(pool types.NamespacedName, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.pools[pool]
	if !ok {
		return 0
	}

	return max(p.until.Sub(now), 0)
}

// doubts reports whether a pool must be counted again before it is served: at once
// after a lost block, and once more when the collisions are over. What was read from
// the API server during a collision may have been deleted before it was counted.
func (c *contention) doubts(pool types.NamespacedName, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.pools[pool]
	if !ok {
		return false
	}
	if now.Sub(p.last) > forgotten {
		delete(c.pools, pool)

		return true
	}
	doubt := p.doubt
	p.doubt = false

	return doubt
}

// forget drops a pool that is gone.
func (c *contention) forget(pool types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pools, pool)
}
