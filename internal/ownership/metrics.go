package ownership

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Values of the label status.
const (
	statusSuccess = "success"
	statusFailure = "failure"
	statusSkipped = "skipped"
)

const (
	// other is the label value for all values beyond the limit.
	other = "other"
	// maxManagers is the maximum number of managers that are distinguished. Names of managers come
	// from programs that any user may run.
	maxManagers = 32
)

// kinds that are distinguished.
var kinds = map[string]bool{
	"Deployment": true, "StatefulSet": true, "DaemonSet": true, "ReplicaSet": true, "Job": true, "CronJob": true, "Pod": true,
}

// Metrics of migrations. Names and labels are what dashboards look for.
type Metrics struct {
	migrations *prometheus.CounterVec
	duration   prometheus.Histogram
	split      *prometheus.CounterVec

	mu       sync.Mutex
	managers map[string]bool
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		migrations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eno_ownership_migrations_total",
			Help: "Migrations of field ownership by status (success, failure, skipped).",
		}, []string{"status"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "eno_ownership_migration_duration_seconds",
			Help:    "How long a migration of field ownership took, from the first read to the last write.",
			Buckets: prometheus.DefBuckets,
		}),
		split: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eno_split_ownership_detected_total",
			Help: "How often a migration found another manager in its scope, by kind and by that manager.",
		}, []string{"kind", "other_manager"}),
		managers: map[string]bool{},
	}
	// A series that appears with its first event hides that event from a rate.
	for _, status := range []string{statusSuccess, statusFailure, statusSkipped} {
		m.migrations.WithLabelValues(status)
	}
	r.MustRegister(m.migrations, m.duration, m.split)

	return m
}

// ended counts a migration. It may be called on nil.
func (m *Metrics) ended(migrated bool, err error, took time.Duration) {
	if m == nil {
		return
	}
	status := statusSkipped
	switch {
	case err != nil:
		status = statusFailure
	case migrated:
		status = statusSuccess
	}
	m.migrations.WithLabelValues(status).Inc()
	m.duration.Observe(took.Seconds())
}

// found counts managers in the scope of an object. It may be called on nil.
func (m *Metrics) found(kind string, managers []string) {
	if m == nil {
		return
	}
	if !kinds[kind] {
		kind = other
	}
	for _, name := range managers {
		m.split.WithLabelValues(kind, m.manager(name)).Inc()
	}
}

// manager is the value of the label for a name.
func (m *Metrics) manager(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.managers[name] {
		if len(m.managers) >= maxManagers {
			return other
		}
		m.managers[name] = true
	}

	return name
}
