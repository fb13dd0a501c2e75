package cidr

import "net/netip"

// A Pool is a prefix of which blocks are taken, and the rest is free. Blocks
// are prefixes inside of it, of any length; no two of them overlap.
//
// It is made by [New]. Any number of goroutines may read it, and [Pool.Clone]
// it, but not while one writes to it.
type Pool struct {
	prefix netip.Prefix
	// bits is the length of the prefix, max the number of bits of an address.
	bits, max int
	root      ref
	slots     slots
	// maximal is how many maximal free blocks there are of each length.
	maximal [129]uint32
}

// New is a pool of which nothing is taken. The error is a *[Misfit]: the
// prefix is not valid, has bits behind its length, or is an IPv4 prefix in
// IPv6 clothes (::ffff:10.0.0.0/104).
func New(prefix netip.Prefix) (*Pool, error) {
	if err := checkPool(prefix); err != nil {
		return nil, err
	}
	p := &Pool{prefix: prefix, bits: prefix.Bits(), max: prefix.Addr().BitLen(), root: nothing}
	p.slots.me.Store(new(owner))
	p.maximal[p.bits] = 1

	return p, nil
}

// Prefix is the one that the pool was made from.
func (p *Pool) Prefix() netip.Prefix { return p.prefix }

// Len is the number of blocks that are taken.
func (p *Pool) Len() int { return p.slots.n }

// Clone is a pool with the same blocks, to try something on. Neither notices
// what is done to the other, and they may be used by different goroutines.
//
// It costs half a byte per taken block. After it, each of the two copies the
// memory of 32 blocks, 2 KiB, before it first writes there; an operation
// writes to two to five places.
func (p *Pool) Clone() *Pool {
	c := &Pool{prefix: p.prefix, bits: p.bits, max: p.max, root: p.root, maximal: p.maximal}
	p.slots.copyTo(&c.slots)

	return c
}

// AllocateExact takes the block. The error is a *[Misfit] if it can never be
// a block of this pool, and an *[Overlap] if some of it is taken.
func (p *Pool) AllocateExact(block netip.Prefix) error {
	if err := p.check(block); err != nil {
		return err
	}
	if with, ok := p.Overlaps(block); ok {
		return &Overlap{Pool: p.prefix, Block: block, With: with}
	}
	p.insert(toBits(block.Addr()), block.Bits())

	return nil
}

// Release releases a block. It must have been taken as this block: a part of a block, or several
// blocks at once, are an error. The error is a *[Misfit] if the prefix can never be a block of this
// pool, and otherwise a *[NotTaken].
func (p *Pool) Release(block netip.Prefix) error {
	if err := p.check(block); err != nil {
		return err
	}
	var way trail
	at, ok := p.find(block, &way)
	if !ok {
		with, _ := p.Overlaps(block)

		return &NotTaken{Pool: p.prefix, Block: block, With: with}
	}
	p.remove(at, &way)

	return nil
}

// Contains reports whether the block is taken, as this block: it is false for parts of a taken
// block, and for a prefix with bits after its length.
func (p *Pool) Contains(block netip.Prefix) bool {
	if p.check(block) != nil {
		return false
	}
	var way trail
	_, ok := p.find(block, &way)

	return ok
}

// find looks for the leaf that is exactly this block.
func (p *Pool) find(block netip.Prefix, way *trail) (ref, bool) {
	if p.root == nothing {
		return nothing, false
	}
	at, common := p.descend(toBits(block.Addr()), block.Bits(), way)
	_, length := p.head(at)

	return at, at.isLeaf() && common == length && length == block.Bits()
}

// Overlaps returns, of the taken blocks that are equal to the given one,
// inside of it or around it, the one with the lowest address. The given one
// may be any prefix, also one that is larger than the pool; bits behind its
// length do not count. One of another family, or none at all, overlaps with
// nothing.
func (p *Pool) Overlaps(block netip.Prefix) (netip.Prefix, bool) {
	if p.root == nothing || !block.IsValid() || block.Addr().BitLen() != p.max {
		return netip.Prefix{}, false
	}
	var way trail
	at, common := p.descend(toBits(block.Addr()), block.Bits(), &way)
	if _, length := p.head(at); common < min(length, block.Bits()) {
		return netip.Prefix{}, false
	}
	for !at.isLeaf() {
		at = p.slots.at(at.index()).kids[0]
	}

	return p.block(p.head(at)), true
}
