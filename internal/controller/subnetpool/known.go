package subnetpool

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// firstSeen remembers when this process first saw each of some objects. A time that is
// measured from there does not depend on the clock of the API server: for a manager whose
// clock is ahead of that, every grace period would be over at once.
type firstSeen struct {
	// keep is how long an object is remembered.
	keep time.Duration

	mu    sync.Mutex
	swept time.Time
	times map[types.UID]time.Time
}

func newFirstSeen(keep time.Duration) *firstSeen {
	return &firstSeen{keep: keep, times: map[types.UID]time.Time{}}
}

// since returns when an object was first seen, which may be now.
func (f *firstSeen) since(uid types.UID, now time.Time) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.swept) > f.keep {
		f.swept = now
		maps.DeleteFunc(f.times, func(_ types.UID, at time.Time) bool { return now.Sub(at) > f.keep })
	}
	if _, ok := f.times[uid]; !ok {
		f.times[uid] = now
	}

	return f.times[uid]
}
