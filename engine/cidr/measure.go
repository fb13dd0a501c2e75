package cidr

import "iter"

// FreeCount is the number of blocks of the length that could be allocated if all free space were
// allocated at that length. It is zero for lengths that blocks of this pool cannot have.
func (p *Pool) FreeCount(length int) Count {
	if length < p.bits || length > p.max {
		return Count{}
	}
	var n Count
	for l := p.bits; l <= length; l++ {
		n = n.double(p.maximal[l])
	}

	return n
}

// FreeCounts yields [Pool.FreeCount] for every length from that of the pool to
// that of a single address. They are those of the moment at which the loop
// begins, so the loop may write to the pool.
func (p *Pool) FreeCounts() iter.Seq2[int, Count] {
	return func(yield func(int, Count) bool) {
		var n Count
		maximal := p.maximal
		for l := p.bits; l <= p.max; l++ {
			n = n.double(maximal[l])
			if !yield(l, n) {
				return
			}
		}
	}
}

// Largest is the length of the largest free block. It is false, and the
// length -1, if nothing is free.
func (p *Pool) Largest() (length int, ok bool) {
	if p.root == nothing {
		return p.bits, true
	}
	free := p.hanging(p.root, p.bits)
	if free.isZero() {
		return -1, false
	}

	return free.first() + 1, true
}

// FreeAddresses is the number of addresses that are not taken.
func (p *Pool) FreeAddresses() Count { return p.FreeCount(p.max) }

// TakenAddresses is the number of addresses in taken blocks.
func (p *Pool) TakenAddresses() Count {
	return power(p.max - p.bits).minus(p.FreeAddresses())
}

// Utilization is the part of the pool's addresses that is taken, 0 to 1. It is
// rounded: ask FreeAddresses whether a pool is full.
func (p *Pool) Utilization() float64 {
	return p.TakenAddresses().Float64() / power(p.max-p.bits).Float64()
}

// Fragmentation is the part of the free addresses that is not in the largest
// free block:
//
//	1 - addresses of the largest free block / free addresses
//
// It is 0 if all free space is one block, or if there is none, and comes close
// to 1 if it is scattered. Free space that no single prefix can hold counts as
// scattered even where it is in one piece: after the first half of the first
// half was taken, it is 1/3.
func (p *Pool) Fragmentation() float64 {
	largest, ok := p.Largest()
	if !ok {
		return 0
	}

	return 1 - power(p.max-largest).Float64()/p.FreeAddresses().Float64()
}
