package synthesis

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// What came of a synthesis, as a label.
const (
	resultSuccess    = "success"
	resultFailure    = "failure"
	resultSuperseded = "superseded"
)

// Metrics of syntheses.
type Metrics struct {
	begun    *prometheus.CounterVec
	results  *prometheus.CounterVec
	duration prometheus.Histogram
	free     prometheus.Gauge
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		begun: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eno_syntheses_total",
			Help: "Syntheses that were begun, by cause.",
		}, []string{"cause"}),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eno_synthesis_result_total",
			Help: "Syntheses that ended: success, failure, or superseded by another.",
		}, []string{"result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "eno_synthesis_duration_seconds",
			Help:    "From the beginning of a synthesis to its end, whatever came of it.",
			Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120},
		}),
		free: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "eno_free_synthesis_slots",
			Help: "Syntheses that could be begun now, beside those in flight.",
		}),
	}
	r.MustRegister(m.begun, m.results, m.duration, m.free)

	return m
}

func (m *Metrics) ended(result string, took time.Duration) {
	m.results.WithLabelValues(result).Inc()
	m.duration.Observe(max(took, 0).Seconds())
}
