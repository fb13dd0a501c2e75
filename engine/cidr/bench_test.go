package cidr_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"

	"github.com/arbor-control/arbor/engine/cidr"
)

// scattered takes n blocks of four lengths at random places.
func scattered(b *testing.B, prefix string, shortest, n int) (*cidr.Pool, []netip.Prefix) {
	b.Helper()
	p, r := mustPool(b, prefix), rand.New(rand.NewPCG(1, 2))
	all := make([]netip.Prefix, 0, n)
	for p.Len() < n {
		block := netip.PrefixFrom(address(p.Prefix(), r.IntN), shortest+r.IntN(4)).Masked()
		if p.AllocateExact(block) == nil {
			all = append(all, block)
		}
	}

	return p, all
}

func benchmark(b *testing.B, run func(*testing.B, *cidr.Pool, []netip.Prefix)) {
	b.Helper()
	for _, family := range []struct {
		name, prefix string
		shortest     int
	}{{"v4", "10.0.0.0/8", 26}, {"v6", "fd00::/32", 61}} {
		for _, n := range []int{750, 10_000, 300_000} {
			b.Run(fmt.Sprintf("%s/%d", family.name, n), func(b *testing.B) {
				pool, blocks := scattered(b, family.prefix, family.shortest, n)
				b.ReportAllocs()
				run(b, pool, blocks)
			})
		}
	}
}

// allocateAndRelease is two operations.
func allocateAndRelease(b *testing.B, strategy cidr.Strategy) {
	b.Helper()
	benchmark(b, func(b *testing.B, p *cidr.Pool, blocks []netip.Prefix) {
		b.Helper()
		for i := 0; b.Loop(); i++ {
			block, err := p.Allocate(blocks[i%len(blocks)].Bits(), strategy)
			if err != nil {
				b.Fatal(err)
			}
			if err := p.Release(block); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkFirstFitAndRelease(b *testing.B) { allocateAndRelease(b, cidr.FirstFit) }
func BenchmarkBestFitAndRelease(b *testing.B)  { allocateAndRelease(b, cidr.BestFit) }

// BenchmarkReleaseAndAllocateExact is two operations, at random places.
func BenchmarkReleaseAndAllocateExact(b *testing.B) {
	benchmark(b, func(b *testing.B, p *cidr.Pool, blocks []netip.Prefix) {
		b.Helper()
		for i := 0; b.Loop(); i++ {
			block := blocks[i%len(blocks)]
			if err := p.Release(block); err != nil {
				b.Fatal(err)
			}
			if err := p.AllocateExact(block); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkOverlaps(b *testing.B) {
	benchmark(b, func(b *testing.B, p *cidr.Pool, blocks []netip.Prefix) {
		b.Helper()
		for i := 0; b.Loop(); i++ {
			if _, ok := p.Overlaps(blocks[i%len(blocks)]); !ok {
				b.Fatal("a taken block overlaps with nothing")
			}
		}
	})
}

func BenchmarkFreeCounts(b *testing.B) {
	benchmark(b, func(b *testing.B, p *cidr.Pool, _ []netip.Prefix) {
		b.Helper()
		for b.Loop() {
			lengths := 0
			for range p.FreeCounts() {
				lengths++
			}
			if lengths != p.Prefix().Addr().BitLen()-p.Prefix().Bits()+1 {
				b.Fatal("a length is missing")
			}
		}
	})
}

// BenchmarkCloneAndAllocate tries out one allocation.
func BenchmarkCloneAndAllocate(b *testing.B) {
	benchmark(b, func(b *testing.B, p *cidr.Pool, blocks []netip.Prefix) {
		b.Helper()
		for i := 0; b.Loop(); i++ {
			if _, err := p.Clone().Allocate(blocks[i%len(blocks)].Bits(), cidr.BestFit); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkMemory reports what a taken block costs when blocks are taken in
// random order.
func BenchmarkMemory(b *testing.B) {
	benchmark(b, func(b *testing.B, pool *cidr.Pool, blocks []netip.Prefix) {
		b.Helper()
		prefix := pool.Prefix().String()
		var perBlock float64
		for b.Loop() {
			before := heap()
			p := mustPool(b, prefix)
			for _, block := range blocks {
				if err := p.AllocateExact(block); err != nil {
					b.Fatal(err)
				}
			}
			perBlock = float64(heap()-before) / float64(p.Len())
		}
		b.ReportMetric(perBlock, "B/block")
	})
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)

	return m.HeapAlloc
}
