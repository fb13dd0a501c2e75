package cidr

import (
	"fmt"
	"net/netip"
)

// A Strategy selects which of the free blocks is allocated.
type Strategy int

const (
	// FirstFit takes the lowest address at which a block of the wanted length
	// is free.
	FirstFit Strategy = iota
	// BestFit takes the beginning of the smallest maximal free block that is
	// large enough, the one with the lowest address among equals. It leaves
	// the largest free blocks whole for as long as it can.
	BestFit
)

func (s Strategy) String() string {
	switch s {
	case FirstFit:
		return "FirstFit"
	case BestFit:
		return "BestFit"
	}

	return fmt.Sprintf("Strategy(%d)", int(s))
}

// Allocate takes a free block of the length and returns it. The same pool always returns the same
// block, whatever the order in which its blocks were taken. The error is a *[Misfit] if blocks of
// this pool cannot have the length, and an *[Exhausted] if there is no such block.
func (p *Pool) Allocate(length int, strategy Strategy) (netip.Prefix, error) {
	if length < p.bits || length > p.max {
		return netip.Prefix{}, &Misfit{Reason: LengthOutOfRange, Pool: p.prefix, Bits: length}
	}
	if strategy != FirstFit && strategy != BestFit {
		return netip.Prefix{}, fmt.Errorf("cannot allocate a /%d from %s: there is no strategy %d", length, p.prefix, int(strategy))
	}
	if largest, ok := p.Largest(); !ok || largest > length {
		return netip.Prefix{}, &Exhausted{Pool: p.prefix, Bits: length, Largest: largest}
	}

	address := toBits(p.prefix.Addr())
	switch {
	case p.root == nothing:
	case strategy == FirstFit:
		address = p.firstFit(length)
	default:
		address = p.bestFit(length)
	}
	p.insert(address, length)

	return p.block(address, length), nil
}

// firstFit is the lowest address of the maximal free blocks that are large
// enough; there must be one, and something must be taken.
//
// At each node the order of addresses is: halves that the edge left aside below the node, the node,
// halves above the node. The search never backtracks: it descends only where it will find a block.
func (p *Pool) firstFit(length int) bits128 {
	enough := top(length)
	at, known := p.root, p.bits
	for {
		stem, n := p.head(at)
		edge := span(known, n).and(enough)
		if before := edge.and(stem); !before.isZero() {
			return aside(stem, before.first())
		}
		if p.below(at).and(enough).isZero() {
			return aside(stem, edge.without(stem).last())
		}
		at, known = p.lowestWith(enough, at), n+1
	}
}

// bestFit is the lowest address of the smallest maximal free blocks that are
// large enough; there must be one, and something must be taken.
func (p *Pool) bestFit(length int) bits128 {
	best := p.hanging(p.root, p.bits).and(top(length)).last()
	only := span(best, best+1)
	at := p.root
	for {
		stem, n := p.head(at)
		if best < n {
			return aside(stem, best)
		}
		at = p.lowestWith(only, at)
	}
}

// aside is the address of the half that is left aside where the way to an
// address takes the given bit.
func aside(address bits128, bit int) bits128 {
	return address.and(top(bit + 1)).flip(bit)
}
