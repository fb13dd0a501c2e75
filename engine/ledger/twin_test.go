package ledger_test

import (
	"net/netip"
	"slices"
	"time"

	"github.com/arbor-control/arbor/engine/cidr"
	"github.com/arbor-control/arbor/engine/ledger"
)

// A twin is a ledger without any index: a list of blocks and reservations, of which
// those that are held do not get in each other's way.
type twin struct {
	size  netip.Prefix
	open  bool
	items []*item // by arrival
}

type item struct {
	ledger.Block

	reserved, held, backed bool
	since                  time.Time
}

func (w *twin) find(is func(*item) bool) *item {
	if i := slices.IndexFunc(w.items, is); i >= 0 {
		return w.items[i]
	}

	return nil
}

func (w *twin) reservation(claim string) *item {
	return w.find(func(i *item) bool { return i.reserved && i.Claim == claim })
}

// isBacked is true for a child pool that a Subnet backs.
func (w *twin) isBacked(c *item) bool {
	return c.Delegated && w.find(func(i *item) bool { return i.Backs != "" && i.Backs == c.ID }) != nil
}

// place holds an item if it fits.
func (w *twin) place(n *item) {
	if n.held || n.backed || !w.size.IsValid() || n.Prefix.Bits() < w.size.Bits() || !w.size.Contains(n.Prefix.Addr()) {
		return
	}
	for _, o := range w.items {
		together := o.Prefix == n.Prefix && (o.Delegated || n.Delegated)
		if o.held && o.Prefix.Overlaps(n.Prefix) && !together {
			return
		}
	}
	n.held = true
}

// settle tries everything that is not held: the new item, then child pools that are
// not backed any more, then the rest.
func (w *twin) settle(first ...*item) {
	for _, i := range w.items {
		was := i.backed
		if i.backed = w.isBacked(i); i.backed {
			i.held = false
		} else if was {
			first = append(first, i)
		}
	}
	for _, i := range slices.Concat(first, w.items) {
		w.place(i)
	}
}

func (w *twin) setRange(size netip.Prefix) {
	if size == w.size {
		return
	}
	w.size = size
	var first []*item
	for _, i := range w.items {
		if i.held {
			first = append(first, i)
		}
		i.held = false
	}
	w.settle(first...)
}

func (w *twin) remove(is func(*item) bool) bool {
	before := len(w.items)
	w.items = slices.DeleteFunc(w.items, is)

	return len(w.items) < before
}

func (w *twin) put(b ledger.Block) bool {
	same := func(i *item) bool { return !i.reserved && i.ID == b.ID }
	ends := func(i *item) bool {
		return i.reserved && (i.ID != "" && i.ID == b.ID || i.Claim == b.Claim && i.Prefix == b.Prefix && w.createdAs(b.ID) == nil)
	}
	old, n := w.find(same), &item{Block: b}
	if old != nil && old.Block == b && w.find(ends) == nil {
		return false
	}
	at := slices.IndexFunc(w.items, same)
	if at < 0 {
		at = slices.IndexFunc(w.items, ends)
	}
	if at < 0 {
		w.items = append(w.items, n)
	} else {
		w.items = slices.Insert(w.items, at, n)
	}
	gone := func(i *item) bool { return i != n && (same(i) || ends(i)) }
	w.remove(gone)
	w.settle(n)

	return true
}

func (w *twin) createdAs(id string) *item {
	return w.find(func(i *item) bool { return i.reserved && i.ID == id })
}

func (w *twin) drop(ids ...string) bool {
	changed := w.remove(func(i *item) bool { return i.ID != "" && slices.Contains(ids, i.ID) })
	w.settle()

	return changed
}

func (w *twin) replace(blocks []ledger.Block) bool {
	var gone []string
	for _, i := range w.items {
		if !i.reserved && !slices.ContainsFunc(blocks, func(b ledger.Block) bool { return b.ID == i.ID }) {
			gone = append(gone, i.ID)
		}
	}
	changed := w.drop(gone...)
	for _, b := range blocks {
		changed = w.put(b) || changed
	}

	return changed
}

// reserve returns false if the owner has a block by another claim.
func (w *twin) reserve(r ledger.Request, now time.Time) (netip.Prefix, bool, error) {
	if had := w.reservation(r.Claim); had != nil {
		return had.Prefix, true, nil
	}
	switch {
	case !w.size.IsValid():
		return netip.Prefix{}, true, ledger.ErrNoRange
	case !w.open:
		return netip.Prefix{}, true, ledger.ErrClosed
	case w.find(func(i *item) bool { return i.Owner != "" && i.Owner == r.Owner && i.Claim != "" && i.Claim != r.Claim }) != nil:
		return netip.Prefix{}, false, nil
	}
	all, _ := w.engines()
	var err error
	prefix := r.Exact
	if prefix.IsValid() {
		err = all.AllocateExact(prefix)
	} else {
		prefix, err = all.Allocate(r.Length, r.Strategy)
	}
	if err == nil {
		n := &item{Block: ledger.Block{Prefix: prefix, Owner: r.Owner, Claim: r.Claim}, reserved: true, since: now}
		w.items = append(w.items, n)
		w.settle()
	}

	return prefix, true, err
}

func (w *twin) cancel(claim string) {
	w.remove(func(i *item) bool { return i.reserved && i.Claim == claim })
	w.settle()
}

func (w *twin) created(claim, id string) {
	if r := w.reservation(claim); r != nil {
		r.ID, r.Name = id, id
	}
}

// engines are what is held, and what of it is not delegated.
func (w *twin) engines() (all, own *cidr.Pool) {
	all, err := cidr.New(w.size)
	if err != nil {
		return nil, nil
	}
	own = all.Clone()
	for _, i := range w.items {
		if !i.held {
			continue
		}
		_ = all.AllocateExact(i.Prefix) // taken already, by another that counts with it
		if w.find(func(o *item) bool { return o.held && o.Delegated && o.Prefix == i.Prefix }) == nil {
			_ = own.AllocateExact(i.Prefix)
		}
	}

	return all, own
}
