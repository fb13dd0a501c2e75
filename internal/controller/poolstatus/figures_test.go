package poolstatus

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/ledger"
	"github.com/arbor-control/arbor/internal/ipamcache"
)

// A writable is a store whose pools can be given another status.
type writable struct {
	cached

	status statusWriter
}

func (w *writable) Status() client.SubResourceWriter { return &w.status }

// statusWriter changes the pools of a store at once.
type statusWriter struct {
	client.SubResourceWriter

	store   *store
	version int
}

func (w *statusWriter) Patch(_ context.Context, o client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	for i := range w.store.pools {
		if p := &w.store.pools[i]; p.Name == o.GetName() {
			if err := merge(p, data); err != nil {
				return err
			}
			w.version++
			p.ResourceVersion = strconv.Itoa(w.version)
			o.SetResourceVersion(p.ResourceVersion)
		}
	}

	return nil
}

// merge applies a JSON merge patch to a pool.
func merge(p *v1alpha1.SubnetPool, patch []byte) error {
	before, err := json.Marshal(p)
	if err != nil {
		return err
	}
	var object, change map[string]any
	if err := errors.Join(json.Unmarshal(before, &object), json.Unmarshal(patch, &change)); err != nil {
		return err
	}
	after, err := json.Marshal(merged(object, change))
	if err != nil {
		return err
	}
	*p = v1alpha1.SubnetPool{}

	return json.Unmarshal(after, p)
}

func merged(object, patch map[string]any) map[string]any {
	if object == nil {
		object = map[string]any{}
	}
	for key, value := range patch {
		if part, ok := value.(map[string]any); ok {
			inner, _ := object[key].(map[string]any)
			object[key] = merged(inner, part)
		} else if value == nil {
			delete(object, key)
		} else {
			object[key] = value
		}
	}

	return object
}

// H19: the view can be behind the cache. Then it counts another range than the pool has, and its
// figures must not be written under the pool's generation, as if they were those of the new range.
// They are written once the view has the range.
func TestFiguresOfFormerRange(t *testing.T) {
	const former, size = "10.0.0.0/16", "24"
	cases := map[string]struct {
		reason, spec string
		former       string // the view has it at first, "" for nothing
		free         int64  // blocks of the size, of the new range
	}{
		"Grown":  {"The range is twice as large.", "10.0.0.0/15", former, 511},
		"Shrunk": {"The range is half as large: the status would have more blocks than the pool.", "10.0.0.0/17", former, 127},
		"Unseen": {"The view has no range of the pool.", "10.0.0.0/15", "", 511},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := open(pool("p", former, ""))
			p.Status.ObservedGeneration, p.Status.AllocatedCount = 1, 1
			p.Status.FreeCountBySize = map[string]int64{size: 255}
			p.Spec.CIDR, p.Generation, p.ResourceVersion = tc.spec, 2, "2"
			p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready", ObservedGeneration: 1}}
			s := newStore(t, []v1alpha1.SubnetPool{p}, []v1alpha1.Subnet{taken("s", "p", "10.0.0.0/24")})
			// The API server answers by the selectable field.
			s.indexes["spec.poolRef"] = func(o client.Object) []string { return []string{o.(*v1alpha1.Subnet).Spec.PoolRef} }
			w := &writable{cached: cached{store: s}, status: statusWriter{store: s, version: 2}}
			pools := ipamcache.NewPools()
			r := New(w, w, pools, ipamcache.NewFeed(pools, func(string) {}), NewMetrics(prometheus.NewRegistry()), NewObstacles())
			r.now = func() time.Time { return time.Unix(1, 0) }
			key := client.ObjectKeyFromObject(&p)
			reconciled := func() v1alpha1.SubnetPoolStatus {
				t.Helper()
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
					t.Fatal(err)
				}

				return s.pools[0].Status
			}

			if tc.former != "" {
				pools.SetRange(key, netip.MustParsePrefix(tc.former))
			}
			pools.Put(key, ledger.Block{ID: "s", Name: "s", Owner: "s", Prefix: netip.MustParsePrefix("10.0.0.0/24")})
			got := reconciled()
			if got.CIDR != tc.spec {
				t.Errorf("%s\nthe range is %s, want %s: it does not depend on the view", tc.reason, got.CIDR, tc.spec)
			}
			if got.ObservedGeneration != 1 || got.FreeCountBySize[size] != 255 {
				t.Errorf("%s\ngot %d free blocks of generation %d from a view of another range, want 255 of generation 1",
					tc.reason, got.FreeCountBySize[size], got.ObservedGeneration)
			}

			pools.SetRange(key, netip.MustParsePrefix(tc.spec))
			got = reconciled()
			if got.ObservedGeneration != 2 || got.FreeCountBySize[size] != tc.free || got.AllocatedCount != 1 {
				t.Errorf("%s\ngot %d free blocks and %d Subnets of generation %d, want %d and 1 of generation 2",
					tc.reason, got.FreeCountBySize[size], got.AllocatedCount, got.ObservedGeneration, tc.free)
			}
		})
	}
}
