package delivery

import (
	"errors"
	"sync"
	"time"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// A rejectedError is why a slice that exists does not belong to a composition.
type rejectedError struct{ reason string }

func (r *rejectedError) Error() string { return r.reason }

func isRejected(err error) bool {
	_, ok := errors.AsType[*rejectedError](err)

	return ok
}

const (
	// maxEvents is how many versions of a slice are remembered that were not seen yet.
	maxEvents = 64
	// repairRetry is after how long a slice that could not be repaired is tried again. Synthesis
	// waits for it for five seconds.
	repairRetry = 500 * time.Millisecond
	// reloadDelay is after how long slices that are missing are read again.
	reloadDelay = 5 * time.Second
)

// sliceEvents tells events of other clients from those of this process. An event may come
// before the answer to the write that caused it.
type sliceEvents struct {
	mu sync.Mutex
	// own are versions that this process has written and not seen, and seen are others.
	own, seen map[string]bool
	deleted   bool
}

// wrote notes a version that this process has written.
func (e *sliceEvents) wrote(version string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seen[version] {
		delete(e.seen, version)

		return
	}
	if e.own == nil || len(e.own) >= maxEvents { // a watch that broke has left some out
		e.own = map[string]bool{}
	}
	e.own[version] = true
}

// saw notes an event, and reports whether this process may not have caused it.
func (e *sliceEvents) saw(version string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.own[version] {
		delete(e.own, version)

		return false
	}
	if e.seen == nil || len(e.seen) >= maxEvents {
		e.seen = map[string]bool{}
	}
	e.seen[version] = true

	return true
}

// sawDeletion notes that the slice was deleted.
func (e *sliceEvents) sawDeletion() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deleted = true
}

// take reports whether another client has changed or deleted the slice since the last call.
func (e *sliceEvents) take() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	foreign := e.deleted || len(e.seen) > 0
	e.deleted = false
	clear(e.seen)

	return foreign
}

// shareEvents has slices note the same events as those of an earlier view: a slice may be changed
// after it was read, and before its view is in use. Nothing works on this view yet.
func (v *view) shareEvents(old *view) {
	for name, s := range v.parts {
		if was := old.parts[name]; was != nil {
			s.events = was.events
		}
	}
}

// overwritten are the items whose states another client has removed from a slice, also with the
// slice itself, before the first write or later.
func (v *view) overwritten(s *slice, live *enov1.ResourceSlice) []*item {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The next write writes all states.
	s.initialized, s.version = len(live.Status.Resources) == s.count, live.ResourceVersion
	known := v.states(s)
	var all []*item
	for _, it := range v.items {
		if it.slice != s {
			continue
		}
		if !s.initialized && isKnown(known[it.index]) || s.initialized && decide.LosesState(known[it.index], live.Status.Resources[it.index]) {
			all = append(all, it)
		}
	}

	return all
}
