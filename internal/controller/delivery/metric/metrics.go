package metric

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/kube"
)

// Metrics of deliveries. Names and labels are what dashboards look for.
type Metrics struct {
	duration prometheus.Histogram
	actions  *prometheus.CounterVec
	inflight prometheus.Gauge
	errors   prometheus.Counter
	Drift    prometheus.Counter
	// Replacements are deletions of objects that are created again.
	Replacements prometheus.Counter
	Workers      prometheus.Gauge
	// Unfiltered counts manifests for which it is unknown which delivery applies them.
	Unfiltered prometheus.Counter

	Updates     *prometheus.CounterVec
	WriteErrors *prometheus.CounterVec
	FlushSize   prometheus.Histogram
	FlushTime   prometheus.Histogram

	// Queued and unwritten are how much work is left, read when the metrics are scraped. They are
	// nil until there is a Deliverer.
	Queued, Unwritten, PruneBlocked, Unhealthy, Forbidden func() int
}

// These are the results of writing the status of a slice, as a label.
const (
	ResultSuccess  = "success"
	ResultFailure  = "failure"
	ResultConflict = "conflict"
	ResultGone     = "gone"
)

// These are the problems of a write, as a label.
const (
	OpGet   = "get"
	OpPatch = "patch"
)

// New registers the metrics.
func New(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "eno_reconciliation_duration_seconds",
			Help:    "How long it took to make the cluster agree with one resource.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 11), // 1 ms to 9.5 s
		}),
		actions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eno_reconciliation_actions_total",
			Help: "Writes to delivered objects, by what was done (create, patch, apply, replace, delete).",
		}, []string{"action"}),
		inflight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "eno_reconciliations_in_flight",
			Help: "Resources that are worked on now.",
		}),
		errors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "eno_reconciliation_errors_total",
			Help: "How often the cluster could not be made to agree with a resource.",
		}),
		Drift: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "eno_reconciliation_corrections_total",
			Help: "Corrections of objects that another client had changed.",
		}),
		Replacements: newReplacements(),
		Workers: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "eno_reconciliation_controller_max_concurrent_reconciles",
			Help: "How many resources are worked on at a time, at most.",
		}),
		Updates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eno_resource_slice_status_update_total",
			Help: "Writes of states to resource slices, by result: success, conflict (another client wrote first), gone (the slice does not exist) or failure.",
		}, []string{"result"}),
		WriteErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eno_write_buffer_status_update_errors_total",
			Help: "Writes of states and reports that are tried again, by what did not work: patch, or the get after it.",
		}, []string{"op"}),
		FlushSize: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "eno_write_buffer_flush_size",
			Help:    "How many states one write to a resource slice was of.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 11), // 1 to 1024
		}),
		FlushTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "eno_write_buffer_flush_duration_seconds",
			Help:    "How long one write of states or of a report took.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 11), // 1 ms to 9.5 s
		}),
		Unfiltered: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "eno_resource_filter_eval_errors_total",
			Help: "How often the resource filter could not be evaluated, so that a resource was left alone.",
		}),
	}
	// A series that appears with its first event hides that event from a rate.
	for _, verb := range []decide.Verb{decide.Create, decide.Patch, decide.Apply, decide.Replace, decide.Delete} {
		m.actions.WithLabelValues(string(verb))
	}
	for _, result := range []string{ResultSuccess, ResultConflict, ResultGone, ResultFailure} {
		m.Updates.WithLabelValues(result)
	}
	m.WriteErrors.WithLabelValues(OpGet)
	m.WriteErrors.WithLabelValues(OpPatch)
	r.MustRegister(m.duration, m.actions, m.inflight, m.errors, m.Drift, m.Replacements, m.Workers, m.Unfiltered, m.Updates, m.WriteErrors, m.FlushSize, m.FlushTime)
	r.MustRegister(m.gauges()...)

	return m
}

// gauges are those that ask when they are read.
func (m *Metrics) gauges() []prometheus.Collector {
	return []prometheus.Collector{
		asked("eno_reconciliation_controller_workqueue_depth", "Resources that wait to be worked on.", &m.Queued),
		asked("eno_write_buffer_depth", "States and reports that wait to be written.", &m.Unwritten),
		asked("eno_compositions_prune_blocked", "Compositions whose objects are not deleted before a user confirms it.", &m.PruneBlocked),
		asked("eno_compositions_deletion_forbidden", "Compositions with objects that must be deleted and that their ServiceAccount may not delete.", &m.Forbidden),
		asked("eno_compositions_unhealthy", "Compositions with objects that are degraded or have failed.", &m.Unhealthy),
	}
}

func newReplacements() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Name: "eno_reconciliation_replacements_total",
		Help: "Objects that were deleted to be created again because a field is immutable (annotation arbor-control.dev/replace-on-conflict).",
	})
}

// asked is a gauge that asks when it is read.
func asked(name, help string, how *func() int) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
		if *how == nil {
			return 0
		}

		return float64((*how)())
	})
}

// Begin counts a resource that a worker begins with; end counts that it is done.
func (m *Metrics) Begin() (end func(error)) {
	m.inflight.Inc()
	began := time.Now()

	return func(err error) {
		m.inflight.Dec()
		m.duration.Observe(time.Since(began).Seconds())
		if err != nil && !kube.LostRace(err) {
			m.errors.Inc()
		}
	}
}

// Did counts a write.
func (m *Metrics) Did(v decide.Verb) { m.actions.WithLabelValues(string(v)).Inc() }
