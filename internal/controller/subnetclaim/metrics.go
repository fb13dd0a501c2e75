package subnetclaim

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// Metrics of claims.
type Metrics struct {
	waiting    *prometheus.GaugeVec
	bound      prometheus.Histogram
	unrecorded prometheus.Gauge
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "subnetclaims_waiting",
			Help: "Claims of a pool that are neither Bound nor in error.",
		}, []string{"ns", "pool"}),
		bound: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "subnetclaim_bind_duration_seconds",
			Help:    "From the creation of a claim, to the second, to its binding.",
			Buckets: []float64{0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 300, 1800, 3600},
		}),
		unrecorded: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "subnetclaims_unrecorded",
			Help: "Bound claims whose block is not recorded in their annotations yet.",
		}),
	}
	r.MustRegister(m.waiting, m.bound, m.unrecorded)

	return m
}

// waits records how many claims of a pool wait.
func (m *Metrics) waits(pool types.NamespacedName, n int) {
	if n == 0 {
		m.waiting.DeleteLabelValues(pool.Namespace, pool.Name)

		return
	}
	m.waiting.WithLabelValues(pool.Namespace, pool.Name).Set(float64(n))
}

// took records how long a claim waited for its binding.
func (m *Metrics) took(d time.Duration) { m.bound.Observe(max(d, 0).Seconds()) }
