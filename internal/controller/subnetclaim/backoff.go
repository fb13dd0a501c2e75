package subnetclaim

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

const (
	firstDelay   = time.Second
	longestDelay = 2 * time.Minute
)

// A backoff delays the next attempt for claims whose Subnet was not created. The
// other claims of the pool do not wait for them.
type backoff struct {
	mu    sync.Mutex
	pools map[types.NamespacedName]map[types.UID]attempt
}

type attempt struct {
	delay time.Duration
	until time.Time
}

func newBackoff() *backoff {
	return &backoff{pools: map[types.NamespacedName]map[types.UID]attempt{}}
}

// failed records a failure and returns the delay after it.
func (b *backoff) failed(pool types.NamespacedName, claim types.UID, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pools[pool] == nil {
		b.pools[pool] = map[types.UID]attempt{}
	}
	delay := min(max(2*b.pools[pool][claim].delay, firstDelay), longestDelay)
	b.pools[pool][claim] = attempt{delay: delay, until: now.Add(delay)}

	return delay
}

// wait returns how long a claim still has to wait.
func (b *backoff) wait(pool types.NamespacedName, claim types.UID, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	a, ok := b.pools[pool][claim]
	if !ok {
		return 0
	}

	return max(a.until.Sub(now), 0)
}

// keep forgets all claims of a pool except these.
func (b *backoff) keep(pool types.NamespacedName, claims []v1alpha1.SubnetClaim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	had := b.pools[pool]
	if had == nil {
		return
	}
	kept := map[types.UID]attempt{}
	for i := range claims {
		if a, ok := had[claims[i].UID]; ok {
			kept[claims[i].UID] = a
		}
	}
	b.pools[pool] = kept
	if len(kept) == 0 {
		delete(b.pools, pool)
	}
}
