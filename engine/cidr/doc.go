// Package cidr tracks the free space in a prefix from which blocks are allocated.
//
// A [Pool] is a prefix, IPv4 or IPv6. Blocks are prefixes inside of it, of any length. They are
// taken by length ([Pool.Allocate]) or by name ([Pool.AllocateExact]), and released
// ([Pool.Release]). Two taken blocks never overlap.
//
// The free space is described by its maximal free blocks, the fewest prefixes that together are the
// free space:
//
//	10.0.0.0/24 after a /26 and a /27 were taken
//
//	0         64        128                 192                 255
//	├─────────┼────┬────┼───────────────────┴───────────────────┤
//	│  taken  │tak.│ /27│                  /25                  │
//
//	maximal free blocks    one /25, one /27
//	FreeCount(25)          1
//	FreeCount(26)          2      both halves of the /25
//	FreeCount(27)          5      four quarters of it, and the /27
//	FreeAddresses          160
//	Largest                25
//	Fragmentation          0.2    1 - 128/160
//
// The two strategies differ in which maximal free block they cut. [FirstFit]
// takes the lowest address, so the next /28 would be 10.0.0.96/28 above, and
// with the /26 released 10.0.0.0/28. [BestFit] takes the smallest block that
// is large enough, and stays with 10.0.0.96/28.
//
// # How it works
//
// The taken blocks are the leaves of a binary trie without one-way nodes. Each fork has, as a set
// of 128 bits, the lengths of the maximal free blocks below it, so a search descends to the right
// one and never backtracks; and the pool has the number of blocks of each length. If F(l) is that
// number, and N(l) the number of blocks of length l that could be allocated, then
//
//	N(l) = 2 N(l-1) + F(l)
//
// which gives all counts in one pass over the lengths.
//
// # Cost
//
// Everything but [Pool.Taken], [Pool.Free] and [Pool.Clone] takes at most as many steps as an
// address has bits, however many blocks there are. A taken block needs 64 bytes, which are freed
// when it is released. Clones share memory until one of them is written to.
//
// # Which prefixes
//
// A prefix must be masked: 10.0.0.5/24 is an error, with the advice to write 10.0.0.0/24. IPv4 that
// is written as IPv6 (::ffff:10.0.0.0/120) is not treated as IPv4, and is an error as a pool and in
// pools of IPv4, since 10.0.0.0/24 and it would be two names for one thing. In a pool of IPv6 that
// is larger, such as ::/0, it is a range like any other.
//
// Errors are types, because callers act on them: a [Misfit] will never work, an
// [Exhausted] may work later, an [Overlap] and a [NotTaken] name the block that
// is in the way.
package cidr
