package kube

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// Every block that overlaps another is found under one of its values.
func TestOverlapping(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func(six bool) netip.Prefix {
		a := netip.AddrFrom4([4]byte{10, byte(r.UintN(2)), byte(r.UintN(4)), byte(r.UintN(256))})
		length := r.IntN(33)
		if six {
			a = netip.AddrFrom16([16]byte{0xfd, byte(r.UintN(2)), 15: byte(r.UintN(4))})
			length = r.IntN(129)
		}

		return netip.PrefixFrom(a, length).Masked()
	}
	overlaps := 0
	for range 20000 {
		six := r.IntN(2) == 0
		a, b := random(six), random(six)
		values := blockValues(&v1alpha1.Subnet{Spec: v1alpha1.SubnetSpec{PoolRef: "p", CIDR: a.String()}})
		found := slices.ContainsFunc(Overlapping(b), func(v string) bool { return slices.Contains(values, v) })
		if a.Overlaps(b) {
			overlaps++
			if !found {
				t.Fatalf("%s is not found for %s", a, b)
			}
		}
	}
	if overlaps < 1000 {
		t.Errorf("only %d pairs overlapped: this test shows little", overlaps)
	}
}

// A Subnet that is alone under a value costs a map; see step.
func TestBlockValuesAreShared(t *testing.T) {
	values := map[string]int{}
	for i := range 256 {
		for _, v := range blockValues(&v1alpha1.Subnet{Spec: v1alpha1.SubnetSpec{PoolRef: "p", CIDR: fmt.Sprintf("10.0.%d.0/24", i)}}) {
			values[v]++
		}
	}
	for v, n := range values {
		if n < 16 {
			t.Errorf("%s is for %d of 256", v, n)
		}
	}
	if n := len(Overlapping(netip.MustParsePrefix("fd00::/64"))); n > 20 {
		t.Errorf("to look for a /64 takes %d lists", n)
	}
}

// The delay grows by half from 50 ms to 30 s, per item, until it succeeds.
func TestLimiter(t *testing.T) {
	g := newGradual(backoffMax)
	item, other := reconcile.Request{}, reconcile.Request{}
	other.Name = "other"
	var got []string
	for range 4 {
		got = append(got, g.When(item).String())
	}
	if want := "[50ms 75ms 112.5ms 168.75ms]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if d := g.When(other); d != 50*time.Millisecond {
		t.Errorf("another item waits %s", d)
	}
	for range 1000 {
		g.When(item)
	}
	if d := g.When(item); d != 30*time.Second {
		t.Errorf("it waits %s in the end", d)
	}
	g.Forget(item)
	if d := g.When(item); d != 50*time.Millisecond || g.NumRequeues(item) != 1 {
		t.Errorf("after a success it waits %s", d)
	}
}

// The limiter of the queue lets 100 retries begin at once, over all pools, and then
// ten each second.
func TestLimiterBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter()
		item := func(i int) reconcile.Request {
			return reconcile.Request{NamespacedName: types.NamespacedName{Name: strconv.Itoa(i)}}
		}
		for i := range 100 {
			if d := l.When(item(i)); d != 50*time.Millisecond {
				t.Fatalf("retry %d waits %s, want 50ms", i+1, d)
			}
		}
		for i, want := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond} {
			if d := l.When(item(100 + i)); d != want {
				t.Errorf("retry %d waits %s, want %s", 101+i, d, want)
			}
		}
	})
}

// A pool is found by what it has and by what it wants.
func TestPoolValues(t *testing.T) {
	p := &v1alpha1.SubnetPool{}
	p.Spec.CIDR, p.Status.CIDR = "10.1.0.0/16", "fd00::/48"
	values := poolValues(p)
	cases := map[string]struct {
		reason string
		block  string
		want   bool
	}{
		"Wanted": {"Another pool may want the same.", "10.1.2.0/24", true},
		"Open":   {"Another pool must not get it.", "fd00::/56", true},
		"Above":  {"A larger block overlaps it.", "10.0.0.0/8", true},
		"Far":    {"Pools far away are not found.", "192.168.0.0/16", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found := slices.ContainsFunc(Overlapping(netip.MustParsePrefix(tc.block)), func(v string) bool { return slices.Contains(values, v) })
			if found != tc.want {
				t.Errorf("%s\n%s is found: %v", tc.reason, tc.block, found)
			}
		})
	}
	if p.Spec.CIDR = "ten"; len(poolValues(p)) == 0 {
		t.Error("a pool whose wanted range is invalid loses its open range")
	}
}

// A Subnet is indexed by its claim or by its child pool only if it has one.
func TestOptionalValues(t *testing.T) {
	s := &v1alpha1.Subnet{Spec: v1alpha1.SubnetSpec{PoolRef: "p", ClusterID: "c"}}
	if v := append(clusterValues(s), backsValues(s)...); len(v) != 0 {
		t.Errorf("a Subnet without claim and child pool is indexed under %v", v)
	}
	s.Spec.ClaimRef = &v1alpha1.ClaimReference{Name: "x"}
	s.Spec.Backs, s.Status.PoolUID = &v1alpha1.PoolReference{Name: "child"}, "u"
	if v := clusterValues(s); !slices.Equal(v, []string{bucket("p", "c")}) || len(v[0]) != 3 {
		t.Errorf("a claim's Subnet is indexed under %v", v)
	}
	if v := backsValues(s); !slices.Equal(v, []string{"name/child", "uid/u"}) {
		t.Errorf("a backing Subnet is indexed under %v", v)
	}
}
