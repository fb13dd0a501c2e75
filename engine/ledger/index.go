package ledger

// note adds a block to the indexes.
func (p *Pool) note(e *entry) {
	p.blocks[e.ID] = e
	if e.Claim != "" {
		p.claims[e.Claim]++
	}
	if e.Backs != "" {
		p.backing[e.Backs]++
	}
	p.link(e)
}

// forget removes a block from the indexes.
func (p *Pool) forget(e *entry) {
	delete(p.blocks, e.ID)
	decrement(p.claims, e.Claim)
	decrement(p.backing, e.Backs)
	p.unlink(e)
}

func decrement(counts map[string]int, key string) {
	if counts[key]--; counts[key] <= 0 {
		delete(counts, key)
	}
}

// link adds an entry to the ring of its owner. Blocks without a claim keep no claim
// from getting one, so they are not there.
func (p *Pool) link(e *entry) {
	if e.Claim == "" || e.Owner == "" {
		return
	}
	first := p.owners[e.Owner]
	if first == nil {
		p.owners[e.Owner] = e
		e.previous, e.next = e, e

		return
	}
	e.previous, e.next = first.previous, first
	e.previous.next, first.previous = e, e
}

// unlink removes an entry from the ring of its owner.
func (p *Pool) unlink(e *entry) {
	switch {
	case e.next == nil:
		return
	case e.next == e:
		delete(p.owners, e.Owner)
	case p.owners[e.Owner] == e:
		p.owners[e.Owner] = e.next
	}
	e.previous.next, e.next.previous = e.next, e.previous
	e.previous, e.next = nil, nil
}

// otherClaim returns the first entry of an owner that belongs to another claim, nil
// if there is none.
func (p *Pool) otherClaim(owner, claim string) *entry {
	first := p.owners[owner]
	for e := first; e != nil; {
		if e.Claim != claim {
			return e
		}
		if e = e.next; e == first {
			break
		}
	}

	return nil
}
