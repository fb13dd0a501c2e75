package cidr

// The trie: leaves are the taken blocks, and there is a fork wherever two of
// them part. Bits that no fork asks for are skipped. Each skipped bit is a half
// that was left aside, and that is free as a whole:
//
//	10.0.0.0/8         left aside, hence free
//	 └─ fork of /15    10.128/9 10.64/10 10.32/11 10.16/12 10.8/13 10.4/14 10.2/15
//	     ├─ 10.0.0.0/16
//	     └─ 10.1.0.0/17    10.1.128/17
//
// The lengths of those halves, here 9 to 15 and 17, are the edge of a node.
// They follow from where it hangs and where it begins, so they take no memory.

// head is what a node has in common with all blocks below it.
func (p *Pool) head(r ref) (stem bits128, length int) {
	s := p.slots.at(r.index())
	if r.isLeaf() {
		return s.address, int(s.length)
	}

	return s.stem, int(s.stemLength)
}

// below are the lengths of the maximal free blocks below a node.
func (p *Pool) below(r ref) bits128 {
	if r.isLeaf() {
		return bits128{}
	}

	return p.slots.at(r.index()).free
}

// hanging are the lengths of the maximal free blocks at or below the edge of
// a node that hangs on something which knows the first bits of the way.
func (p *Pool) hanging(r ref, known int) bits128 {
	_, length := p.head(r)

	return span(known, length).or(p.below(r))
}

// lowestWith is the lower of a fork's nodes if a free block of one of the
// lengths hangs there, and otherwise the higher one.
func (p *Pool) lowestWith(lengths bits128, f ref) ref {
	s := p.slots.at(f.index())
	if p.hanging(s.kids[0], int(s.stemLength)+1).and(lengths).isZero() {
		return s.kids[1]
	}

	return s.kids[0]
}

// A trail is the forks from the root down.
type trail struct {
	n     int
	forks [128]ref
}

func (t *trail) push(f ref) {
	t.forks[t.n] = f
	t.n++
}

func (t *trail) pop() int {
	t.n--

	return t.forks[t.n].index()
}

// descend descends towards a block for as long as nodes contain it, and returns the first node that
// does not, or that is a leaf, with the number of leading bits they share. The block and the node
// overlap if that is all bits of one of them. Bits of the address after the length are ignored. The
// trie must not be empty.
func (p *Pool) descend(address bits128, length int, way *trail) (at ref, common int) {
	for at = p.root; ; {
		stem, n := p.head(at)
		common = min(stem.common(address), n, length)
		if common < n || common == length || at.isLeaf() {
			return at, common
		}
		way.push(at)
		at = p.slots.at(at.index()).kids[address.bit(common)]
	}
}

// insert adds a block that overlaps with none.
func (p *Pool) insert(address bits128, length int) {
	i := p.slots.push()
	s := p.slots.write(i)
	s.address, s.length = address, uint8(length) //nolint:gosec // at most 128
	if i == 0 {
		p.root = leaf(i)
		p.split(p.bits, length)

		return
	}

	var way trail
	at, common := p.descend(address, length, &way)
	side := address.bit(common)
	s.stem, s.stemLength = address.and(top(common)), uint8(common) //nolint:gosec // at most 127
	s.kids[side], s.kids[1-side] = leaf(i), at
	s.free = p.hanging(leaf(i), common+1).or(p.hanging(at, common+1))
	p.split(common+1, length)

	p.replace(&way, at, fork(i))
	p.refresh(&way)
}

// remove takes the leaf out that a way leads to.
func (p *Pool) remove(gone ref, way *trail) {
	_, length := p.head(gone)
	if way.n == 0 {
		p.root = nothing
		p.merge(p.bits, length)
		p.slots.pop()

		return
	}

	f := way.pop()
	s := p.slots.at(f)
	other := s.kids[0]
	if other == gone {
		other = s.kids[1]
	}
	p.merge(int(s.stemLength)+1, length)
	p.replace(way, fork(f), other)
	p.refresh(way)

	p.moveLeaf(gone.index())
	p.moveFork(f)
	p.slots.pop()
}

// replace hangs a node where another was: on the last fork of a way.
func (p *Pool) replace(way *trail, old, by ref) {
	if way.n == 0 {
		p.root = by

		return
	}
	s := p.slots.write(way.forks[way.n-1].index())
	if s.kids[0] == old {
		s.kids[0] = by
	} else {
		s.kids[1] = by
	}
}

// refresh makes what the forks know about free blocks below them true again,
// from the end of a way up to the first fork for which nothing changes.
func (p *Pool) refresh(way *trail) {
	for way.n > 0 {
		f := way.pop()
		s := p.slots.at(f)
		known := int(s.stemLength) + 1
		free := p.hanging(s.kids[0], known).or(p.hanging(s.kids[1], known))
		if free == s.free {
			return
		}
		p.slots.write(f).free = free
	}
}

// moveLeaf moves the leaf of the last slot to the removed one, so that slots stay dense: memory
// shrinks with the number of blocks as it grew.
func (p *Pool) moveLeaf(to int) {
	last := p.slots.n - 1
	if to == last {
		return
	}
	from := p.slots.at(last)
	var way trail
	p.descend(from.address, int(from.length), &way)
	p.replace(&way, leaf(last), leaf(to))
	s := p.slots.write(to)
	s.address, s.length = from.address, from.length
}

// moveFork is moveLeaf for forks.
func (p *Pool) moveFork(to int) {
	last := p.slots.n - 1
	if to == last {
		return
	}
	from := p.slots.at(last)
	var way trail
	p.descend(from.stem, int(from.stemLength), &way)
	p.replace(&way, fork(last), fork(to))
	s := p.slots.write(to)
	s.stem, s.stemLength, s.free, s.kids = from.stem, from.stemLength, from.free, from.kids
}

// split counts what is free after a block was taken out of a maximal free one.
func (p *Pool) split(whole, length int) {
	p.maximal[whole]--
	for l := whole + 1; l <= length; l++ {
		p.maximal[l]++
	}
}

// merge is the reverse of split.
func (p *Pool) merge(whole, length int) {
	p.maximal[whole]++
	for l := whole + 1; l <= length; l++ {
		p.maximal[l]--
	}
}
