package kube

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// FirstSeen remembers when this process first saw each of some objects. A time that is
// measured from there does not depend on the clock of the API server: for a manager whose
// clock is ahead of that, every grace period would be over at once.
type FirstSeen struct {
	// keep is how long an object is remembered.
	keep time.Duration

	mu    sync.Mutex
	swept time.Time
	times map[types.UID]time.Time
}

// NewFirstSeen returns one that remembers each object for the time keep.
func NewFirstSeen(keep time.Duration) *FirstSeen {
	return &FirstSeen{keep: keep, times: map[types.UID]time.Time{}}
}

// Since returns when an object was first seen, which may be now.
func (f *FirstSeen) Since(uid types.UID, now time.Time) time.Time {
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
