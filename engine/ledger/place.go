package ledger

import (
	"cmp"
	"errors"
	"maps"
	"net/netip"
	"slices"

	"github.com/arbor-control/arbor/engine/cidr"
)

// A slot is a prefix that is taken: by an own block, by delegated ones, or by both.
type slot struct {
	own       *entry
	delegated []*entry
	// waiting are entries that this slot is in the way of.
	waiting map[*entry]bool
	// counted is true while the prefix is among the own ones.
	counted bool
}

func (s *slot) add(e *entry) bool {
	switch {
	case e.Delegated:
		s.delegated = append(s.delegated, e)
	case s.own == nil:
		s.own = e
	default:
		return false
	}

	return true
}

func (s *slot) remove(e *entry) {
	if s.own == e {
		s.own = nil
	}
	s.delegated = slices.DeleteFunc(s.delegated, func(d *entry) bool { return d == e })
}

func (s *slot) await(e *entry) {
	if s.waiting == nil {
		s.waiting = map[*entry]bool{}
	}
	s.waiting[e] = true
}

func (s *slot) empty() bool { return s.own == nil && len(s.delegated) == 0 }

// exchange takes entries out and puts one in, nil for none. Entries that waited for
// what becomes free come after it, in the order of their arrival.
func (p *Pool) exchange(out []*entry, in *entry) {
	children := p.backed(out, in)
	again := map[*entry]bool{}
	for _, e := range out {
		p.detach(e, again)
	}
	for _, e := range children {
		p.detach(e, again)
	}
	for _, e := range out {
		delete(again, e)
	}
	if in != nil {
		p.place(in)
	}
	for _, e := range children {
		delete(again, e)
		p.place(e)
	}
	for _, e := range slices.SortedFunc(maps.Keys(again), byArrival) {
		p.place(e)
	}
}

// backed returns the child pools that entries back. Whether they count may change
// when such an entry does.
func (p *Pool) backed(out []*entry, in *entry) []*entry {
	found := map[*entry]bool{}
	find := func(e *entry) {
		if c := p.blocks[e.Backs]; e.Backs != "" && c != nil && c != in {
			found[c] = true
		}
	}
	for _, e := range out {
		find(e)
	}
	if in != nil {
		find(in)
	}

	return slices.SortedFunc(maps.Keys(found), byArrival)
}

// place takes the addresses of an entry, or lets it wait for them.
func (p *Pool) place(e *entry) {
	if p.all == nil || p.isBacked(e) {
		return
	}
	s, err := p.slotFor(e.Prefix)
	if err == nil && s.add(e) {
		e.slot, e.held = s, true
		p.settle(e.Prefix, s)

		return
	}
	p.waiting[e] = true
	if overlap, ok := errors.AsType[*cidr.Overlap](err); ok {
		s = p.taken[overlap.With]
	}
	if s != nil {
		e.slot = s
		s.await(e)
	}
}

// isBacked reports whether an entry is a child pool that is counted as the Subnet
// which backs it.
func (p *Pool) isBacked(e *entry) bool { return e.Delegated && p.backing[e.ID] > 0 }

// slotFor returns the slot of a prefix, a new one if the prefix is free. The error
// is that of the engine.
func (p *Pool) slotFor(prefix netip.Prefix) (*slot, error) {
	if s := p.taken[prefix]; s != nil {
		return s, nil
	}
	if err := p.all.AllocateExact(prefix); err != nil {
		return nil, err
	}
	s := &slot{}
	p.taken[prefix] = s

	return s, nil
}

// detach frees the addresses of an entry, and adds the entries that waited for them
// to again.
func (p *Pool) detach(e *entry, again map[*entry]bool) {
	s, held := e.slot, e.held
	e.slot, e.held = nil, false
	delete(p.waiting, e)
	switch {
	case s == nil:
		return
	case !held:
		delete(s.waiting, e)

		return
	}
	s.remove(e)
	p.settle(e.Prefix, s)
	if s.empty() {
		delete(p.taken, e.Prefix)
		_ = p.all.Release(e.Prefix) // a slot is always taken
	}
	for w := range s.waiting {
		w.slot = nil
		delete(p.waiting, w)
		again[w] = true
	}
	s.waiting = nil
}

// settle moves the prefix of a slot into or out of the own ones. What fits among all
// blocks fits among fewer, so that cannot fail.
func (p *Pool) settle(prefix netip.Prefix, s *slot) {
	is := s.own != nil && len(s.delegated) == 0
	switch {
	case is && !s.counted:
		_ = p.own.AllocateExact(prefix)
	case s.counted && !is:
		_ = p.own.Release(prefix)
	}
	s.counted = is
}

// rebuild places all entries in another range, those that were held first.
func (p *Pool) rebuild(all *cidr.Pool) {
	entries := slices.Collect(maps.Values(p.blocks))
	for _, r := range p.reservations {
		entries = append(entries, &r.entry)
	}
	slices.SortFunc(entries, func(a, b *entry) int {
		switch {
		case a.held && !b.held:
			return -1
		case b.held && !a.held:
			return 1
		}

		return byArrival(a, b)
	})
	p.all, p.own = all, nil
	if all != nil {
		p.own = all.Clone()
	}
	clear(p.taken)
	clear(p.waiting)
	for _, e := range entries {
		e.slot, e.held = nil, false
	}
	for _, e := range entries {
		p.place(e)
	}
}

func byArrival(a, b *entry) int { return cmp.Compare(a.arrival, b.arrival) }
