package subnetclaim

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// After a collision a pool is left alone, longer each time and never for long; other
// pools are not; and collisions are forgotten.
func TestContention(t *testing.T) {
	pool, other := types.NamespacedName{Namespace: "ns", Name: "p"}, types.NamespacedName{Namespace: "ns", Name: "q"}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := newContention()
	if c.pause(pool, now) != 0 {
		t.Error("a pool without collisions is left alone")
	}
	for i := range 30 {
		c.collided(pool, now)
		most := shortest * time.Duration(1+int(1)<<min(i, doublings))
		pause := c.pause(pool, now)
		if pause < shortest || pause > most {
			t.Fatalf("after %d collisions the pause is %s, want %s to %s", i+1, pause, shortest, most)
		}
		c.collided(pool, now.Add(pause/2)) // chosen before, lost now
		if again := c.pause(pool, now); again != pause {
			t.Fatalf("one collision was counted twice: %s, then %s", pause, again)
		}
		now = now.Add(pause)
		if c.pause(pool, now) != 0 || c.pause(other, now) != 0 {
			t.Fatal("the pause does not end, or is another pool's")
		}
	}
	now = now.Add(forgotten + time.Second)
	c.collided(pool, now)
	if pause := c.pause(pool, now); pause > 2*shortest {
		t.Errorf("it is not forgotten: %s", pause)
	}
}

// A pool is counted again at once after a lost block, and when collisions are over.
func TestDoubt(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := newContention()
	c.collided(poolKey, now)
	if c.doubts(poolKey, now) {
		t.Error("another manager was faster, and the cache is asked at once: it is behind what was just read")
	}
	c.lost(poolKey, now)
	if !c.doubts(poolKey, now) || c.doubts(poolKey, now) {
		t.Error("a lost block is not followed by one recount")
	}
	now = now.Add(forgotten + time.Second)
	if !c.doubts(poolKey, now) || c.doubts(poolKey, now) {
		t.Error("the collisions are over, and there is not one recount")
	}
	if len(c.pools) != 0 {
		t.Error("old collisions stay in memory")
	}
}

// Pools that are gone leave nothing behind.
func TestForgetsPools(t *testing.T) {
	b := newBench(t, "10.0.0.0/24")
	b.allocator.others.lost(poolKey, b.clock)
	b.pool = nil
	if after := b.round(); after != 0 {
		t.Errorf("a pool that is gone is looked at again in %s", after)
	}
	if len(b.allocator.others.pools) != 0 {
		t.Error("collisions of a pool that is gone stay in memory")
	}
}
