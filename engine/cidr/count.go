package cidr

import (
	"cmp"
	"math"
	"math/big"
	"math/bits"
)

// A Count is an exact number of blocks or addresses, from 0 to 2^128: there
// are that many addresses in ::/0. Counts can be compared with ==.
type Count struct{ top, hi, lo uint64 }

// power is 2 to the n, n from 0 to 128.
func power(n int) Count {
	switch {
	case n < 64:
		return Count{lo: 1 << n}
	case n < 128:
		return Count{hi: 1 << (n - 64)}
	}

	return Count{top: 1}
}

// double is twice c and some more. Only 2^128 reaches the top, and that is the
// double of 2^127 with nothing more: a pool of which nothing is taken.
func (c Count) double(more uint32) Count {
	lo, carry := bits.Add64(c.lo<<1, uint64(more), 0)

	return Count{top: c.hi >> 63, hi: (c.hi<<1 | c.lo>>63) + carry, lo: lo}
}

// minus is c less a number that is not larger.
func (c Count) minus(o Count) Count {
	lo, borrow := bits.Sub64(c.lo, o.lo, 0)
	hi, borrow := bits.Sub64(c.hi, o.hi, borrow)

	return Count{top: c.top - o.top - borrow, hi: hi, lo: lo}
}

// IsZero reports whether the count is zero.
func (c Count) IsZero() bool { return c == Count{} }

// Compare is -1, 0 or 1 if c is less than o, equal to it, or more.
func (c Count) Compare(o Count) int {
	return cmp.Or(cmp.Compare(c.top, o.top), cmp.Compare(c.hi, o.hi), cmp.Compare(c.lo, o.lo))
}

// Uint64 is the count, or the largest uint64 if that is less.
func (c Count) Uint64() uint64 {
	if c.top|c.hi != 0 {
		return math.MaxUint64
	}

	return c.lo
}

// Int64 is the count, or the largest int64 if that is less.
func (c Count) Int64() int64 {
	return int64(min(c.Uint64(), math.MaxInt64))
}

// Float64 is the count, rounded.
func (c Count) Float64() float64 {
	return math.Ldexp(float64(c.top), 128) + math.Ldexp(float64(c.hi), 64) + float64(c.lo)
}

// String is the count in decimal, all digits of it.
func (c Count) String() string {
	n := new(big.Int).SetUint64(c.top)
	for _, word := range []uint64{c.hi, c.lo} {
		n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(word))
	}

	return n.String()
}
