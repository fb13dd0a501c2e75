package subnets_test

import (
	"context"
	"net/netip"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/ledger"
	"github.com/arbor-control/arbor/internal/controller/poolstatus"
	"github.com/arbor-control/arbor/internal/ipamcache"
	"github.com/arbor-control/arbor/test/cluster"
)

// A Subnet is created and deleted before the cache has seen the status that was written in between.
// What the cache has looks right, and what is stored is not; and the event of that write wakes no
// controller.
func TestLaggingCache(t *testing.T) {
	c := newClient(t)
	pool := newPool(cluster.Namespace(t, c), "p", "10.0.0.0/16")
	must(t, c.Create(t.Context(), pool))
	key := client.ObjectKeyFromObject(pool)
	pools, cached := ipamcache.NewPools(), &lagging{Client: c}
	pools.SetRange(key, netip.MustParsePrefix(pool.Spec.CIDR))
	r := poolstatus.New(cached, c, pools, ipamcache.NewFeed(pools, func(string) {}), poolstatus.NewMetrics(prometheus.NewRegistry()), poolstatus.NewObstacles())
	counts := func(want int64) {
		t.Helper()
		_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
		must(t, err)
		must(t, c.Get(t.Context(), key, pool))
		if got := pool.Status.AllocatedCount; got != want {
			t.Fatalf("%d Subnets are counted, and there are %d", got, want)
		}
	}
	counts(0)
	before := pool.DeepCopy()
	pools.Put(key, ledger.Block{ID: "s", Prefix: netip.MustParsePrefix("10.0.0.0/24")})
	counts(1)
	cached.has = before
	pools.Drop(key, "s")
	result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
	must(t, err)
	if result.RequeueAfter == 0 {
		t.Fatal("the cache is behind, and the pool is not checked again")
	}
	cached.has = nil
	counts(0)
}

// lagging is a client that reads from a cache, which has not seen anything since it had
// a pool. Its lists have no indexes: the callers ignore what they do not look for.
type lagging struct {
	client.Client

	has *v1alpha1.SubnetPool
}

func (l *lagging) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if into, ok := o.(*v1alpha1.SubnetPool); ok && l.has != nil {
		l.has.DeepCopyInto(into)

		return nil
	}

	return l.Client.Get(ctx, key, o, options...)
}

func (l *lagging) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	all := &client.ListOptions{}
	all.ApplyOptions(options)

	return l.Client.List(ctx, list, client.InNamespace(all.Namespace))
}
