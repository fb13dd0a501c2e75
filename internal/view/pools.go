package view

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/engine/cidr"
)

// A Block is something that takes addresses from a pool.
type Block struct {
	// Name tells it from the other blocks of its pool.
	Name string
	// Prefix that it takes.
	Prefix netip.Prefix
	// Owner is the cluster that has it.
	Owner string
	// Claim that it was taken for, if any.
	Claim types.UID
	// Delegated blocks are pools of their own.
	Delegated bool
}

// Pools knows what is taken from every pool. It may be used concurrently.
type Pools struct {
	mu    sync.Mutex
	pools map[types.NamespacedName]*pool
}

// A pool holds its blocks by name. Those that fit are in the engines; a block
// that overlaps another or lies outside waits until it does. What it waits for
// is somebody's mistake, or about to be judged, so there are few of them.
type pool struct {
	blocks  map[string]Block
	waiting map[string]bool
	holder  map[netip.Prefix]string // of what is in own
	claims  map[types.UID]int       // how many blocks each has
	unseen  map[string]time.Time    // reserved, and not told by anybody yet

	all *cidr.Pool // nil until the pool itself is known
	own *cidr.Pool // without what is delegated
}

// NewPools returns an empty view.
func NewPools() *Pools {
	return &Pools{pools: map[types.NamespacedName]*pool{}}
}

// SetPool tells the prefix of a pool, new or changed.
func (v *Pools) SetPool(key types.NamespacedName, prefix netip.Prefix) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.at(key)
	if p.all != nil && p.all.Prefix() == prefix {
		return
	}
	p.all, p.own = nil, nil
	all, err := cidr.New(prefix)
	if err != nil {
		return // a pool that is no prefix has no space to hand out
	}
	own, err := cidr.New(prefix)
	if err != nil {
		return
	}
	p.all, p.own = all, own
	p.waiting, p.holder = map[string]bool{}, map[netip.Prefix]string{}
	for _, name := range slices.Sorted(maps.Keys(p.blocks)) {
		p.insert(p.blocks[name])
	}
}

// DropPool forgets a pool's prefix, and the pool when nothing is in it.
func (v *Pools) DropPool(key types.NamespacedName) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.at(key)
	p.all, p.own = nil, nil
	v.tidy(key)
}

// Put tells that a block is there. It may be told twice.
func (v *Pools) Put(key types.NamespacedName, b Block) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.at(key)
	delete(p.unseen, b.Name)
	if had, ok := p.blocks[b.Name]; ok {
		if had == b {
			return
		}
		p.forget(had)
	}
	p.note(b)
	p.insert(b)
}

// note and forget keep what is known of blocks apart from their addresses.
func (p *pool) note(b Block) {
	p.blocks[b.Name] = b
	if b.Claim != "" {
		p.claims[b.Claim]++
	}
}

func (p *pool) forget(b Block) {
	p.remove(b)
	delete(p.blocks, b.Name)
	delete(p.unseen, b.Name)
	if p.claims[b.Claim]--; p.claims[b.Claim] <= 0 {
		delete(p.claims, b.Claim)
	}
}

// Drop tells that a block is gone.
func (v *Pools) Drop(key types.NamespacedName, name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.at(key)
	if b, ok := p.blocks[name]; ok {
		p.forget(b)
	}
	v.tidy(key)
}

// at returns a pool, made first if it is new: blocks may be seen before it.
func (v *Pools) at(key types.NamespacedName) *pool {
	p, ok := v.pools[key]
	if !ok {
		p = &pool{
			blocks: map[string]Block{}, waiting: map[string]bool{}, holder: map[netip.Prefix]string{},
			claims: map[types.UID]int{}, unseen: map[string]time.Time{},
		}
		v.pools[key] = p
	}

	return p
}

// keys are all pools that anything is known of.
func (v *Pools) keys() []types.NamespacedName {
	v.mu.Lock()
	defer v.mu.Unlock()

	return slices.Collect(maps.Keys(v.pools))
}

func (v *Pools) tidy(key types.NamespacedName) {
	if p := v.pools[key]; p.all == nil && len(p.blocks) == 0 {
		delete(v.pools, key)
	}
}

// insert takes a block's addresses, or lets it wait for them.
func (p *pool) insert(b Block) {
	if p.all == nil {
		return
	}
	if err := p.all.AllocateExact(b.Prefix); err != nil {
		p.waiting[b.Name] = true

		return
	}
	if !b.Delegated {
		p.keep(b)
	}
}

// keep takes a block as the pool's own. What fits among all blocks fits among
// fewer, so it cannot fail.
func (p *pool) keep(b Block) {
	_ = p.own.AllocateExact(b.Prefix)
	p.holder[b.Prefix] = b.Name
}

// remove gives a block's addresses back, and to whom waited for them.
func (p *pool) remove(b Block) {
	switch {
	case p.all == nil:
		return
	case p.waiting[b.Name]:
		delete(p.waiting, b.Name)

		return
	}
	_ = p.all.Release(b.Prefix)
	if !b.Delegated {
		_ = p.own.Release(b.Prefix)
		delete(p.holder, b.Prefix)
	}
	for _, name := range slices.Sorted(maps.Keys(p.waiting)) {
		if w := p.blocks[name]; w.Prefix.Overlaps(b.Prefix) {
			delete(p.waiting, name)
			p.insert(w)
		}
	}
}

// ErrNoPool is returned for a pool that is not there, or is no prefix.
var ErrNoPool = errors.New("there is no such pool")

// Reserve chooses a free block of a length and takes it for b, under a name that
// is made of it. The block is told again by Put when others see it, or given
// back by Drop when it could not be made.
func (v *Pools) Reserve(key types.NamespacedName, length int, s cidr.Strategy, b Block, name func(netip.Prefix) string, now time.Time) (Block, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.at(key)
	defer v.tidy(key)
	if p.all == nil {
		return Block{}, ErrNoPool
	}
	prefix, err := p.all.Allocate(length, s)
	if err != nil {
		return Block{}, err
	}

	b.Name, b.Prefix = name(prefix), prefix
	p.reserve(b, now)

	return b, nil
}

// ReserveExact takes the very block that is asked for.
func (v *Pools) ReserveExact(key types.NamespacedName, b Block, now time.Time) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.at(key)
	defer v.tidy(key)
	if p.all == nil {
		return ErrNoPool
	}
	if err := p.all.AllocateExact(b.Prefix); err != nil {
		return err
	}
	p.reserve(b, now)

	return nil
}

func (p *pool) reserve(b Block, now time.Time) {
	p.keep(b)
	p.note(b)
	p.unseen[b.Name] = now
}

// Serves says whether a claim has a block, reserved ones included.
func (v *Pools) Serves(key types.NamespacedName, claim types.UID) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	p, ok := v.pools[key]

	return ok && p.claims[claim] > 0
}

// Unseen returns the names of blocks that were reserved before a time and that
// nobody has told of since: made and deleted behind our back, perhaps.
func (v *Pools) Unseen(key types.NamespacedName, before time.Time) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var names []string
	if p, ok := v.pools[key]; ok {
		for name, at := range p.unseen {
			if at.Before(before) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)

	return names
}

// Figures are what there is to say about a pool.
type Figures struct {
	// All is everything that is taken, Own what is not delegated. They are
	// snapshots: nobody changes them.
	All, Own *cidr.Pool
	// Delegated is how many blocks are pools of their own.
	Delegated int
	// First are the first blocks that are not delegated, by address.
	First []Block
	// Waiting are blocks that overlap others or lie outside, by name.
	Waiting []Block
}

// Figures returns what a pool looks like now, with up to limit first blocks.
func (v *Pools) Figures(key types.NamespacedName, limit int) (Figures, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p, ok := v.pools[key]
	if !ok || p.all == nil {
		return Figures{}, false
	}
	f := Figures{All: p.all.Clone(), Own: p.own.Clone(), Delegated: p.all.Len() - p.own.Len()}
	for _, name := range slices.Sorted(maps.Keys(p.waiting)) {
		f.Waiting = append(f.Waiting, p.blocks[name])
	}
	for prefix := range p.own.Taken() {
		if len(f.First) == limit {
			break
		}
		f.First = append(f.First, p.blocks[p.holder[prefix]])
	}

	return f, true
}
