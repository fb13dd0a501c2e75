package view

import (
	"errors"
	"fmt"
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
	holders map[netip.Prefix]holder // of what is in all
	claims  map[types.UID]int       // how many blocks each has
	owners  map[string][]string     // the names of the blocks of each
	unseen  map[string]time.Time    // reserved, and not told by anybody yet

	all *cidr.Pool // nil until the pool itself is known
	own *cidr.Pool // without what is delegated
}

// A holder is who has a prefix: a Subnet, a child pool, or both when the Subnet
// holds the block that the child pool is made of. That is delegated, and counts
// once.
type holder struct{ own, delegated string }

func (h *holder) slot(b Block) *string {
	if b.Delegated {
		return &h.delegated
	}

	return &h.own
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
	p.waiting, p.holders = map[string]bool{}, map[netip.Prefix]holder{}
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

// Put tells that a block is there. It may be told twice; whether that was news
// is returned.
func (v *Pools) Put(key types.NamespacedName, b Block) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.at(key)
	_, unseen := p.unseen[b.Name]
	delete(p.unseen, b.Name)
	if had, ok := p.blocks[b.Name]; ok {
		if had == b {
			return unseen
		}
		p.forget(had)
	}
	p.note(b)
	p.insert(b)

	return true
}

// note and forget keep what is known of blocks apart from their addresses.
func (p *pool) note(b Block) {
	p.blocks[b.Name] = b
	if b.Claim != "" {
		p.claims[b.Claim]++
	}
	if b.Owner != "" {
		p.owners[b.Owner] = append(p.owners[b.Owner], b.Name)
	}
}

func (p *pool) forget(b Block) {
	p.remove(b)
	delete(p.blocks, b.Name)
	delete(p.unseen, b.Name)
	if p.claims[b.Claim]--; p.claims[b.Claim] <= 0 {
		delete(p.claims, b.Claim)
	}
	rest := slices.DeleteFunc(p.owners[b.Owner], func(name string) bool { return name == b.Name })
	if p.owners[b.Owner] = rest; len(rest) == 0 {
		delete(p.owners, b.Owner)
	}
}

// Drop tells that a block is gone, and returns whether that was news.
func (v *Pools) Drop(key types.NamespacedName, name string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.at(key)
	b, had := p.blocks[name]
	if had {
		p.forget(b)
	}
	v.tidy(key)

	return had
}

// Recount tells all blocks of a pool at once. Others are forgotten, except for
// those that are reserved and that nobody has seen yet.
func (v *Pools) Recount(key types.NamespacedName, blocks []Block) {
	there := make(map[string]bool, len(blocks))
	for _, b := range blocks {
		there[b.Name] = true
		v.Put(key, b)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.at(key)
	for name, b := range p.blocks {
		if _, unseen := p.unseen[name]; !unseen && !there[name] {
			p.forget(b)
		}
	}
	v.tidy(key)
}

// at returns a pool, made first if it is new: blocks may be seen before it.
func (v *Pools) at(key types.NamespacedName) *pool {
	p, ok := v.pools[key]
	if !ok {
		p = &pool{
			blocks: map[string]Block{}, waiting: map[string]bool{}, holders: map[netip.Prefix]holder{},
			claims: map[types.UID]int{}, owners: map[string][]string{}, unseen: map[string]time.Time{},
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
	h, held := p.holders[b.Prefix]
	if held && *h.slot(b) != "" || !held && p.all.AllocateExact(b.Prefix) != nil {
		p.waiting[b.Name] = true

		return
	}
	p.hold(b)
}

// hold notes who has a prefix that is taken among all, and whether it is the
// pool's own. What fits among all blocks fits among fewer, so that cannot fail.
func (p *pool) hold(b Block) {
	h := p.holders[b.Prefix]
	was := h.own != "" && h.delegated == ""
	*h.slot(b) = b.Name
	p.settle(b.Prefix, h, was)
}

// settle writes who has a prefix now, and moves it into or out of the pool's
// own blocks.
func (p *pool) settle(prefix netip.Prefix, h holder, was bool) {
	p.holders[prefix] = h
	switch is := h.own != "" && h.delegated == ""; {
	case is && !was:
		_ = p.own.AllocateExact(prefix)
	case was && !is:
		_ = p.own.Release(prefix)
	}
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
	h := p.holders[b.Prefix]
	was := h.own != "" && h.delegated == ""
	*h.slot(b) = ""
	p.settle(b.Prefix, h, was)
	if h == (holder{}) {
		delete(p.holders, b.Prefix)
		_ = p.all.Release(b.Prefix)
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

// An OwnerHasBlockError is returned to an owner that has a block of the pool
// already.
type OwnerHasBlockError struct {
	Owner string
	// Name of that block.
	Name string
}

func (e *OwnerHasBlockError) Error() string {
	return fmt.Sprintf("cluster %s has a block of this pool already, Subnet %s", e.Owner, e.Name)
}

// admit says whether a block may be reserved for an owner at all.
func (p *pool) admit(b Block) error {
	if p.all == nil {
		return ErrNoPool
	}
	for _, has := range p.owners[b.Owner] {
		if p.blocks[has].Claim != b.Claim {
			return &OwnerHasBlockError{Owner: b.Owner, Name: has}
		}
	}

	return nil
}

// Reserve chooses a free block of a length and takes it for b, under a name that
// is made of it. The block is told again by Put when others see it, or given
// back by Drop when it could not be made.
func (v *Pools) Reserve(key types.NamespacedName, length int, s cidr.Strategy, b Block, name func(netip.Prefix) string, now time.Time) (Block, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.at(key)
	defer v.tidy(key)
	if err := p.admit(b); err != nil {
		return Block{}, err
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
	if err := p.admit(b); err != nil {
		return err
	}
	if err := p.all.AllocateExact(b.Prefix); err != nil {
		return err
	}
	p.reserve(b, now)

	return nil
}

func (p *pool) reserve(b Block, now time.Time) {
	p.hold(b)
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
		f.First = append(f.First, p.blocks[p.holders[prefix].own])
	}

	return f, true
}
