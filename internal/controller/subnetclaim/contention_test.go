package subnetclaim

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Who collides waits, longer each time and never for long; who does not, does
// not; and it is forgotten.
func TestContention(t *testing.T) {
	pool, other := types.NamespacedName{Namespace: "ns", Name: "p"}, types.NamespacedName{Namespace: "ns", Name: "q"}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := newContention()
	if c.pause(pool, now) != 0 {
		t.Error("a pool that nobody fights for is left alone")
	}
	for i := range 30 {
		c.lost(pool, now)
		most := shortest * time.Duration(1+int(1)<<min(i, doublings))
		pause := c.pause(pool, now)
		if pause < shortest || pause > most {
			t.Fatalf("after %d collisions the pause is %s, want %s to %s", i+1, pause, shortest, most)
		}
		c.lost(pool, now.Add(pause/2)) // chosen before, lost now
		if again := c.pause(pool, now); again != pause {
			t.Fatalf("one collision was counted twice: %s, then %s", pause, again)
		}
		now = now.Add(pause)
		if c.pause(pool, now) != 0 || c.pause(other, now) != 0 {
			t.Fatal("the pause does not end, or is another pool's")
		}
	}
	now = now.Add(forgotten + time.Second)
	c.lost(pool, now)
	if pause := c.pause(pool, now); pause > 2*shortest {
		t.Errorf("it is not forgotten: %s", pause)
	}
}
