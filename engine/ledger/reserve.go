package ledger

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// Reserve takes a block for a claim until a watch brings it. A claim that has a
// reservation gets the block of that. The error is [ErrNoRange], [ErrClosed], an
// *[OwnerHasBlockError], or one of the errors of package cidr.
func (p *Pool) Reserve(r Request, now time.Time) (netip.Prefix, error) {
	if had := p.reservations[r.Claim]; had != nil {
		return had.Prefix, nil
	}
	if err := p.admit(r); err != nil {
		return netip.Prefix{}, err
	}
	prefix, err := p.choose(r)
	if err != nil {
		return netip.Prefix{}, err
	}
	e := &reserved{since: now, entry: entry{Block: Block{Prefix: prefix, Owner: r.Owner, Claim: r.Claim}, arrival: p.arrive()}}
	p.reservations[r.Claim] = e
	p.link(&e.entry)
	p.place(&e.entry)

	return prefix, nil
}

// admit reports whether the pool may reserve a block for the request at all.
func (p *Pool) admit(r Request) error {
	switch {
	case p.all == nil:
		return ErrNoRange
	case !p.open:
		return ErrClosed
	}
	if has := p.otherClaim(r.Owner, r.Claim); has != nil {
		return &OwnerHasBlockError{Owner: r.Owner, Block: has.Block}
	}

	return nil
}

// choose finds the block of a request, which is free.
func (p *Pool) choose(r Request) (netip.Prefix, error) {
	var err error
	prefix := r.Exact
	if p.isOnlyChild(prefix, r.Backs) {
		return prefix, nil
	}
	if r.Exact.IsValid() {
		err = p.all.AllocateExact(prefix)
	} else {
		prefix, err = p.all.Allocate(r.Length, r.Strategy)
	}
	if err == nil {
		err = p.all.Release(prefix) // place takes it, together with its slot
	}

	return prefix, err
}

// Holder returns the block that takes exactly this prefix. It is false if there is none. Of
// a Subnet and a child pool the Subnet is returned.
func (p *Pool) Holder(prefix netip.Prefix) (Block, bool) {
	s := p.taken[prefix]
	switch {
	case s == nil || s.empty():
		return Block{}, false
	case s.own != nil:
		return s.own.Block, true
	}

	return s.delegated[0].Block, true
}

// isOnlyChild reports whether nothing but child pools of a name have a prefix. After a
// restore, a child pool can come back before the block that it is made of.
func (p *Pool) isOnlyChild(prefix netip.Prefix, name string) bool {
	s := p.taken[prefix]
	if s == nil || s.own != nil || name == "" {
		return false
	}

	return !slices.ContainsFunc(s.delegated, func(e *entry) bool { return e.Name != name || e.Claim != "" })
}

// Created records that the API server has created a block for the reservation of a
// claim. If a watch has brought that block already, there is no reservation any more,
// and nothing to do.
func (p *Pool) Created(claim string, b Block) {
	r := p.reservations[claim]
	if r == nil || r.ID == b.ID {
		return
	}
	delete(p.created, r.ID)
	r.ID, r.Name = b.ID, b.Name
	p.created[r.ID] = r
}

// Cancel ends the reservation of a claim.
func (p *Pool) Cancel(claim string) {
	if r := p.reservations[claim]; r != nil {
		p.end(r)
		p.exchange([]*entry{&r.entry}, nil)
	}
}

// Serves reports whether a claim has a block or a reservation.
func (p *Pool) Serves(claim string) bool {
	return p.reservations[claim] != nil || p.claims[claim] > 0
}

// Overdue returns the reservations from before a time, the oldest first.
func (p *Pool) Overdue(before time.Time) []Reservation {
	var found []Reservation
	for _, r := range p.reservations {
		if r.since.Before(before) {
			found = append(found, Reservation{Claim: r.Claim, Prefix: r.Prefix, ID: r.ID, Name: r.Name, Since: r.since})
		}
	}
	slices.SortFunc(found, func(a, b Reservation) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Claim, b.Claim))
	})

	return found
}

// reservationOf returns the reservation that a block was created for: that of its
// claim, if it has the prefix or the ID of the block.
func (p *Pool) reservationOf(b Block) *reserved {
	if r := p.created[b.ID]; r != nil {
		return r
	}
	if r := p.reservations[b.Claim]; r != nil && r.Prefix == b.Prefix {
		return r
	}

	return nil
}

// end removes a reservation from the indexes.
func (p *Pool) end(r *reserved) {
	delete(p.reservations, r.Claim)
	delete(p.created, r.ID)
	p.unlink(&r.entry)
}
