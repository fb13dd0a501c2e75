package ipam

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"

	"github.com/arbor-control/arbor/bench/harness"
	"github.com/arbor-control/arbor/engine/cidr"
)

// Addresses measures the free-space engine of a pool at rising numbers of taken
// blocks of mixed sizes, scattered by releasing every third.
func Addresses(b *harness.Board) error {
	families := []struct {
		name    string
		pool    netip.Prefix
		lengths []int
	}{
		{"ipv4", netip.MustParsePrefix("10.0.0.0/8"), []int{27, 28, 29}},
		{"ipv6", netip.MustParsePrefix("fd00::/32"), []int{62, 63, 64}},
	}
	for _, f := range families {
		took := map[int]float64{}
		for _, size := range []int{1000, 10000, 100000, 300000} {
			p, err := scattered(f.pool, f.lengths, size)
			if err != nil {
				return err
			}
			took[size] = perRound(p, f.lengths)
			b.Show(harness.Result{Name: fmt.Sprintf("addresses/%s/%d", f.name, size), Value: took[size]})
		}
		p, err := scattered(f.pool, f.lengths, 300000)
		if err != nil {
			return err
		}
		var sum uint64 // what nobody reads would not be computed
		counts := harness.Fastest(func() {
			for _, n := range p.FreeCounts() {
				sum ^= n.Uint64()
			}
		})
		if sum == 1 {
			return errors.New("this cannot be, and keeps the sum alive")
		}
		b.Show(
			harness.Result{Name: "addresses/" + f.name + "/ratio-300000-to-1000", Value: took[300000] / took[1000]},
			harness.Result{Name: "addresses/" + f.name + "/all-counts", Value: counts.Seconds() * 1e6})
	}

	return nil
}

// scattered returns a pool of which size blocks are taken, with gaps.
func scattered(prefix netip.Prefix, lengths []int, size int) (*cidr.Pool, error) {
	p, err := cidr.New(prefix)
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(1, uint64(size)))
	var taken []netip.Prefix
	for p.Len() < size {
		b, err := p.Allocate(lengths[r.IntN(len(lengths))], cidr.FirstFit)
		if err != nil {
			return nil, err
		}
		if taken = append(taken, b); r.IntN(3) == 0 {
			i := r.IntN(len(taken))
			if err := p.Release(taken[i]); err != nil {
				return nil, err
			}
			taken[i] = taken[len(taken)-1]
			taken = taken[:len(taken)-1]
		}
	}

	return p, nil
}

// perRound is the time, in microseconds, to take a block of each length by each
// strategy and give it back.
func perRound(p *cidr.Pool, lengths []int) float64 {
	took := harness.Fastest(func() {
		for _, strategy := range []cidr.Strategy{cidr.FirstFit, cidr.BestFit} {
			for _, length := range lengths {
				if b, err := p.Allocate(length, strategy); err == nil {
					_ = p.Release(b)
				}
			}
		}
	})

	return took.Seconds() * 1e6
}
