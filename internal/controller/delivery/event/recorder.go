package event

import (
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

const (
	// Events are limited: a cluster that is down must not be flooded with them.
	eventsPerSecond = 1
	eventsAtOnce    = 25

	action = "Deliver"
)

// An Recorder records events, and not more than a cluster can take.
type Recorder struct {
	Recorder events.EventRecorder
	Limiter  *rate.Limiter
}

// NewRecorder returns a recorder with the usual limit.
func NewRecorder(r events.EventRecorder) *Recorder {
	return &Recorder{Recorder: r, Limiter: rate.NewLimiter(eventsPerSecond, eventsAtOnce)}
}

// Record records an event about a composition and, unless it is nil, an object. It reports whether
// the limit allows it.
func (e *Recorder) Record(owner, about runtime.Object, kind, reason, message string) bool {
	if !e.Limiter.Allow() {
		return false
	}
	e.Recorder.Eventf(owner, about, kind, reason, action, "%s", Clip(message))

	return true
}
