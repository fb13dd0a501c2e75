package cidr

import (
	"fmt"
	"net/netip"
)

// A Reason is why something cannot be a block of a pool, or a pool.
type Reason string

const (
	// Malformed means that the value is not a prefix.
	Malformed Reason = "Malformed"
	// OtherFamily means that one is IPv4 and the other IPv6.
	OtherFamily Reason = "OtherFamily"
	// Mapped means that it is an IPv4 prefix that is written as an IPv6 one.
	Mapped Reason = "Mapped"
	// Unmasked means that the address has bits after the length.
	Unmasked Reason = "Unmasked"
	// Outside means that it is not inside of the pool, or larger than the pool.
	Outside Reason = "Outside"
	// LengthOutOfRange means that the length is shorter than that of the pool or longer than an
	// address.
	LengthOutOfRange Reason = "LengthOutOfRange"
)

// A Misfit can never be a block of the pool, or can never be a pool, whatever
// is taken. Trying again is of no use.
type Misfit struct {
	Reason Reason
	// Pool is not valid if the error is about creating it.
	Pool netip.Prefix
	// Block is the prefix that does not fit, if it is a prefix that does not.
	Block netip.Prefix
	// Bits is the length that does not fit, for LengthOutOfRange.
	Bits int
}

func (m *Misfit) Error() string {
	if m.Reason == LengthOutOfRange {
		return fmt.Sprintf("cannot use length %d in pool %s: use one from %d to %d",
			m.Bits, m.Pool, m.Pool.Bits(), m.Pool.Addr().BitLen())
	}
	place := "as a pool"
	if m.Pool.IsValid() {
		place = "in pool " + m.Pool.String()
	}

	return fmt.Sprintf("cannot use %s %s: %s", m.Block, place, m.why())
}

func (m *Misfit) why() string {
	switch m.Reason {
	case Malformed:
		return "it is not a prefix; write an address and a length, like 10.0.0.0/16 or fd00::/48"
	case OtherFamily:
		return fmt.Sprintf("it is %s and the pool is %s; use a block of the pool's family", family(m.Block), family(m.Pool))
	case Mapped:
		return fmt.Sprintf("it is IPv4 written as IPv6; write %s", unmap(m.Block))
	case Unmasked:
		return fmt.Sprintf("its address has bits behind the length; write %s", m.Block.Masked())
	case Outside:
		if m.Block.Overlaps(m.Pool) {
			return fmt.Sprintf("it is larger than the pool; use a length from %d", m.Pool.Bits())
		}

		return "it is outside of the pool; use a block inside"
	default:
		return string(m.Reason)
	}
}

func family(p netip.Prefix) string {
	if p.Addr().Is4() {
		return "IPv4"
	}

	return "IPv6"
}

const mappedBits = 96

func isMapped(p netip.Prefix) bool { return p.Addr().Is4In6() && p.Bits() >= mappedBits }

func unmap(p netip.Prefix) netip.Prefix {
	return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mappedBits).Masked()
}

// checkPool returns a *Misfit or nil.
func checkPool(prefix netip.Prefix) error {
	switch {
	case !prefix.IsValid():
		return &Misfit{Reason: Malformed, Block: prefix}
	case isMapped(prefix):
		return &Misfit{Reason: Mapped, Block: prefix}
	case prefix != prefix.Masked():
		return &Misfit{Reason: Unmasked, Block: prefix}
	}

	return nil
}

// check returns a *Misfit or nil.
func (p *Pool) check(block netip.Prefix) error {
	misfit := func(r Reason) error { return &Misfit{Reason: r, Pool: p.prefix, Block: block} }
	switch {
	case !block.IsValid():
		return misfit(Malformed)
	case block.Addr().BitLen() == p.max:
	case isMapped(block):
		return misfit(Mapped)
	default:
		return misfit(OtherFamily)
	}
	if block != block.Masked() {
		return misfit(Unmasked)
	}
	if block.Bits() < p.bits || !p.prefix.Contains(block.Addr()) {
		return misfit(Outside)
	}

	return nil
}

// Exhausted means that no block of the length is free. It may work later.
type Exhausted struct {
	Pool netip.Prefix
	Bits int
	// Largest is the length of the largest free block, -1 if nothing is free.
	Largest int
}

func (e *Exhausted) Error() string {
	why := "every address is taken; release blocks or use another pool"
	if e.Largest >= 0 {
		why = fmt.Sprintf("the largest free block is a /%d; ask for that or less, release blocks, or use another pool", e.Largest)
	}

	return fmt.Sprintf("cannot allocate a /%d from %s: %s", e.Bits, e.Pool, why)
}

// Overlap means that some of the block, or all of it, is taken.
type Overlap struct {
	Pool, Block netip.Prefix
	// With is the taken block that it overlaps with, the one with the lowest
	// address if there are several.
	With netip.Prefix
}

func (o *Overlap) Error() string {
	return fmt.Sprintf("cannot allocate %s from %s: %s; use another block", o.Block, o.Pool, relation(o.Block, o.With))
}

// NotTaken means that a block cannot be released because it is not taken as this block.
type NotTaken struct {
	Pool, Block netip.Prefix
	// With is the taken block that it overlaps with, the one with the lowest
	// address if there are several. It is not valid if there is none.
	With netip.Prefix
}

func (n *NotTaken) Error() string {
	why := "nothing of it is taken"
	if n.With.IsValid() {
		why = relation(n.Block, n.With) + "; release blocks as they were taken"
	}

	return fmt.Sprintf("cannot release %s to %s: %s", n.Block, n.Pool, why)
}

// relation is a clause about a block that overlaps with a taken one. Two
// prefixes overlap only if one of them contains the other.
func relation(block, with netip.Prefix) string {
	switch {
	case block == with:
		return "it is taken"
	case block.Bits() > with.Bits():
		return fmt.Sprintf("it is inside of %s, which is taken", with)
	}

	return fmt.Sprintf("it contains %s, which is taken", with)
}
