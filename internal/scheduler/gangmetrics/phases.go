package gangmetrics

import (
	"k8s.io/component-base/metrics"
)

// Phases of a scheduler's life, from the start of its process on.
const (
	PhaseGroupsSynced = "groups_synced"
	PhaseFirstPop     = "first_pop"
	phaseLastCycle    = "last_cycle"
)

var phaseTime = metrics.NewGaugeVec(&metrics.GaugeOpts{
	Subsystem: subsystem, Name: "phase_timestamp_seconds", StabilityLevel: metrics.ALPHA,
	Help: "Unix time at which the scheduler reached a phase: groups_synced (all PodGroups are known), first_pop (of a pod from the queue), last_cycle (of a gang, so far).",
}, []string{"phase"})

// Reached records that a phase is reached now.
func Reached(phase string) { phaseTime.WithLabelValues(phase).SetToCurrentTime() }
