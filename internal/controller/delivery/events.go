package delivery

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

// An eventRecorder records events, and not more than a cluster can take.
type eventRecorder struct {
	recorder events.EventRecorder
	limiter  *rate.Limiter
}

func newEventRecorder(r events.EventRecorder) *eventRecorder {
	return &eventRecorder{recorder: r, limiter: rate.NewLimiter(eventsPerSecond, eventsAtOnce)}
}

// record records an event about a composition and, unless it is nil, an object. It reports whether
// the limit allows it.
func (e *eventRecorder) record(owner, about runtime.Object, kind, reason, message string) bool {
	if !e.limiter.Allow() {
		return false
	}
	e.recorder.Eventf(owner, about, kind, reason, action, "%s", clip(message))

	return true
}
