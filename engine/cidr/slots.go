package cidr

import (
	"slices"
	"sync/atomic"
)

// A slot is a leaf and a fork that share nothing but their index. A trie of n
// leaves has n-1 forks, so n slots hold it: leaves 0 to n-1, forks 1 to n-1.
// A slot is 64 bytes and that is all the memory there is per taken block.
type slot struct {
	// leaf: the taken block.
	address bits128
	// fork: the address bits that everything below has in common.
	stem bits128
	// fork: the lengths of the maximal free blocks below it.
	free bits128
	kids [2]ref
	// length of the leaf's block, and of the fork's stem.
	length, stemLength uint8
}

// A ref names a leaf or a fork.
type ref uint32

const (
	leafFlag ref = 1 << 31
	// nothing is the root of a pool in which nothing is taken.
	nothing = ^ref(0)
)

func leaf(i int) ref { return fork(i) | leafFlag }

func fork(i int) ref {
	return ref(i) //nolint:gosec // 2^31 slots are 128 GiB
}

func (r ref) isLeaf() bool { return r&leafFlag != 0 }
func (r ref) index() int   { return int(r &^ leafFlag) }

// slots is a dense array of slots, in chunks, so that a clone begins with all
// chunks of its origin and either side copies a chunk before it first writes
// to it.
type slots struct {
	n      int
	chunks []chunk
	// me identifies the owner that may write to the chunks with this owner. Copying slots takes it
	// away from the origin too, atomically, so that copying is as harmless to concurrent readers as
	// reading is.
	me atomic.Pointer[owner]
}

const chunkSlots = 32

type chunk struct {
	slots *[chunkSlots]slot
	owner *owner
}

// An owner is identified by its address, so it must have a size.
type owner struct{ _ byte }

// at is for reading only.
func (s *slots) at(i int) *slot {
	return &s.chunks[i/chunkSlots].slots[i%chunkSlots]
}

func (s *slots) write(i int) *slot {
	c := &s.chunks[i/chunkSlots]
	if me := s.me.Load(); c.owner != me {
		mine := *c.slots
		*c = chunk{slots: &mine, owner: me}
	}

	return &c.slots[i%chunkSlots]
}

// push adds a slot and returns its index.
func (s *slots) push() int {
	if s.n == len(s.chunks)*chunkSlots {
		s.chunks = append(s.chunks, chunk{slots: new([chunkSlots]slot), owner: s.me.Load()})
	}
	s.n++

	return s.n - 1
}

// pop removes the last slot. Of the chunks that are no longer needed it keeps one, or none if
// nothing is left, so that a pool that alternately grows and shrinks by one does not allocate each
// time.
func (s *slots) pop() {
	s.n--
	if s.n == 0 {
		s.chunks = nil
	}
	if last := len(s.chunks) - 1; s.n <= (last-1)*chunkSlots {
		s.chunks[last] = chunk{}
		s.chunks = s.chunks[:last]
	}
}

// copyTo makes an empty to equal to s.
func (s *slots) copyTo(to *slots) {
	s.me.Store(new(owner))
	to.me.Store(new(owner))
	to.n, to.chunks = s.n, slices.Clone(s.chunks)
}
