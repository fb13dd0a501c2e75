package delivery

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// Metrics of deliveries. Names and labels are what dashboards look for.
type Metrics struct {
	duration prometheus.Histogram
	actions  *prometheus.CounterVec
	inflight prometheus.Gauge
	errors   prometheus.Counter
	drift    prometheus.Counter
	// unfiltered are manifests of which nobody knows who delivers them.
	unfiltered prometheus.Counter
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
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
		drift: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "eno_reconciliation_corrections_total",
			Help: "How often an object was put right that somebody else had changed.",
		}),
	}
	m.unfiltered = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "eno_resource_filter_eval_errors_total",
		Help: "How often the resource filter could not be evaluated, so that a resource was left alone.",
	})
	// A series that appears with its first event hides that event from a rate.
	for _, verb := range []decide.Verb{decide.Create, decide.Patch, decide.Apply, decide.Replace, decide.Delete} {
		m.actions.WithLabelValues(string(verb))
	}
	r.MustRegister(m.duration, m.actions, m.inflight, m.errors, m.drift, m.unfiltered)

	return m
}

func (m *Metrics) begin() (end func(error)) {
	m.inflight.Inc()
	began := time.Now()

	return func(err error) {
		m.inflight.Dec()
		m.duration.Observe(time.Since(began).Seconds())
		if err != nil {
			m.errors.Inc()
		}
	}
}

func (m *Metrics) did(v decide.Verb) { m.actions.WithLabelValues(string(v)).Inc() }
