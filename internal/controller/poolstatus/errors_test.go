package poolstatus

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/controller/controllertest"
	"github.com/arbor-control/arbor/internal/decide/ipam/poolblocks"
	"github.com/arbor-control/arbor/internal/ipamcache"
	"github.com/arbor-control/arbor/internal/kube"
)

// TestErrors has each request fail while the status of a pool is written.
func TestErrors(t *testing.T) {
	scheme := controllertest.Scheme(t, v1alpha1.AddToScheme)
	cases := map[string]struct {
		reason string
		pool   func(v1alpha1.SubnetPool) v1alpha1.SubnetPool
		cidr   string
	}{
		"New":  {"A pool is opened.", func(p v1alpha1.SubnetPool) v1alpha1.SubnetPool { return p }, "10.0.0.0/16"},
		"Open": {"The figures of a pool are written.", open, "10.0.0.0/16"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			p := tc.pool(pool("p", tc.cidr, ""))
			p.Namespace = "n"
			key := client.ObjectKeyFromObject(&p)
			controllertest.Check(t, controllertest.Case{
				Scheme: scheme, Objects: []client.Object{&p}, Status: []client.Object{&v1alpha1.SubnetPool{}, &v1alpha1.Subnet{}},
				Index: []func(context.Context, client.FieldIndexer) error{kube.IndexSubnets, controllertest.SelectSubnets},
				New: func(s *controllertest.Server) controllertest.Step {
					pools := ipamcache.NewPools()
					r := New(s, s, pools, ipamcache.NewFeed(pools, func(string) {}), NewMetrics(prometheus.NewRegistry()), NewObstacles())
					r.now = func() time.Time { return time.Unix(1_000_000, 0) }

					return func(ctx context.Context) (reconcile.Result, error) {
						// The event of the last write has reached the view.
						now := &v1alpha1.SubnetPool{}
						if s.Peek(ctx, key, now) == nil {
							prefix, isOpen := poolblocks.RangeOf(now)
							pools.SetRange(key, prefix)
							pools.SetOpen(key, isOpen)
						}

						return r.Reconcile(ctx, reconcile.Request{NamespacedName: key})
					}
				},
				Final: func() []client.ObjectList { return []client.ObjectList{&v1alpha1.SubnetPoolList{}} },
			})
		})
	}
}
