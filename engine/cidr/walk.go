package cidr

import (
	"iter"
	"net/netip"
)

// Taken yields the blocks that are taken, by address. The pool must not be written to before the
// loop ends; to write in it, range over those of a [Pool.Clone].
func (p *Pool) Taken() iter.Seq[netip.Prefix] {
	return func(yield func(netip.Prefix) bool) {
		if p.root != nothing {
			p.walkTaken(p.root, yield)
		}
	}
}

// walkTaken yields the blocks at and below a node until yield is false. As
// walkFree, it nests at most as deep as an address has bits.
func (p *Pool) walkTaken(at ref, yield func(netip.Prefix) bool) bool {
	if at.isLeaf() {
		return yield(p.block(p.head(at)))
	}
	kids := p.slots.at(at.index()).kids

	return p.walkTaken(kids[0], yield) && p.walkTaken(kids[1], yield)
}

// Free yields the maximal free blocks by address: the fewest prefixes that together are the free
// space. The pool must not be written to before the loop ends; to write in it, range over those of
// a [Pool.Clone].
func (p *Pool) Free() iter.Seq[netip.Prefix] {
	return func(yield func(netip.Prefix) bool) {
		if p.root == nothing {
			yield(p.prefix)

			return
		}
		p.walkFree(p.root, p.bits, yield)
	}
}

// walkFree yields the free blocks at and below the edge of a node that hangs
// on something which knows the first bits of the way.
func (p *Pool) walkFree(at ref, known int, yield func(netip.Prefix) bool) bool {
	stem, n := p.head(at)
	edge := span(known, n)
	for before := edge.and(stem); !before.isZero(); {
		bit := before.first()
		before = before.flip(bit)
		if !yield(p.block(aside(stem, bit), bit+1)) {
			return false
		}
	}
	if !at.isLeaf() {
		kids := p.slots.at(at.index()).kids
		if !p.walkFree(kids[0], n+1, yield) || !p.walkFree(kids[1], n+1, yield) {
			return false
		}
	}
	for behind := edge.without(stem); !behind.isZero(); {
		bit := behind.last()
		behind = behind.flip(bit)
		if !yield(p.block(aside(stem, bit), bit+1)) {
			return false
		}
	}

	return true
}
