package model

import (
	"sync"
	"time"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// correctionPause is the minimum time between two writes of the last correction of a
// composition.
const correctionPause = 10 * time.Second

// A correctionLog has the last correction of drift of a composition. It may be used by any
// number of goroutines.
type correctionLog struct {
	mu   sync.Mutex
	last enov1.Correction
	// due is when the last correction is written, or was.
	due time.Time
}

// Note records a correction, and returns after how long it is written; ok is false if a
// write is coming anyway.
func (l *correctionLog) Note(c enov1.Correction, now time.Time) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = c
	switch {
	case now.Before(l.due):
		return 0, false
	case now.Sub(l.due) < correctionPause:
		l.due = l.due.Add(correctionPause)
	default:
		l.due = now
	}

	return l.due.Sub(now), true
}

// Read returns the last correction.
func (l *correctionLog) Read() enov1.Correction {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.last
}
