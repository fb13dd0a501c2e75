package kube

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// Whatever overlaps a block is found under one of its values, and nothing of
// another pool is.
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
		found := slices.ContainsFunc(Overlapping("p", b), func(v string) bool { return slices.Contains(values, v) })
		if a.Overlaps(b) {
			overlaps++
			if !found {
				t.Fatalf("%s is not found for %s", a, b)
			}
		}
		if slices.ContainsFunc(Overlapping("q", b), func(v string) bool { return slices.Contains(values, v) }) {
			t.Fatalf("%s of pool p is found for pool q", a)
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
	if n := len(Overlapping("p", netip.MustParsePrefix("fd00::/64"))); n > 20 {
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
	if NewLimiter().When(item) != 50*time.Millisecond {
		t.Error("the limiter of the queue does not begin at 50 ms")
	}
}
