package cidr_test

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/engine/cidr"
)

// TestReleaseOfEverything fills pools to the last address with blocks of all
// sizes and gives them back in another order.
func TestReleaseOfEverything(t *testing.T) {
	for _, prefix := range []string{"10.0.0.0/18", "fd00::/114"} {
		r := rand.New(rand.NewPCG(5, 6))
		p := mustPool(t, prefix)
		empty, width := viewOf(p), p.Prefix().Addr().BitLen()
		var taken []netip.Prefix
		for !p.FreeAddresses().IsZero() {
			b, err := p.Allocate(width-r.IntN(4), cidr.Strategy(r.IntN(2)))
			if err != nil {
				continue
			}
			taken = append(taken, b)
		}
		if p.Len() != len(taken) || p.Slots() >= len(taken)+64 {
			t.Errorf("%s: %d blocks, %d of them known, memory for %d", prefix, len(taken), p.Len(), p.Slots())
		}
		r.Shuffle(len(taken), func(i, j int) { taken[i], taken[j] = taken[j], taken[i] })
		for i, b := range taken {
			if err := p.Release(b); err != nil {
				t.Fatal(err)
			}
			left := len(taken) - i - 1
			if p.Len() != left || p.Slots() >= left+64 || p.Contains(b) {
				t.Fatalf("%s: %d blocks, want %d, memory for %d", prefix, p.Len(), left, p.Slots())
			}
		}
		if diff := cmp.Diff(empty, viewOf(p), options); diff != "" || p.Slots() != 0 {
			t.Errorf("%s: memory for %d blocks, -before, +after:\n%s", prefix, p.Slots(), diff)
		}
	}
}

func TestCloneSharesUntilWritten(t *testing.T) {
	p := mustPool(t, "10.0.0.0/16")
	for range 1024 {
		if _, err := p.Allocate(28, cidr.FirstFit); err != nil {
			t.Fatal(err)
		}
	}
	if p.Owned() != 1024 {
		t.Fatalf("without a clone the pool owns %d of 1024 slots", p.Owned())
	}
	clone, before := p.Clone(), viewOf(p)
	if p.Owned() != 0 || clone.Owned() != 0 {
		t.Errorf("right after cloning, %d and %d slots are not shared", p.Owned(), clone.Owned())
	}
	if err := clone.Release(netip.MustParsePrefix("10.0.8.0/28")); err != nil {
		t.Fatal(err)
	}
	if p.Owned() != 0 || clone.Owned() == 0 || clone.Owned() > 8*32 {
		t.Errorf("after one release from the clone, %d and %d slots are not shared", p.Owned(), clone.Owned())
	}
	if diff := cmp.Diff(before, viewOf(p), options); diff != "" {
		t.Errorf("the origin noticed: -before, +after:\n%s", diff)
	}
	after := viewOf(clone)
	for b := range p.Clone().Taken() {
		if err := p.Release(b); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(after, viewOf(clone), options); diff != "" {
		t.Errorf("the clone noticed: -before, +after:\n%s", diff)
	}
}

// TestClonesAreIndependent is for the race detector: a pool that is not written to is cloned and
// read by many goroutines, and each writes to its own clone.
func TestClonesAreIndependent(t *testing.T) {
	p := mustPool(t, "fd00::/64")
	for range 500 {
		if _, err := p.Allocate(80, cidr.BestFit); err != nil {
			t.Fatal(err)
		}
	}
	before := viewOf(p)
	var wg sync.WaitGroup
	for seed := range uint64(8) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			mine := p.Clone()
			for b := range p.Taken() {
				if r.IntN(2) == 0 {
					continue
				}
				if err := mine.Release(b); err != nil {
					t.Error(err)
				}
			}
			var again *cidr.Pool
			for range 300 {
				again = mine.Clone()
				if _, err := mine.Allocate(72+r.IntN(30), cidr.FirstFit); err != nil {
					t.Error(err)
				}
			}
			if again.Len() != mine.Len()-1 {
				t.Errorf("the last clone has %d blocks, its origin %d", again.Len(), mine.Len())
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(before, viewOf(p), options); diff != "" {
		t.Errorf("the origin noticed: -before, +after:\n%s", diff)
	}
}
