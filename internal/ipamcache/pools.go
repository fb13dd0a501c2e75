package ipamcache

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/engine/ledger"
)

// Pools has a ledger for each pool. It is safe for concurrent use.
type Pools struct {
	mu    sync.Mutex
	pools map[types.NamespacedName]*ledger.Pool
}

// NewPools returns Pools without any pool.
func NewPools() *Pools {
	return &Pools{pools: map[types.NamespacedName]*ledger.Pool{}}
}

// in calls do with the ledger of a pool, and removes the ledger if nothing is left
// in it. Blocks may be seen before their pool, so each pool has a ledger at first.
func (v *Pools) in(key types.NamespacedName, do func(p *ledger.Pool)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p, ok := v.pools[key]
	if !ok {
		p = ledger.New()
	}
	do(p)
	if p.Empty() {
		delete(v.pools, key)
	} else {
		v.pools[key] = p
	}
}

// SetRange sets the addresses of a pool. Without a valid range the pool has no
// figures and allocates nothing.
func (v *Pools) SetRange(key types.NamespacedName, r netip.Prefix) {
	v.in(key, func(p *ledger.Pool) { p.SetRange(r) })
}

// SetOpen says whether a pool allocates blocks. A pool without a range and without
// blocks does not remember it.
func (v *Pools) SetOpen(key types.NamespacedName, open bool) {
	v.in(key, func(p *ledger.Pool) { p.SetOpen(open) })
}

// Put records a block that was seen, and reports whether that was new.
func (v *Pools) Put(key types.NamespacedName, b ledger.Block) (changed bool) {
	v.in(key, func(p *ledger.Pool) { changed = p.Put(b) })

	return changed
}

// Drop removes a block that is gone, and reports whether that was new.
func (v *Pools) Drop(key types.NamespacedName, id string) (changed bool) {
	v.in(key, func(p *ledger.Pool) { changed = p.Drop(id) })

	return changed
}

// Replace makes these blocks the only ones that were seen, and reports whether that
// was new.
func (v *Pools) Replace(key types.NamespacedName, blocks []ledger.Block) (changed bool) {
	v.in(key, func(p *ledger.Pool) { changed = p.Replace(blocks) })

	return changed
}

// Reserve takes a block for a claim. See [ledger.Pool.Reserve] for the errors.
func (v *Pools) Reserve(key types.NamespacedName, r ledger.Request, now time.Time) (prefix netip.Prefix, err error) {
	v.in(key, func(p *ledger.Pool) { prefix, err = p.Reserve(r, now) })

	return prefix, err
}

// Created records the block that the API server has created for the reservation of a
// claim.
func (v *Pools) Created(key types.NamespacedName, claim string, b ledger.Block) {
	v.in(key, func(p *ledger.Pool) { p.Created(claim, b) })
}

// Cancel ends the reservation of a claim.
func (v *Pools) Cancel(key types.NamespacedName, claim string) {
	v.in(key, func(p *ledger.Pool) { p.Cancel(claim) })
}

// Serves reports whether a claim has a block or a reservation.
func (v *Pools) Serves(key types.NamespacedName, claim string) (serves bool) {
	v.in(key, func(p *ledger.Pool) { serves = p.Serves(claim) })

	return serves
}

// Overdue returns the reservations from before a time.
func (v *Pools) Overdue(key types.NamespacedName, before time.Time) (all []ledger.Reservation) {
	v.in(key, func(p *ledger.Pool) { all = p.Overdue(before) })

	return all
}

// Holder returns the block of a pool that takes exactly this prefix. It is false if there
// is none.
func (v *Pools) Holder(key types.NamespacedName, prefix netip.Prefix) (b ledger.Block, ok bool) {
	v.in(key, func(p *ledger.Pool) { b, ok = p.Holder(prefix) })

	return b, ok
}

// Figures describes a pool now, with at most limit first blocks. All is nil for a
// pool without a range.
func (v *Pools) Figures(key types.NamespacedName, limit int) (f ledger.Figures) {
	v.in(key, func(p *ledger.Pool) { f = p.Figures(limit) })

	return f
}

// keys returns all pools that anything is known of.
func (v *Pools) keys() []types.NamespacedName {
	v.mu.Lock()
	defer v.mu.Unlock()

	return slices.Collect(maps.Keys(v.pools))
}

// knows reports whether anything is known of a pool.
func (v *Pools) knows(key types.NamespacedName) bool {
	v.mu.Lock()
	defer v.mu.Unlock()

	return v.pools[key] != nil
}
