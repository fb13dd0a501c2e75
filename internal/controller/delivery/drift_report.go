package delivery

import (
	"fmt"
	"slices"
	"sync"
	"time"

	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

const (
	// inspectPause is the minimum time between two inspections of one object: each costs
	// two requests, and a controller may write its status often. It doubles with every
	// failure, up to maxInspectPause.
	inspectPause    = 5 * time.Second
	maxInspectPause = 5 * time.Minute
)

// A driftMemory is what is known about the drift of an object.
type driftMemory struct {
	// applied is the synthesis that was applied last, or that the object agreed with.
	applied string
	// inspected is when the object was last inspected.
	inspected time.Time
	// failures counts inspections that failed since the last one that did not.
	failures int
}

// pause is the minimum time until the next inspection.
func (m *driftMemory) pause() time.Duration {
	pause := inspectPause
	for range m.failures {
		if pause *= 2; pause >= maxInspectPause {
			return maxInspectPause
		}
	}

	return pause
}

// A driftReport is how objects differ from the current synthesis. It may be used by any
// number of goroutines.
type driftReport struct {
	mu  sync.Mutex
	all map[decide.Identity]string
}

func newDriftReport() *driftReport { return &driftReport{all: map[decide.Identity]string{}} }

// note records how an object differs, and returns whether that is new.
func (r *driftReport) note(id decide.Identity, differs string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all[id] == differs {
		return false
	}
	r.all[id] = differs
	if differs == "" {
		delete(r.all, id)
	}

	return true
}

// message names the objects that differ, "" if there are none.
func (r *driftReport) message() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) == 0 {
		return ""
	}
	var all []string
	for id, differs := range r.all {
		all = append(all, fmt.Sprintf("%s: %s", id, differs))
	}
	slices.Sort(all)

	return clip(fmt.Sprintf("%d objects are not as they were delivered and are not corrected (--drift=%s): %s", len(r.all), decide.DriftReport, joined(all)))
}

// isShared reports whether another delivery has a part of the composition, so that
// neither knows of all drift.
func (v *view) isShared() bool {
	return v.elsewhere || slices.ContainsFunc(v.items, func(it *item) bool { return it.elsewhere })
}
