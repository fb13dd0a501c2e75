package poolstatus

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// Metrics of pool status. Names and labels are what dashboards look for.
type Metrics struct {
	requeues *prometheus.CounterVec
	duration *prometheus.HistogramVec
	last     *prometheus.GaugeVec
	inflight prometheus.Gauge
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		requeues: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "subnetpool_parent_requeue_total",
			Help: "Pools that were queued because a Subnet of theirs was created, updated or deleted.",
		}, []string{"event_type"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "subnetpool_parent_reconcile_duration_seconds",
			Help:    "How long it took to bring the status of a pool up to date.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2.5, 12), // 0.5 ms to 12 s
		}, []string{"result"}),
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "subnetpool_parent_status_last_timestamp_seconds",
			Help: "When the status of a pool was last brought up to date.",
		}, []string{"ns", "name"}),
		inflight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "subnetpool_parent_reconcile_inflight",
			Help: "Pools whose status is being brought up to date now.",
		}),
	}
	r.MustRegister(m.requeues, m.duration, m.last, m.inflight)

	return m
}

// Requeued counts a pool that was queued for a Subnet.
func (m *Metrics) Requeued(kind string) { m.requeues.WithLabelValues(kind).Inc() }

func (m *Metrics) begin() (end func(error)) {
	m.inflight.Inc()
	began := time.Now()

	return func(err error) {
		m.inflight.Dec()
		result := "success"
		if err != nil {
			result = "error"
		}
		m.duration.WithLabelValues(result).Observe(time.Since(began).Seconds())
	}
}

func (m *Metrics) shown(key types.NamespacedName, at time.Time) {
	m.last.WithLabelValues(key.Namespace, key.Name).Set(float64(at.Unix()))
}

func (m *Metrics) gone(key types.NamespacedName) {
	m.last.DeleteLabelValues(key.Namespace, key.Name)
}
