package scheduler

import (
	"fmt"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

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

// countPanics exports the metric of each worker at 0, so that the first panic is an increase.
func countPanics() {
	for _, worker := range workers() {
		panics.WithLabelValues(worker)
	}
}

// recovered ends a panic, so that it affects one group only. Defer it in the
// function that deals with that group.
func recovered(worker string, key types.NamespacedName) {
	caught(worker, key, recover())
}

// caught is for a function that has to clean up after a panic: it takes what recover
// returned, and reports whether there was one.
func caught(worker string, key types.NamespacedName, cause any) bool {
	if cause == nil {
		return false
	}
	panics.WithLabelValues(worker).Inc()
	klog.Background().Error(fmt.Errorf("panic: %v", cause), "Recovered from a panic; other groups are not affected",
		"worker", worker, "podGroup", key, "stack", string(debug.Stack()))

	return true
}
