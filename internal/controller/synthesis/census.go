package synthesis

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
)

// countTimeout is how long a scrape waits for a cache that is still being filled.
const countTimeout = 2 * time.Second

// A census counts compositions when metrics are collected: one walk through the cache for each
// scrape, however many changes are in between, and never for deleted ones.
type census struct {
	health, stuck, halted *prometheus.Desc

	// reader is nil until there is a manager, and counts once elected is closed: only
	// a replica that leads has a cache.
	reader  client.Reader
	elected <-chan struct{}
	given   time.Duration
	now     func() time.Time
}

func newCensus() *census {
	return &census{
		health: prometheus.NewDesc("eno_composition_health", "Compositions by their simplified status.", []string{"status"}, nil),
		stuck: prometheus.NewDesc("eno_compositions_stuck_reconciling_total",
			"Compositions, now, that the cluster has not agreed with, or that could not be deleted, for longer than --watchdog-threshold.", []string{"synthesizer", "owner"}, nil),
		halted: prometheus.NewDesc("eno_synthesizer_rollout_halted", "1 if the rollout of the Synthesizer is halted because too many compositions failed, 0 if not.",
			[]string{"synthesizer", "owner"}, nil),
	}
}

// of has the compositions of a manager counted.
func (c *census) of(mgr ctrl.Manager, given time.Duration) {
	c.reader, c.elected, c.given, c.now = mgr.GetClient(), mgr.Elected(), given, time.Now
}

// Describe returns the descriptions of the metrics.
func (c *census) Describe(to chan<- *prometheus.Desc) {
	to <- c.health
	to <- c.stuck
	to <- c.halted
}

// Collect is the other half. Where nothing can be counted, there is nothing.
func (c *census) Collect(to chan<- prometheus.Metric) {
	if c.reader == nil {
		return
	}
	select {
	case <-c.elected:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	all, synthesizers := &enov1.CompositionList{}, &enov1.SynthesizerList{}
	if c.reader.List(ctx, all, client.UnsafeDisableDeepCopy) != nil || c.reader.List(ctx, synthesizers, client.UnsafeDisableDeepCopy) != nil {
		return
	}
	counted := decide.Count(all.Items, synthesizers.Items, c.given, c.now())
	for word, n := range counted.States {
		to <- prometheus.MustNewConstMetric(c.health, prometheus.GaugeValue, float64(n), word)
	}
	for p, n := range counted.Stuck {
		to <- prometheus.MustNewConstMetric(c.stuck, prometheus.GaugeValue, float64(n), p.Name, p.Owner)
	}
	for p, n := range counted.Halted {
		to <- prometheus.MustNewConstMetric(c.halted, prometheus.GaugeValue, float64(n), p.Name, p.Owner)
	}
}
