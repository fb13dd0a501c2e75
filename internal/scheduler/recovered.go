package scheduler

import (
	"fmt"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
)

var panics = metrics.NewCounterVec(&metrics.CounterOpts{
	Subsystem: subsystem, Name: "panics_total", StabilityLevel: metrics.ALPHA,
	Help: "Panics that a worker recovered from, by worker. Each affects the group that the worker was dealing with, and no other.",
}, []string{"worker"})

// Workers, as they are named in arbor_gang_panics_total.
const (
	workerEvents     = "events"
	workerGate       = "gate"
	workerCycle      = "cycle"
	workerBinding    = "binding"
	workerPreemption = "preemption"
	workerStaleness  = "staleness"
	workerStatus     = "status"
	workerConditions = "conditions"
	workerCleanup    = "cleanup"
	workerRecovery   = "recovery"
	workerBackstop   = "backstop"
)

// workers returns all of them.
func workers() []string {
	return []string{
		workerEvents, workerGate, workerCycle, workerBinding, workerPreemption, workerStaleness,
		workerStatus, workerConditions, workerCleanup, workerRecovery, workerBackstop,
	}
}

// recovered ends a panic, so that it affects one group only. Defer it in the
// function that deals with that group.
func (s *Scheduler) recovered(worker string, key types.NamespacedName) {
	s.caught(worker, key, recover())
}

// caught is for a function that has to clean up after a panic: it takes what recover
// returned, and reports whether there was one.
func (*Scheduler) caught(worker string, key types.NamespacedName, cause any) bool {
	if cause == nil {
		return false
	}
	panics.WithLabelValues(worker).Inc()
	klog.Background().Error(fmt.Errorf("panic: %v", cause), "Recovered from a panic; other groups are not affected",
		"worker", worker, "podGroup", key, "stack", string(debug.Stack()))

	return true
}
