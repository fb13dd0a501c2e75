package gangmetrics

import (
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// What came of trying a gang.
const (
	ResultScheduled     = "scheduled"
	ResultUnschedulable = "unschedulable"
	ResultRefused       = "refused"
	ResultEarly         = "early"
	ResultError         = "error"
)

const subsystem = "arbor_gang"

var (
	cycles = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "cycles_total", StabilityLevel: metrics.ALPHA,
		Help: "Gangs that were tried, by what came of it: scheduled, unschedulable, refused (no good tree, or too few pods), early (some of its pods are not in the queue yet), error.",
	}, []string{"result"})
	cycleSeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "cycle_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "How long a gang kept the goroutine that places pods, and so every other pod, by result.",
		Buckets: metrics.ExponentialBuckets(0.0005, 2, 15),
	}, []string{"result"})
	PodsHeld = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "pods_held", StabilityLevel: metrics.ALPHA,
		Help: "Pods that had a place when the cycle of their gang ended without being bound. Always 0: a gang that waits holds nothing.",
	})
	PodsPlaced = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "pods_placed_total", StabilityLevel: metrics.ALPHA,
		Help: "Pods of gangs that were given a node.",
	})
	BindFailures = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "bind_failures_total", StabilityLevel: metrics.ALPHA,
		Help: "Pods of gangs that were given a node and could not be bound to it.",
	})
	Evictions = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "evictions_total", StabilityLevel: metrics.ALPHA,
		Help: "Pods that were evicted, by reason: preempted (a more important gang takes their place), stale (their gang stayed below its minimum).",
	}, []string{"reason"})
	ReservedPods = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "reserved_pods", StabilityLevel: metrics.ALPHA,
		Help: "Pods of gangs for which room is reserved on a node while preempted pods terminate.",
	})
	ReservationsEnded = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "reservations_ended_total", StabilityLevel: metrics.ALPHA,
		Help: "Reservations that ended, by result: placed, superseded (the group was edited or deleted), blocked (an API error, or a victim that does not terminate), expired (the group was not placed although every victim is gone), unprepared (a pod of the group could not be prepared for its node).",
	}, []string{"result"})
	LostWakeUps = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "lost_wakeups_total", StabilityLevel: metrics.ALPHA,
		Help: "Gangs that were complete and were not tried until the backstop found them. Always 0.",
	})
	Panics = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "panics_total", StabilityLevel: metrics.ALPHA,
		Help: "Panics that a worker recovered from, by worker. Each affects the group that the worker was dealing with, and no other.",
	}, []string{"worker"})
	WaitingGroups = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "waiting_groups", StabilityLevel: metrics.ALPHA,
		Help: "PodGroups whose condition Scheduled is False, by cause: room (the scheduler has to place them), pods (too few exist), group (the group or its pods have to be changed). Every replica counts all of them.",
	}, []string{"cause"})
	WaitingSince = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "waiting_since_timestamp_seconds", StabilityLevel: metrics.ALPHA,
		Help: "Unix time since which the first of the PodGroups that wait does so, by cause. Absent for a cause that no group waits for.",
	}, []string{"cause"})
	TrialSeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "trial_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "How long a question about what would fit took, by kind: preemption.",
		Buckets: metrics.ExponentialBuckets(0.001, 2, 15),
	}, []string{"kind"})
)

func init() { //nolint:gochecknoinits // kube-scheduler's registry is process-wide
	legacyregistry.MustRegister(Metrics()...)
}

// Metrics are those that the scheduler has beyond kube-scheduler's.
func Metrics() []metrics.Registerable {
	return []metrics.Registerable{cycles, cycleSeconds, PodsHeld, PodsPlaced, BindFailures, Evictions, ReservedPods, ReservationsEnded, LostWakeUps, TrialSeconds, Panics, phaseTime, WaitingGroups, WaitingSince}
}

// Observe counts a cycle.
func Observe(result string, took time.Duration) {
	cycles.WithLabelValues(result).Inc()
	Reached(phaseLastCycle)
	cycleSeconds.WithLabelValues(result).Observe(took.Seconds())
}
