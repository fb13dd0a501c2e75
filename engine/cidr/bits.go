package cidr

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// bits128 is a row of 128 bits; bit 0 is the first and most significant one.
// It stands for two things that line up on purpose:
//
//   - an address, of which IPv4 fills the first 32 bits;
//   - a set of lengths, in which bit i stands for length i+1.
//
// On the way down to an address, step i leaves a half aside whose length is
// i+1, and that half comes before the address exactly when the address has
// bit i. So "set AND address" are the halves before it, and "set AND NOT
// address" those behind.
type bits128 struct{ hi, lo uint64 }

// top has the first n bits. As a set: all lengths from 1 to n.
func top(n int) bits128 {
	if n <= 64 {
		return bits128{hi: ^(^uint64(0) >> n)}
	}

	return bits128{hi: ^uint64(0), lo: ^(^uint64(0) >> (n - 64))}
}

// span has the bits from <= i < to. As a set: the lengths from+1 to to.
func span(from, to int) bits128 { return top(to).without(top(from)) }

func (b bits128) and(o bits128) bits128     { return bits128{b.hi & o.hi, b.lo & o.lo} }
func (b bits128) or(o bits128) bits128      { return bits128{b.hi | o.hi, b.lo | o.lo} }
func (b bits128) without(o bits128) bits128 { return bits128{b.hi &^ o.hi, b.lo &^ o.lo} }
func (b bits128) isZero() bool              { return b.hi|b.lo == 0 }

// bit is bit i, 0 or 1.
func (b bits128) bit(i int) int {
	if i < 64 {
		return int(b.hi >> (63 - i) & 1)
	}

	return int(b.lo >> (127 - i) & 1)
}

func (b bits128) flip(i int) bits128 {
	if i < 64 {
		b.hi ^= 1 << (63 - i)
	} else {
		b.lo ^= 1 << (127 - i)
	}

	return b
}

// first is the index of the first bit that is set, 128 if there is none.
func (b bits128) first() int {
	if b.hi != 0 {
		return bits.LeadingZeros64(b.hi)
	}

	return 64 + bits.LeadingZeros64(b.lo)
}

// last is the index of the last bit that is set; there must be one.
func (b bits128) last() int {
	if b.lo != 0 {
		return 127 - bits.TrailingZeros64(b.lo)
	}

	return 63 - bits.TrailingZeros64(b.hi)
}

// common is the number of leading bits that b and o share.
func (b bits128) common(o bits128) int {
	return bits128{b.hi ^ o.hi, b.lo ^ o.lo}.first()
}

func toBits(a netip.Addr) bits128 {
	if a.Is4() {
		four := a.As4()

		return bits128{hi: uint64(binary.BigEndian.Uint32(four[:])) << 32}
	}
	all := a.As16()

	return bits128{binary.BigEndian.Uint64(all[:8]), binary.BigEndian.Uint64(all[8:])}
}

// block is the prefix, in the pool's family, that begins with the address.
func (p *Pool) block(address bits128, length int) netip.Prefix {
	var all [16]byte
	binary.BigEndian.PutUint64(all[:8], address.hi)
	binary.BigEndian.PutUint64(all[8:], address.lo)
	if p.prefix.Addr().Is4() {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte(all[:4])), length)
	}

	return netip.PrefixFrom(netip.AddrFrom16(all), length)
}
