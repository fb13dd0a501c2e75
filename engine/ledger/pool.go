package ledger

import (
	"net/netip"

	"github.com/arbor-control/arbor/engine/cidr"
)

// A Pool is a range, the blocks in it, and the blocks that are reserved. It is made
// by [New].
type Pool struct {
	open bool
	all  *cidr.Pool // nil without a range
	own  *cidr.Pool // without what is delegated

	blocks       map[string]*entry    // by ID
	reservations map[string]*reserved // by claim
	created      map[string]*reserved // by the ID that the API server gave the block

	taken   map[netip.Prefix]*slot // prefixes that all holds
	waiting map[*entry]bool        // entries that do not fit

	claims  map[string]int    // number of blocks of each claim
	owners  map[string]*entry // first of the ring of each owner
	backing map[string]int    // number of blocks that back each child pool

	arrivals uint64
}

// New returns a pool without a range.
func New() *Pool {
	return &Pool{
		blocks: map[string]*entry{}, reservations: map[string]*reserved{}, created: map[string]*reserved{},
		taken: map[netip.Prefix]*slot{}, waiting: map[*entry]bool{},
		claims: map[string]int{}, owners: map[string]*entry{}, backing: map[string]int{},
	}
}

// SetRange sets the addresses of the pool. Without a valid range the pool has no
// figures and allocates nothing.
func (p *Pool) SetRange(r netip.Prefix) {
	if p.all != nil && p.all.Prefix() == r {
		return
	}
	all, err := cidr.New(r)
	if err != nil {
		all = nil
	}
	if p.all == nil && all == nil {
		return
	}
	p.rebuild(all)
}

// SetOpen sets whether the pool allocates blocks.
func (p *Pool) SetOpen(open bool) { p.open = open }

// Put records a block that was seen, new or changed. It ends the reservation that
// the block was created for. It returns false if the pool knew all that.
func (p *Pool) Put(b Block) bool {
	old, reservation := p.blocks[b.ID], p.reservationOf(b)
	if old != nil && old.Block == b && reservation == nil {
		return false
	}
	e := &entry{Block: b}
	var out []*entry
	switch {
	case old != nil:
		e.arrival = old.arrival
	case reservation != nil:
		e.arrival = reservation.arrival
	default:
		e.arrival = p.arrive()
	}
	if old != nil {
		p.forget(old)
		out = append(out, old)
	}
	if reservation != nil {
		p.end(reservation)
		out = append(out, &reservation.entry)
	}
	p.note(e)
	p.exchange(out, e)

	return true
}

// Drop removes a block that is gone, and ends the reservation that it was created
// for. It returns false if there was neither.
func (p *Pool) Drop(id string) bool { return p.drop(id) }

// drop removes blocks at once.
func (p *Pool) drop(ids ...string) bool {
	var out []*entry
	for _, id := range ids {
		if e := p.blocks[id]; e != nil {
			p.forget(e)
			out = append(out, e)
		}
		if r := p.created[id]; r != nil {
			p.end(r)
			out = append(out, &r.entry)
		}
	}
	p.exchange(out, nil)

	return len(out) > 0
}

// Replace makes these blocks the only ones that were seen. Reservations stay, except
// those that one of the blocks ends. It returns false if the pool knew all that.
func (p *Pool) Replace(blocks []Block) bool {
	there := make(map[string]bool, len(blocks))
	for _, b := range blocks {
		there[b.ID] = true
	}
	var gone []string
	for id := range p.blocks {
		if !there[id] {
			gone = append(gone, id)
		}
	}
	changed := p.drop(gone...)
	for _, b := range blocks {
		changed = p.Put(b) || changed
	}

	return changed
}

// Empty reports whether there is nothing to remember of the pool.
func (p *Pool) Empty() bool {
	return p.all == nil && len(p.blocks) == 0 && len(p.reservations) == 0
}

func (p *Pool) arrive() uint64 {
	p.arrivals++

	return p.arrivals
}
