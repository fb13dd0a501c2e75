package poolstatus

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/ipamcache"
	"github.com/arbor-control/arbor/internal/kube"
)

// Values of the label result.
const (
	resultSuccess = "success"
	resultError   = "error"
	// resultConflict means that another client was faster, and the write is repeated.
	resultConflict = "conflict"
)

// Metrics of pool status. Names and labels are what dashboards look for.
type Metrics struct {
	requeues *prometheus.CounterVec
	duration *prometheus.HistogramVec
	last     *prometheus.GaugeVec
	inflight prometheus.Gauge

	utilization   *prometheus.GaugeVec
	fragmentation *prometheus.GaugeVec
	allocated     *prometheus.GaugeVec
	exhausted     *prometheus.GaugeVec
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	ofPool := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"ns", "name"})
	}
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
		last: ofPool("subnetpool_parent_status_last_timestamp_seconds", "When the status of a pool was last brought up to date."),
		inflight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "subnetpool_parent_reconcile_inflight",
			Help: "Pools whose status is being brought up to date now.",
		}),
		utilization:   ofPool("subnetpool_utilization_percent", "Share of a pool's addresses that are taken or delegated."),
		fragmentation: ofPool("subnetpool_fragmentation_percent", "How scattered a pool's free space is: 0 when it is one block."),
		allocated:     ofPool("subnetpool_allocated_subnets", "Subnets of a pool."),
		exhausted:     ofPool("subnetpool_exhausted", "1 when no block of a pool's default size is left, else 0."),
	}
	// A series that appears with its first event hides that event from a rate.
	for _, kind := range []string{ipamcache.Created, ipamcache.Updated, ipamcache.Deleted} {
		m.requeues.WithLabelValues(kind)
	}
	for _, result := range []string{resultSuccess, resultError, resultConflict} {
		m.duration.WithLabelValues(result)
	}
	r.MustRegister(m.requeues, m.duration, m.last, m.inflight, m.utilization, m.fragmentation, m.allocated, m.exhausted)

	return m
}

// Requeued counts a pool that was queued for a Subnet.
func (m *Metrics) Requeued(kind string) { m.requeues.WithLabelValues(kind).Inc() }

func (m *Metrics) begin() (end func(error)) {
	m.inflight.Inc()
	began := time.Now()

	return func(err error) {
		m.inflight.Dec()
		result := resultSuccess
		switch {
		case kube.LostRace(err):
			result = resultConflict
		case err != nil:
			result = resultError
		}
		m.duration.WithLabelValues(result).Observe(time.Since(began).Seconds())
	}
}

// shown sets the metrics to the status that is on a pool now.
func (m *Metrics) shown(key types.NamespacedName, s *v1alpha1.SubnetPoolStatus, at time.Time) {
	exhausted := 0.0
	if meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionExhausted) {
		exhausted = 1
	}
	for gauge, value := range map[*prometheus.GaugeVec]float64{
		m.last:          float64(at.UnixMilli()) / 1000,
		m.utilization:   float64(s.UtilizationPercent),
		m.fragmentation: float64(s.FragmentationPercent),
		m.allocated:     float64(s.AllocatedCount),
		m.exhausted:     exhausted,
	} {
		gauge.WithLabelValues(key.Namespace, key.Name).Set(value)
	}
}

// gone removes a pool, or its figures would stay forever.
func (m *Metrics) gone(key types.NamespacedName) {
	for _, gauge := range []*prometheus.GaugeVec{m.last, m.utilization, m.fragmentation, m.allocated, m.exhausted} {
		gauge.DeleteLabelValues(key.Namespace, key.Name)
	}
}
