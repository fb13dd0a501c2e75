package model

import (
	"errors"
	"sync"
	"time"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// A RejectedError is why a slice that exists does not belong to a composition.
type RejectedError struct{ Reason string }

func (r *RejectedError) Error() string { return r.Reason }

// IsRejected reports whether an error is a RejectedError.
func IsRejected(err error) bool {
	_, ok := errors.AsType[*RejectedError](err)

	return ok
}

const (
	// maxEvents is how many versions of a slice are remembered that were not seen yet.
	maxEvents = 64
	// RepairRetry is after how long a slice that could not be repaired is tried again. Synthesis
	// waits for it for five seconds.
	RepairRetry = 500 * time.Millisecond
	// ReloadDelay is after how long slices that are missing are read again.
	ReloadDelay = 5 * time.Second
)

// SliceEvents distinguishes events of other clients from those of this process. An event may come
// before the answer to the write that caused it.
type SliceEvents struct {
	mu sync.Mutex
	// own are versions that this process has written and not seen, and seen are all other versions.
	own, seen map[string]bool
	deleted   bool
}

// Wrote notes a version that this process has written.
func (e *SliceEvents) Wrote(version string) {
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

// Saw notes an event, and reports whether this process may not have caused it.
func (e *SliceEvents) Saw(version string) bool {
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

// SawDeletion notes that the slice was deleted.
func (e *SliceEvents) SawDeletion() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deleted = true
}

// Take reports whether another client has changed or deleted the slice since the last call.
func (e *SliceEvents) Take() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	foreign := e.deleted || len(e.seen) > 0
	e.deleted = false
	clear(e.seen)

	return foreign
}

// shareEvents has slices note the same events as those of an earlier view: a slice may be changed
// after it was read, and before its view is in use. Nothing works on this view yet.
func (v *Composition) shareEvents(old *Composition) {
	for name, s := range v.Slices {
		if was := old.Slices[name]; was != nil {
			s.Events = was.Events
		}
	}
}

// Overwritten are the items whose states another client has removed from a slice, also with the
// slice itself, before the first write or later.
func (v *Composition) Overwritten(s *Slice, live *enov1.ResourceSlice) []*Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The next write writes all states.
	s.Initialized, s.Version = len(live.Status.Resources) == s.Count, live.ResourceVersion
	known := v.States(s)
	var all []*Item
	for _, it := range v.Items {
		if it.Slice != s {
			continue
		}
		if !s.Initialized && IsRecorded(known[it.Index]) || s.Initialized && decide.LosesState(known[it.Index], live.Status.Resources[it.Index]) {
			all = append(all, it)
		}
	}

	return all
}
