package poolstatus

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/ledger"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/ipamcache"
)

// genericPatch is the twin of patchOf: it encodes both pools and compares the results.
func genericPatch(t *testing.T, before, after *v1alpha1.SubnetPool) []byte {
	t.Helper()
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	base := before.DeepCopy()
	if base.Status.ObservedGeneration == 0 {
		base.Status.AllocatedCount, base.Status.UtilizationPercent, base.Status.FragmentationPercent = -1, -1, -1
	}
	data, err := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}).Data(after)
	if err != nil {
		t.Fatal(err)
	}

	return data
}

// randomStatus returns a status with few different values, so that two of them have
// much in common.
func randomStatus(r *rand.Rand) v1alpha1.SubnetPoolStatus {
	pick := func(values ...string) string { return values[r.IntN(len(values))] }
	s := v1alpha1.SubnetPoolStatus{
		ObservedGeneration: r.Int64N(3), CIDR: pick("", "10.0.0.0/8", "10.0.0.0/9"), UID: types.UID(pick("", "a", "b")), Parent: pick("", "p", "<&>"),
		Lost: r.Int64N(3), AllocatedCount: r.Int64N(3), DelegatedCount: r.Int64N(3),
		UtilizationPercent: r.Int32N(3), FragmentationPercent: r.Int32N(3),
		FreeCountBySize: randomMap(r, r.Int64N), AllocatableCountBySize: randomMap(r, r.Int64N),
		AllocatedCIDRs: randomMap(r, func(int64) string { return pick("", "one", "two") }),
	}
	for _, kind := range []string{"Ready", "Exhausted"} {
		if r.IntN(3) > 0 {
			s.Conditions = append(s.Conditions, metav1.Condition{
				Type: kind, Status: metav1.ConditionStatus(pick("True", "False")), Reason: pick("A", "B"), Message: pick("", "m"),
				ObservedGeneration: r.Int64N(2), LastTransitionTime: metav1.Unix(r.Int64N(2), 0),
			})
		}
	}

	return s
}

func randomMap[V any](r *rand.Rand, value func(int64) V) map[string]V {
	if r.IntN(4) == 0 {
		return nil
	}
	m := map[string]V{}
	for range r.IntN(4) {
		m[fmt.Sprintf("10.0.%d.0/24", r.IntN(4))] = value(3)
	}

	return m
}

func TestPatchOf(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var patched, same int
	for range 20000 {
		before := &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Name: "p", ResourceVersion: "7"}, Status: randomStatus(r)}
		after := before.DeepCopy()
		// Some have nothing in common, some differ in one field, or in none.
		switch other := randomStatus(r); r.IntN(5) {
		case 0:
			after.Status = other
		case 1:
			after.Status.AllocatedCIDRs = other.AllocatedCIDRs
		case 2:
			after.Status.Conditions = other.Conditions
		case 3:
			after.Status.AllocatedCount, after.Status.FreeCountBySize = other.AllocatedCount, other.FreeCountBySize
		}
		got, err := patchOf(before.ResourceVersion, &before.Status, &after.Status)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(decoded(t, genericPatch(t, before, after)), decoded(t, got)); diff != "" {
			t.Fatalf("%+v\nto %+v\n(-generic +got):\n%s", before.Status, after.Status, diff)
		}
		if got == nil {
			same++

			continue
		}
		patched++
		if err := merge(before, got); err != nil {
			t.Fatal(err)
		}
		if !equality.Semantic.DeepEqual(before.Status, after.Status) {
			t.Fatalf("a patch leads to another status\n%s", cmp.Diff(after.Status, before.Status))
		}
	}
	if patched < 1000 || same < 1000 {
		t.Errorf("%d patches and %d statuses that are the same: this proves nothing", patched, same)
	}
}

func decoded(t *testing.T, data []byte) any {
	t.Helper()
	if data == nil {
		return nil
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}

	return v
}

func TestListed(t *testing.T) {
	block := func(cidr, owner string) ledger.Block {
		return ledger.Block{Prefix: netip.MustParsePrefix(cidr), Owner: owner}
	}
	a, b := block("10.0.0.0/24", "a"), block("fd00::/64", "b")
	before := map[string]string{"10.0.0.0/24": "a", "fd00::/64": "b"}
	cases := map[string]struct {
		reason string
		blocks []ledger.Block
		want   map[string]string
	}{
		"Same":  {"Nothing changed.", []ledger.Block{a, b}, before},
		"Less":  {"A block was released.", []ledger.Block{a}, map[string]string{"10.0.0.0/24": "a"}},
		"More":  {"A block was allocated.", []ledger.Block{a, block("10.0.1.0/24", "c"), b}, map[string]string{"10.0.0.0/24": "a", "10.0.1.0/24": "c", "fd00::/64": "b"}},
		"Owner": {"A block has another owner.", []ledger.Block{block("10.0.0.0/24", "z"), b}, map[string]string{"10.0.0.0/24": "z", "fd00::/64": "b"}},
		"Other": {"As many blocks, but not the same.", []ledger.Block{a, block("fd01::/64", "b")}, map[string]string{"10.0.0.0/24": "a", "fd01::/64": "b"}},
		"None":  {"All blocks were released.", nil, map[string]string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, listed(tc.blocks, before)); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			if len(before) != 2 {
				t.Errorf("%s\nthe map from before was changed", tc.reason)
			}
		})
	}
}

// An answering client answers to a patch with what the API server would send: a pool
// for a pool, and metadata for metadata.
type answering struct {
	client.Client

	pool, metadata []byte
}

func (a *answering) Status() client.SubResourceWriter { return &answeringStatus{a: a} }

type answeringStatus struct {
	client.SubResourceWriter

	a *answering
}

func (s *answeringStatus) Patch(_ context.Context, o client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	if _, err := patch.Data(o); err != nil {
		return err
	}
	if _, ok := o.(*metav1.PartialObjectMetadata); ok {
		return json.Unmarshal(s.a.metadata, o)
	}

	return json.Unmarshal(s.a.pool, o)
}

// BenchmarkWrite writes the status of a pool for a Subnet that is not among the listed
// ones. What it costs must hardly depend on how many are listed.
func BenchmarkWrite(b *testing.B) {
	for _, n := range []int{100, ipamrules.MaxListedBlocks} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			p := open(pool("p", "10.0.0.0/8", ""))
			key := client.ObjectKeyFromObject(&p)
			pools := ipamcache.NewPools()
			pools.SetRange(key, netip.MustParsePrefix(p.Spec.CIDR))
			for i := range n {
				prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
				pools.Put(key, ledger.Block{ID: strconv.Itoa(i), Name: fmt.Sprintf("s-%d", i), Owner: fmt.Sprintf("c-%d", i), Prefix: prefix})
			}
			c := &answering{}
			r := New(c, c, pools, ipamcache.NewFeed(pools, func(string) {}), NewMetrics(prometheus.NewRegistry()), NewObstacles())
			f, _ := r.figures(&p)
			p.Status = ipamrules.PoolStatus(&p, f, metav1.NewTime(time.Unix(1, 0)))
			p.Status.AllocatedCount++ // one that is gone
			c.pool, _ = json.Marshal(&p)
			c.metadata, _ = json.Marshal(&metav1.PartialObjectMetadata{ObjectMeta: p.ObjectMeta})
			b.ReportAllocs()
			for b.Loop() {
				if err := r.write(b.Context(), &p, ipamrules.PoolDecision{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
