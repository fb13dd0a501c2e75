package model

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/arbor-control/arbor/internal/controller/delivery/event"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

const (
	// InspectPause is the minimum time between two inspections of one object: each costs
	// two requests, and a controller may write its status often. It doubles with every
	// failure, up to maxInspectPause.
	InspectPause    = 5 * time.Second
	MaxInspectPause = 5 * time.Minute
)

// A driftMemory is what is known about the drift of an object.
type driftMemory struct {
	// Applied is the synthesis that was applied last, or that the object agreed with.
	Applied string
	// Inspected is when the object was last inspected.
	Inspected time.Time
	// Failures counts inspections that failed since the last one that did not.
	Failures int
}

// Pause is the minimum time until the next inspection.
func (m *driftMemory) Pause() time.Duration {
	pause := InspectPause
	for range m.Failures {
		if pause *= 2; pause >= MaxInspectPause {
			return MaxInspectPause
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

// Note records how an object differs, and returns whether that is new.
func (r *driftReport) Note(id decide.Identity, differs string) bool {
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

// Message names the objects that differ, "" if there are none.
func (r *driftReport) Message() string {
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

	return event.Clip(fmt.Sprintf("%d objects are not as they were delivered and are not corrected (--drift=%s): %s", len(r.all), decide.DriftReport, event.Join(all)))
}

// IsShared reports whether another delivery has a part of the composition, so that
// neither knows of all drift.
func (v *Composition) IsShared() bool {
	return v.Foreign || slices.ContainsFunc(v.Items, func(it *Item) bool { return it.Foreign })
}
