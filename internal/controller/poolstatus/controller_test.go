package poolstatus

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/view"
)

// A Subnet comes and goes before the cache has seen the status that was written
// in between. What the cache has looks right, and what is stored is not. A real
// server cannot be made to lag at will, so the cache is one that never learns.
func TestLaggingCache(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	pool := &v1alpha1.SubnetPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Generation: 1},
		Spec:       v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/16"},
	}
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(pool).WithStatusSubresource(pool).Build()
	key := client.ObjectKeyFromObject(pool)
	pools := view.NewPools()
	pools.SetPool(key, netip.MustParsePrefix(pool.Spec.CIDR))
	clock := time.Unix(1, 0)
	r := &Reconciler{
		client: server, reader: server, view: pools, feed: view.NewFeed(pools, func(string) {}),
		metrics: NewMetrics(prometheus.NewRegistry()), now: func() time.Time { return clock },
	}
	look := func() {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
	}
	look()
	asCached := &v1alpha1.SubnetPool{}
	if err := server.Get(t.Context(), key, asCached); err != nil {
		t.Fatal(err)
	}

	pools.Put(key, view.Block{Name: "s", Prefix: netip.MustParsePrefix("10.0.0.0/24")})
	look()
	r.client = stuck{server, asCached}
	pools.Drop(key, "s")
	look()

	got := &v1alpha1.SubnetPool{}
	if err := server.Get(t.Context(), key, got); err != nil {
		t.Fatal(err)
	}
	if got.Status.AllocatedCount != 0 {
		t.Errorf("%d Subnets are counted, and there is none", got.Status.AllocatedCount)
	}
}

// stuck is a client whose cache has one pool as it was.
type stuck struct {
	client.Client

	pool *v1alpha1.SubnetPool
}

func (s stuck) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	s.pool.DeepCopyInto(o.(*v1alpha1.SubnetPool))

	return nil
}
