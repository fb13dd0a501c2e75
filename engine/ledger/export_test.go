package ledger

import (
	"fmt"
	"maps"
	"net/netip"
)

// Check returns an error if the parts of a pool do not fit together.
func (p *Pool) Check() error {
	for _, check := range []func() error{p.checkSlots, p.checkEntries, p.checkIndexes, p.checkRings} {
		if err := check(); err != nil {
			return err
		}
	}

	return nil
}

// entries returns all blocks and reservations.
func (p *Pool) entries() []*entry {
	var found []*entry
	for _, e := range p.blocks {
		found = append(found, e)
	}
	for _, r := range p.reservations {
		found = append(found, &r.entry)
	}

	return found
}

// checkSlots compares the slots with the engines.
func (p *Pool) checkSlots() error {
	if p.all == nil {
		if len(p.taken) > 0 || len(p.waiting) > 0 || p.own != nil {
			return fmt.Errorf("without a range, %d are taken and %d wait", len(p.taken), len(p.waiting))
		}

		return nil
	}
	own := 0
	for prefix, s := range p.taken {
		counted := s.own != nil && len(s.delegated) == 0
		if counted {
			own++
		}
		switch {
		case s.empty(), !p.all.Contains(prefix):
			return fmt.Errorf("slot %s is empty or not taken", prefix)
		case counted != s.counted, counted != p.own.Contains(prefix):
			return fmt.Errorf("slot %s should be counted as own: %t", prefix, counted)
		}
	}
	if len(p.taken) != p.all.Len() || own != p.own.Len() {
		return fmt.Errorf("%d slots of %d, %d own of %d", len(p.taken), p.all.Len(), own, p.own.Len())
	}

	return nil
}

// checkEntries verifies the state of each entry, and that the slots have no other entries.
func (p *Pool) checkEntries() error {
	held, waits, atSlots := 0, 0, 0
	for _, e := range p.entries() {
		s := e.slot
		switch {
		case e.held:
			held++
			if s == nil || p.taken[e.Prefix] != s || p.waiting[e] || p.isBacked(e) {
				return fmt.Errorf("%+v is held wrongly", e.Block)
			}
		case p.waiting[e]:
			waits++
			if err := p.checkWaiting(e); err != nil {
				return err
			}
		case s != nil, p.all != nil && !p.isBacked(e):
			return fmt.Errorf("%+v is neither held nor waits", e.Block)
		}
	}
	inSlots := 0
	for _, s := range p.taken {
		inSlots += len(s.delegated)
		if s.own != nil {
			inSlots++
		}
		atSlots += len(s.waiting)
	}
	if inSlots != held || waits != len(p.waiting) || atSlots > waits {
		return fmt.Errorf("%d in slots and %d held, %d wait of %d and %d for a slot", inSlots, held, waits, len(p.waiting), atSlots)
	}

	return nil
}

// checkWaiting verifies that an entry has a reason to wait.
func (p *Pool) checkWaiting(e *entry) error {
	size, s := p.all.Prefix(), e.slot
	outside := size.Bits() > e.Prefix.Bits() || !size.Contains(e.Prefix.Addr())
	if outside != (s == nil) {
		return fmt.Errorf("%+v is outside: %t", e.Block, outside)
	}
	if s == nil {
		return nil
	}
	var at netip.Prefix
	for prefix, o := range p.taken {
		if o == s {
			at = prefix
		}
	}
	switch {
	case !at.IsValid(), !at.Overlaps(e.Prefix), !s.waiting[e]:
		return fmt.Errorf("%+v does not wait at slot %s", e.Block, at)
	case at == e.Prefix && (e.Delegated || s.own == nil):
		return fmt.Errorf("%+v could have its slot", e.Block)
	}

	return nil
}

// checkIndexes counts what the indexes count.
func (p *Pool) checkIndexes() error {
	claims, backing := map[string]int{}, map[string]int{}
	for id, e := range p.blocks {
		if e.ID != id {
			return fmt.Errorf("%+v is at %s", e.Block, id)
		}
		if e.Claim != "" {
			claims[e.Claim]++
		}
		if e.Backs != "" {
			backing[e.Backs]++
		}
	}
	created := 0
	for claim, r := range p.reservations {
		if r.ID != "" {
			created++
		}
		if r.Claim != claim || r.ID != "" && p.created[r.ID] != r {
			return fmt.Errorf("reservation %+v is at %s", r.Block, claim)
		}
	}
	if !maps.Equal(claims, p.claims) || !maps.Equal(backing, p.backing) || created != len(p.created) {
		return fmt.Errorf("claims %v are %v, backing %v are %v, created %d are %d", p.claims, claims, p.backing, backing, len(p.created), created)
	}

	return nil
}

// checkRings walks the ring of each owner.
func (p *Pool) checkRings() error {
	want := map[*entry]bool{}
	for _, e := range p.entries() {
		if e.Owner != "" && e.Claim != "" {
			want[e] = true
		}
	}
	for owner, first := range p.owners {
		for e := first; ; {
			if !want[e] || e.Owner != owner || e.next.previous != e {
				return fmt.Errorf("%+v is in the ring of %s", e.Block, owner)
			}
			delete(want, e)
			if e = e.next; e == first {
				break
			}
		}
	}
	if len(want) > 0 {
		return fmt.Errorf("%d are missing in the rings", len(want))
	}

	return nil
}
