package ipam_test

import (
	"fmt"
	"iter"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipam"
)

// A world is a few pools and Subnets, and what users may do with them.
//
// Addresses are four bits, one for each quarter of 10.0.0.0/24.
type world struct {
	pools []poolSlot
	subs  []subSlot
	// ops is how many operations of users there are: deletions, changes of a
	// CIDR, re-creations and writes that change nothing of interest.
	ops uint8
	// used means that pools and the Subnets that are marked so were stored by a
	// version of Arbor that did not open pools.
	used bool
	// force means that users may remove finalizers of pools.
	force bool
}

// A poolSlot is a name that pools can have, one after the other.
type poolSlot struct {
	parent int // -1 for a root
	specs  []uint8
	// claim means that the pool belongs to a SubnetPoolClaim, whose controller
	// creates it.
	claim bool
}

// A subSlot is a name that Subnets can have.
type subSlot struct {
	pool, backs int // backs is -1 for a Subnet that backs no pool
	mask        uint8
	stored      bool   // see world.used
	cluster     string // of a Subnet that was created for a claim
}

const (
	maxPools, maxSubs = 3, 4
	first, second     = 0, 1 // incarnations of a pool
)

// poolState is a pool. Versions are ranks among all pools.
type poolState struct {
	there, lost, deleting, finalizer bool
	inc, spec, open, version         uint8
}

// subState is a Subnet. named and bound are the incarnation of the pool in
// spec.backs.uid and in status.poolUID, plus one; 0 means none.
type subState struct {
	there, deleting       bool
	phase                 phase
	named, bound, version uint8
}

type phase uint8

const (
	pending phase = iota
	allocated
	failedPhase
)

// claimState is the SubnetPoolClaim of a world.
type claimState uint8

const (
	noClaim claimState = iota
	claimActive
	releasing // its controller deletes the pool, then the claim for the block
	claimGone
)

// objects is what the API server has.
type objects struct {
	pools [maxPools]poolState
	subs  [maxSubs]subState
	claim claimState
}

// Flags of a pool: what can be concluded from some state since its version.
const (
	grants       uint8 = 1 << iota // without a list
	grantsIfFits                   // if the live list shows nothing outside
	fits                           // the live list did
	refuses
	clears
	noSubnets  // of this pool
	noChildren // of this pool
)

// Flags of a Subnet.
const (
	poolAllows uint8 = 1 << iota
	poolFails
	wins
	loses
	ownerGone // no pool has the UID in status.poolUID, or the name if that is empty
	childFree // no Subnet is in the child pool, read after that
)

// A state is all that matters for what can still happen.
//
// Managers need no state of their own. A write carries the version of the object
// that it was decided for. So the writes that can still have an effect on an object
// are the decisions from all states since it got that version: any number of
// managers, each with a cache as old as it likes, and each as slow as it likes.
// Facts that a manager reads one after the other may come from different states;
// each has a flag of its own. Facts from an informer that need not hold the version
// are flags of ever, which are never taken back.
type state struct {
	objects

	poolSays [maxPools]uint8
	subSays  [maxSubs]uint8
	ever     ever
	made     [maxPools]uint8 // how many incarnations there were
	ops      uint8
}

// ever is what was true in some state.
type ever struct {
	backed  [maxSubs]uint8 // incarnations that the Subnet was seen to back, as bits
	created [maxSubs]uint8 // incarnations that a manager has created it for, as bits
	block   bool           // the SubnetPoolClaim had its block
	allowed [maxSubs]bool  // the pool allowed the Subnet; only broken rules use it
	moved   bool           // arbor pools migrate ran
}

// rules are what is walked: the real decisions, or broken ones.
type rules struct {
	open   func(*v1alpha1.SubnetPool, ipam.PoolFacts) ipam.PoolDecision
	decide func(ipam.SubnetFacts, *ipam.PoolRanges, iter.Seq[ipam.SubnetFacts]) ipam.SubnetDecision
	// The following are broken in controllers, not in decisions.
	unconditional bool // writes ignore the version
	unprotected   bool // backing Subnets have no finalizer
	shared        bool // a backing Subnet serves any pool that has the name
	cached        bool // the manager reads the pool from a cache
	releases      bool // a backing Subnet is released while the child has Subnets
	listsFirst    bool // these are listed before the child is known to be gone
}

func decisions() rules { return rules{open: ipam.DecidePool, decide: ipam.DecideSubnet} }

// prefixOf turns a mask into a prefix.
func prefixOf(mask uint8) netip.Prefix {
	if mask == 0 {
		return netip.Prefix{}
	}
	from := bits.TrailingZeros8(mask)

	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(64 * from)}), 26-bits.Len(uint(bits.OnesCount8(mask)))+1)
}

var (
	deletedAt = metav1.Now()
	cidrs     = func() (all [16]string) {
		for mask := range all {
			if mask > 0 {
				all[mask] = prefixOf(uint8(mask)).String()
			}
		}

		return all
	}()
	anywhere = &ipam.PoolRanges{Spec: netip.MustParsePrefix("10.0.0.0/8"), Open: netip.MustParsePrefix("10.0.0.0/8")}
)

func poolName(i int) string { return "p" + strconv.Itoa(i) }

// pool returns a pool as the API server has it.
func (w *world) pool(o *objects, i int) *v1alpha1.SubnetPool {
	s := o.pools[i]
	p := &v1alpha1.SubnetPool{
		ObjectMeta: metav1.ObjectMeta{
			Name: poolName(i), UID: types.UID(poolName(i) + "-" + strconv.Itoa(int(s.inc))), Generation: 1,
			ResourceVersion: strconv.Itoa(int(s.version) + 1), Finalizers: []string{v1alpha1.Finalizer},
		},
		Spec: v1alpha1.SubnetPoolSpec{CIDR: cidrs[s.spec]},
	}
	if parent := w.pools[i].parent; parent >= 0 {
		p.Spec.Parent = poolName(parent)
	}
	if s.deleting {
		p.DeletionTimestamp = &deletedAt
	}
	if s.lost {
		p.Status.Lost = 1
	}
	if s.open != 0 {
		p.Status.CIDR, p.Status.UID, p.Status.Parent = cidrs[s.open], p.UID, p.Spec.Parent
	}

	return p
}

// facts gathers what Open asks for.
func (w *world) facts(o *objects, e *ever, i int, r rules) ipam.PoolFacts {
	f := ipam.PoolFacts{}
	for j := range w.pools {
		if o.pools[j].there {
			f.Others = append(f.Others, ipam.OtherPoolOf(w.pool(o, j)))
		}
	}
	me := o.pools[i]
	for k, slot := range w.subs {
		s := o.subs[k]
		if slot.backs == i && (e.backed[k]>>me.inc&1 == 1 || r.shared && e.backed[k] != 0) {
			f.Backing.Prefix = prefixOf(slot.mask)
		}
		if !s.there || s.phase != allocated || slot.pool == i || slot.mask&me.spec == 0 || o.pools[slot.pool].there && o.pools[slot.pool].open != 0 {
			continue
		}
		stray := ipam.StraySubnet{Name: "s", CIDR: cidrs[slot.mask], Pool: poolName(slot.pool), Exists: o.pools[slot.pool].there, Backed: w.covered(o, i, slot.mask)}
		if parent := w.pools[slot.pool].parent; parent >= 0 {
			stray.Parent = poolName(parent)
		}
		f.Strays = append(f.Strays, stray)
	}
	if parent := w.pools[i].parent; parent >= 0 {
		f.HasParent = o.pools[parent].there
	}
	if w.outside(o, i) {
		f.Outside.Example = "a Subnet"
	}

	return f
}

// covered reports whether a Subnet that backs a child of pool i contains addresses.
func (w *world) covered(o *objects, i int, mask uint8) bool {
	for k, slot := range w.subs {
		if s := o.subs[k]; s.there && s.phase == allocated && slot.backs >= 0 && slot.pool == i && s.bound != 0 && mask&^slot.mask == 0 {
			return true
		}
	}

	return false
}

// outside reports whether a Subnet of pool i lies outside of its spec.
func (w *world) outside(o *objects, i int) bool {
	for k, slot := range w.subs {
		if s := o.subs[k]; s.there && s.phase != failedPhase && slot.pool == i && slot.mask&^o.pools[i].spec != 0 {
			return true
		}
	}

	return false
}

// poolFlags is what a manager concludes about pool i from one state.
func (w *world) poolFlags(o *objects, e *ever, i int, r rules) uint8 {
	var flags uint8
	p, f := w.pool(o, i), w.facts(o, e, i, r)
	if f.Outside.Example == "" {
		flags |= fits
	}
	seen := f.Outside
	f.Outside = ipam.SubnetListing{} // a store from before the Subnets were created
	if r.open(p, f).Action == ipam.Grant {
		flags |= grants
	}
	for _, listing := range []ipam.SubnetListing{seen, {Live: true}} {
		f.Outside = listing
		switch v := r.open(p, f); {
		case v.Action == ipam.Grant && listing.Live:
			flags |= grantsIfFits
		case v.Action == ipam.Grant:
			flags |= grants
		case v.Action == ipam.Reject:
			flags |= refuses
		case v.Action == ipam.Clear:
			flags |= clears
		}
	}
	if !w.inUse(o, i) {
		flags |= noSubnets
	}
	children := false
	for c, slot := range w.pools {
		children = children || slot.parent == i && o.pools[c].there
	}
	if !children {
		flags |= noChildren
	}

	return flags
}

func (w *world) inUse(o *objects, i int) bool {
	for k, slot := range w.subs {
		if s := o.subs[k]; s.there && s.phase != failedPhase && slot.pool == i {
			return true
		}
	}

	return false
}

// block returns a Subnet as the manager sees it.
func (w *world) block(o *objects, k int) ipam.SubnetFacts {
	slot, s := w.subs[k], o.subs[k]

	return ipam.SubnetFacts{
		Name: "s" + strconv.Itoa(k), Prefix: prefixOf(slot.mask), Version: strconv.Itoa(int(s.version) + 1),
		Phase:   [...]v1alpha1.SubnetPhase{v1alpha1.SubnetPending, v1alpha1.SubnetAllocated, v1alpha1.SubnetFailed}[s.phase],
		Cluster: slot.cluster, Claimed: slot.cluster != "" && !s.deleting,
	}
}

// subFlags is what a manager concludes about Subnet k from one state.
func (w *world) subFlags(o *objects, k int, r rules) uint8 {
	var flags uint8
	slot, s := w.subs[k], o.subs[k]
	b := w.block(o, k)
	var of *ipam.PoolRanges
	if o.pools[slot.pool].there {
		of = ipam.PoolRangesOf(w.pool(o, slot.pool))
	}
	switch r.decide(b, of, func(func(ipam.SubnetFacts) bool) {}).Phase {
	case v1alpha1.SubnetAllocated:
		flags |= poolAllows
	case v1alpha1.SubnetFailed:
		flags |= poolFails
	case v1alpha1.SubnetPending:
	}
	others := func(yield func(ipam.SubnetFacts) bool) {
		for j := range w.subs {
			if o.subs[j].there && w.subs[j].pool == slot.pool && !yield(w.block(o, j)) {
				return
			}
		}
	}
	if r.decide(b, anywhere, others).Phase == v1alpha1.SubnetAllocated {
		flags |= wins
	} else {
		flags |= loses
	}
	if slot.backs < 0 {
		return flags
	}
	child := o.pools[slot.backs]
	if !child.there || s.bound != 0 && s.bound != child.inc+1 {
		flags |= ownerGone
	}
	if !w.inUse(o, slot.backs) {
		flags |= childFree
	}

	return flags
}

// A collision is what must never be.
func (w *world) collision(o *objects) string {
	for i := range w.pools {
		for j := range i {
			if p, q := o.pools[i], o.pools[j]; p.there && q.there && w.pools[i].parent < 0 && w.pools[j].parent < 0 && p.open&q.open != 0 {
				return fmt.Sprintf("the roots p%d and p%d have the same addresses", j, i)
			}
		}
	}
	for k, slot := range w.subs {
		if o.subs[k].there && o.subs[k].phase == allocated {
			if found := w.wrong(o, k, slot); found != "" {
				return found
			}
		}
	}

	return ""
}

// wrong returns what is wrong with an Allocated Subnet.
func (w *world) wrong(o *objects, k int, slot subSlot) string {
	p := o.pools[slot.pool]
	switch {
	case !p.there && !w.force:
		return fmt.Sprintf("s%d is Allocated, and its pool is gone", k)
	case p.there && p.open != 0 && slot.mask&^p.open != 0:
		return fmt.Sprintf("s%d is Allocated outside of its pool", k)
	}
	for j, other := range w.subs[:k] {
		if t := o.subs[j]; !t.there || t.phase != allocated {
			continue
		}
		if slot.mask&other.mask != 0 && !w.backs(o, k, j) && !w.backs(o, j, k) {
			return fmt.Sprintf("s%d and s%d overlap", j, k)
		}
		if slot.cluster != "" && slot.cluster == other.cluster && slot.pool == other.pool {
			return fmt.Sprintf("s%d and s%d are of one cluster", j, k)
		}
	}

	return ""
}

// backs reports whether Subnet k backs the pool that Subnet j is taken from, or an
// ancestor of it.
func (w *world) backs(o *objects, k, j int) bool {
	child := w.subs[k].backs
	if child < 0 || !w.force && (!o.pools[child].there || o.subs[k].bound != o.pools[child].inc+1) {
		return false
	}
	for i := w.subs[j].pool; i >= 0; i = w.pools[i].parent {
		if i == child {
			return true
		}
	}

	return false
}

// stuck returns what waits in an end state though nothing is in its way.
func (w *world) stuck(o *objects) string {
	for i, p := range o.pools[:len(w.pools)] {
		if p.there && !p.deleting && p.open != p.spec && w.free(o, i) {
			return fmt.Sprintf("p%d is not opened, though its range is free", i)
		}
	}
	for k, slot := range w.subs {
		s, p := o.subs[k], o.pools[slot.pool]
		switch {
		case !s.there:
		case s.phase == pending && !s.deleting && p.there && !p.deleting && slot.mask&^(p.open&p.spec) == 0:
			return fmt.Sprintf("s%d is not decided", k)
		case slot.backs >= 0 && o.claim != claimActive && !o.pools[slot.backs].there && !w.inUse(o, slot.backs):
			return fmt.Sprintf("s%d is not released", k)
		}
	}

	return ""
}

// free reports whether pool i could be opened.
func (w *world) free(o *objects, i int) bool {
	if w.outside(o, i) {
		return false
	}
	spec := o.pools[i].spec
	if w.pools[i].parent >= 0 {
		for k, slot := range w.subs {
			if s := o.subs[k]; s.there && !s.deleting && s.phase == allocated && slot.backs == i && s.bound == o.pools[i].inc+1 && spec&^slot.mask == 0 {
				return !w.strays(o, i)
			}
		}

		return false
	}
	for j, q := range o.pools[:len(w.pools)] {
		if j != i && q.there && w.pools[j].parent < 0 && q.open&spec != 0 {
			return false
		}
	}

	return !w.strays(o, i)
}

func (w *world) strays(o *objects, i int) bool {
	for k, slot := range w.subs {
		s, p := o.subs[k], o.pools[slot.pool]
		if s.there && s.phase == allocated && slot.pool != i && slot.mask&o.pools[i].spec != 0 && p.open == 0 && !w.covered(o, i, slot.mask) {
			return true
		}
	}

	return false
}

// trace is how a state was reached.
func trace(steps []step) string {
	var all []string
	for _, s := range steps {
		all = append(all, fmt.Sprintf("%s%d", s.what, s.slot))
	}

	return strings.Join(all, ", ")
}
