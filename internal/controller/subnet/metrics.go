package subnet

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
)

// collectTimeout bounds how long a scrape waits for a cache that is not ready.
const collectTimeout = time.Second

// A Collector counts objects in the cache that an administrator has to look at: Subnets
// that hold the block of a claim which is not there and never was, because Arbor does not
// release them, and objects with the owner references of former versions, because a
// restore would delete them.
type Collector struct {
	cache            client.Reader
	elected          <-chan struct{}
	unclaimed, owned *prometheus.Desc
}

// NewCollector returns a Collector that reads a cache. Only the leader reports.
func NewCollector(cache client.Reader, elected <-chan struct{}) *Collector {
	return &Collector{
		cache: cache, elected: elected,
		unclaimed: prometheus.NewDesc("subnets_unclaimed",
			"Subnets that hold the block of a SubnetClaim which does not exist.", nil, nil),
		owned: prometheus.NewDesc("subnets_owner_references",
			"Objects whose owner reference to a claim has not been removed yet.", []string{"kind"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	descs <- c.unclaimed
	descs <- c.owned
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	select {
	case <-c.elected:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	// A cache fails only before it has started and after it was stopped.
	if subnets, err := kube.UnclaimedSubnets(ctx, c.cache); err == nil {
		metrics <- prometheus.MustNewConstMetric(c.unclaimed, prometheus.GaugeValue, float64(len(subnets)))
	}
	for kind, list := range map[string]client.ObjectList{
		v1alpha1.SubnetKind: &v1alpha1.SubnetList{}, v1alpha1.SubnetClaimKind: &v1alpha1.SubnetClaimList{}, v1alpha1.SubnetPoolKind: &v1alpha1.SubnetPoolList{},
	} {
		if n, err := kube.CountOwned(ctx, c.cache, list); err == nil {
			metrics <- prometheus.MustNewConstMetric(c.owned, prometheus.GaugeValue, float64(n), kind)
		}
	}
}
