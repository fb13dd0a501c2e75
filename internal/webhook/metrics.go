// Package webhook has what the handlers of the admission webhooks share. Each handler decodes a
// request, asks package decide, and converts the result to a response; package serving keeps the
// handlers reachable.
package webhook

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Decisions that are counted.
const (
	Allowed = "allowed"
	Denied  = "denied"
	Errored = "error"
)

// Metrics of all admission handlers.
type Metrics struct {
	decisions *prometheus.CounterVec
	duration  *prometheus.HistogramVec
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "arbor_admission_decisions_total",
			Help: "Admission decisions by kind, operation (CREATE, UPDATE, other), decision (allowed, denied, error) and reason (of the first violation).",
		}, []string{"kind", "operation", "decision", "reason"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "arbor_admission_duration_seconds",
			Help:    "How long an admission decision took, decoding included.",
			Buckets: prometheus.ExponentialBuckets(0.00005, 4, 9), // 50 µs to 3.3 s
		}, []string{"kind"}),
	}
	r.MustRegister(m.decisions, m.duration)

	return m
}

// Observe counts one decision.
func (m *Metrics) Observe(kind, operation, decision, reason string, took time.Duration) {
	m.decisions.WithLabelValues(kind, operation, decision, reason).Inc()
	m.duration.WithLabelValues(kind).Observe(took.Seconds())
}
