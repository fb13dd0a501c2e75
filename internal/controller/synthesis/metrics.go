package synthesis

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
)

// Results of a synthesis, as a label.
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
	latency  prometheus.Histogram
	wait     *prometheus.HistogramVec
	census   *census
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
			Help: "Syntheses that could be begun now, in addition to those in flight. 0 while one waits for a slot.",
		}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "eno_scheduling_latency_seconds",
			Help:    "How long one look of the scheduler took, from the list of all compositions to the last synthesis that it began.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 10), // 1 ms to 3.8 s
		}),
		wait: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "eno_composition_synthesis_wait_seconds",
			Help:    "How long a synthesis waited for its turn, once nothing else stood against it, by cause.",
			Buckets: []float64{0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 1800, 3 * 3600, 24 * 3600},
		}, []string{"cause"}),
		census: newCensus(),
	}
	// A series that appears with its first event hides that event from a rate.
	for _, c := range decide.Causes() {
		m.begun.WithLabelValues(c.String())
		m.wait.WithLabelValues(c.String())
	}
	for _, result := range []string{resultSuccess, resultFailure, resultSuperseded} {
		m.results.WithLabelValues(result)
	}
	r.MustRegister(m.begun, m.results, m.duration, m.free, m.latency, m.wait, m.census)

	return m
}

// started counts a synthesis that was begun after some time.
func (m *Metrics) started(c decide.Cause, waited time.Duration) {
	m.begun.WithLabelValues(c.String()).Inc()
	m.wait.WithLabelValues(c.String()).Observe(max(waited, 0).Seconds())
}

func (m *Metrics) ended(result string, took time.Duration) {
	m.results.WithLabelValues(result).Inc()
	m.duration.Observe(max(took, 0).Seconds())
}
