package cidr_test

import (
	"math/big"
	"net/netip"
	"slices"

	"github.com/arbor-control/arbor/engine/cidr"
)

// A twin is the simplest implementation of a pool: a sorted list of what is taken. Every method
// reads all of it.
type twin struct {
	pool  netip.Prefix
	taken []netip.Prefix
}

func (w *twin) clone() *twin { return &twin{pool: w.pool, taken: slices.Clone(w.taken)} }

// isSmall reports whether all blocks of all lengths can be enumerated.
func (w *twin) isSmall() bool { return w.pool.Addr().BitLen()-w.pool.Bits() <= 8 }

func halves(p netip.Prefix) (lower, upper netip.Prefix) {
	bytes := p.Addr().AsSlice()
	bytes[p.Bits()/8] |= 0x80 >> (p.Bits() % 8)
	address, _ := netip.AddrFromSlice(bytes)

	return netip.PrefixFrom(p.Addr(), p.Bits()+1), netip.PrefixFrom(address, p.Bits()+1)
}

// blocks are all blocks of a length inside of a prefix.
func blocks(p netip.Prefix, bits int) []netip.Prefix {
	if p.Bits() == bits {
		return []netip.Prefix{p}
	}
	lower, upper := halves(p)

	return append(blocks(lower, bits), blocks(upper, bits)...)
}

// overlapping is the part of a sorted list that overlaps with a prefix.
func overlapping(all []netip.Prefix, with netip.Prefix) []netip.Prefix {
	for len(all) > 0 && !all[0].Overlaps(with) {
		all = all[1:]
	}
	for len(all) > 0 && !all[len(all)-1].Overlaps(with) {
		all = all[:len(all)-1]
	}

	return all
}

// remainder is what is left of a prefix, as few prefixes as possible.
func remainder(of netip.Prefix, taken []netip.Prefix) []netip.Prefix {
	switch {
	case len(taken) == 0:
		return []netip.Prefix{of}
	case taken[0].Bits() <= of.Bits():
		return nil
	}
	lower, upper := halves(of)

	return append(remainder(lower, overlapping(taken, lower)), remainder(upper, overlapping(taken, upper))...)
}

func (w *twin) free() []netip.Prefix { return remainder(w.pool, w.taken) }

// misfit is the error for a prefix that cannot be a block.
func (w *twin) misfit(b netip.Prefix) error {
	var reason cidr.Reason
	switch {
	case !b.IsValid():
		reason = cidr.Malformed
	case b.Addr().Is4In6() && b.Bits() >= 96 && w.pool.Addr().Is4():
		reason = cidr.Mapped
	case b.Addr().Is4() != w.pool.Addr().Is4():
		reason = cidr.OtherFamily
	case b.Masked() != b:
		reason = cidr.Unmasked
	case b.Bits() < w.pool.Bits() || !b.Overlaps(w.pool):
		reason = cidr.Outside
	default:
		return nil
	}

	return &cidr.Misfit{Reason: reason, Pool: w.pool, Block: b}
}

func (w *twin) overlaps(b netip.Prefix) (netip.Prefix, bool) {
	for _, p := range w.taken {
		if p.Overlaps(b) {
			return p, true
		}
	}

	return netip.Prefix{}, false
}

func (w *twin) contains(b netip.Prefix) bool { return slices.Contains(w.taken, b) }

func (w *twin) allocateExact(b netip.Prefix) error {
	if err := w.misfit(b); err != nil {
		return err
	}
	if with, ok := w.overlaps(b); ok {
		return &cidr.Overlap{Pool: w.pool, Block: b, With: with}
	}
	w.taken = append(w.taken, b)
	slices.SortFunc(w.taken, netip.Prefix.Compare)

	return nil
}

func (w *twin) release(b netip.Prefix) error {
	if err := w.misfit(b); err != nil {
		return err
	}
	if !w.contains(b) {
		with, _ := w.overlaps(b)

		return &cidr.NotTaken{Pool: w.pool, Block: b, With: with}
	}
	w.taken = slices.DeleteFunc(w.taken, func(p netip.Prefix) bool { return p == b })

	return nil
}

func (w *twin) allocate(bits int, s cidr.Strategy) (netip.Prefix, error) {
	if bits < w.pool.Bits() || bits > w.pool.Addr().BitLen() {
		return netip.Prefix{}, &cidr.Misfit{Reason: cidr.LengthOutOfRange, Pool: w.pool, Bits: bits}
	}
	choose := w.firstFit
	if s == cidr.BestFit {
		choose = w.bestFit
	}
	b, ok := choose(bits)
	if !ok {
		return netip.Prefix{}, &cidr.Exhausted{Pool: w.pool, Bits: bits, Largest: w.largest()}
	}

	return b, w.allocateExact(b)
}

func (w *twin) firstFit(bits int) (netip.Prefix, bool) {
	if w.isSmall() {
		for _, b := range blocks(w.pool, bits) {
			if _, taken := w.overlaps(b); !taken {
				return b, true
			}
		}

		return netip.Prefix{}, false
	}
	for _, f := range w.free() {
		if f.Bits() <= bits {
			return netip.PrefixFrom(f.Addr(), bits), true
		}
	}

	return netip.Prefix{}, false
}

func (w *twin) bestFit(bits int) (netip.Prefix, bool) {
	best := netip.Prefix{}
	for _, f := range w.free() {
		if f.Bits() <= bits && (!best.IsValid() || f.Bits() > best.Bits()) {
			best = f
		}
	}

	return netip.PrefixFrom(best.Addr(), bits), best.IsValid()
}

func (w *twin) largest() int {
	largest := -1
	for _, f := range w.free() {
		if largest < 0 || f.Bits() < largest {
			largest = f.Bits()
		}
	}

	return largest
}

// counts are how many blocks of each length are wholly free. Where there are too many blocks to
// enumerate, it is computed from the maximal free ones.
func (w *twin) counts(free []netip.Prefix) []string {
	var all []string
	sum := new(big.Int)
	for bits := w.pool.Bits(); bits <= w.pool.Addr().BitLen(); bits++ {
		candidates := free
		if w.isSmall() {
			sum.SetInt64(0)
			candidates = blocks(w.pool, bits)
		}
		sum.Lsh(sum, 1)
		for _, b := range candidates {
			if b.Bits() != bits {
				continue
			}
			if _, taken := w.overlaps(b); !taken {
				sum.Add(sum, big.NewInt(1))
			}
		}
		all = append(all, sum.String())
	}

	return all
}

func pow(n int) *big.Int { return new(big.Int).Lsh(big.NewInt(1), uint(n)) }

func ratio(a, b *big.Int) float64 {
	f, _ := new(big.Rat).SetFrac(a, b).Float64()

	return f
}

// A view is all that can be seen of a pool without changing it.
type view struct {
	Prefix         netip.Prefix
	Taken, Free    []netip.Prefix
	Len            int
	Counts         []string
	Largest        int
	IsFree         bool
	FreeAddresses  string
	TakenAddresses string
	Utilization    float64
	Fragmentation  float64
}

func (w *twin) view() view {
	width, free := w.pool.Addr().BitLen(), w.free()
	all, idle, busy := pow(width-w.pool.Bits()), new(big.Int), new(big.Int)
	for _, f := range free {
		idle.Add(idle, pow(width-f.Bits()))
	}
	for _, b := range w.taken {
		busy.Add(busy, pow(width-b.Bits()))
	}
	v := view{
		Prefix: w.pool, Taken: w.taken, Free: free, Len: len(w.taken), Counts: w.counts(free),
		Largest: w.largest(), IsFree: len(free) > 0,
		FreeAddresses: idle.String(), TakenAddresses: busy.String(), Utilization: ratio(busy, all),
	}
	if v.IsFree {
		v.Fragmentation = ratio(new(big.Int).Sub(idle, pow(width-v.Largest)), idle)
	}

	return v
}

func viewOf(p *cidr.Pool) view {
	v := view{
		Prefix: p.Prefix(), Taken: slices.Collect(p.Taken()), Free: slices.Collect(p.Free()), Len: p.Len(),
		FreeAddresses: p.FreeAddresses().String(), TakenAddresses: p.TakenAddresses().String(),
		Utilization: p.Utilization(), Fragmentation: p.Fragmentation(),
	}
	v.Largest, v.IsFree = p.Largest()
	for bits, n := range p.FreeCounts() {
		if bits != p.Prefix().Bits()+len(v.Counts) || n != p.FreeCount(bits) {
			panic("FreeCounts and FreeCount do not agree")
		}
		v.Counts = append(v.Counts, n.String())
	}

	return v
}
