package worker

import (
	"fmt"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/arbor-control/arbor/internal/scheduler/gangmetrics"
)

// Workers, as they are named in arbor_gang_panics_total.
const (
	Events     = "events"
	Gate       = "gate"
	Cycle      = "cycle"
	Binding    = "binding"
	Preemption = "preemption"
	Staleness  = "staleness"
	Status     = "status"
	Conditions = "conditions"
	Cleanup    = "cleanup"
	Recovery   = "recovery"
	Backstop   = "backstop"
)

// workers returns all of them.
func workers() []string {
	return []string{
		Events, Gate, Cycle, Binding, Preemption, Staleness,
		Status, Conditions, Cleanup, Recovery, Backstop,
	}
}

// CountPanics exports the metric of each worker at 0, so that the first panic is an increase.
func CountPanics() {
	for _, worker := range workers() {
		gangmetrics.Panics.WithLabelValues(worker)
	}
}

// Recovered ends a panic, so that it affects one group only. Defer it in the
// function that deals with that group.
func Recovered(worker string, key types.NamespacedName) {
	Caught(worker, key, recover())
}

// Caught is for a function that has to clean up after a panic: it takes what recover
// returned, and reports whether there was one.
func Caught(worker string, key types.NamespacedName, cause any) bool {
	if cause == nil {
		return false
	}
	gangmetrics.Panics.WithLabelValues(worker).Inc()
	klog.Background().Error(fmt.Errorf("panic: %v", cause), "Recovered from a panic; other groups are not affected",
		"worker", worker, "podGroup", key, "stack", string(debug.Stack()))

	return true
}
