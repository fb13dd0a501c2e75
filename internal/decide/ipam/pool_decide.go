package ipam

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// PoolAction is what a PoolDecision asks the controller to write.
type PoolAction int

// Actions.
const (
	// Keep writes nothing: the pool has the range that it asks for, or it stays
	// what it is until something changes.
	Keep PoolAction = iota
	// NeedsList asks for the live list of the pool's Subnets. Call DecidePool
	// again with it.
	NeedsList
	// Grant gives the pool the range of its spec.
	Grant
	// Reject records in the status that this generation of the pool has lost.
	Reject
	// Clear makes a pool that had lost a candidate again. It is a separate write, which gives the
	// pool a new version.
	Clear
)

// A PoolDecision is the next write to a pool, and why.
type PoolDecision struct {
	Action PoolAction
	// Reason and Message of a rejection. The message contains the fix.
	Reason, Message string
}

// PoolFacts are what DecidePool knows about the surroundings of a pool. Its pools and Subnets
// come from the informer's store, which must hold the pool in the version that is decided on; pools may
// come from a later state of it.
type PoolFacts struct {
	// The pools of the namespace. Those that do not overlap the pool's spec, and the
	// pool itself, may be among them or not.
	Others []OtherPool
	// Strays are Allocated Subnets that overlap the pool's spec, although no
	// open pool contains them. Subnets of the pool itself are not among them.
	Strays []StraySubnet
	// HasParent reports whether the pool of the name p.ParentName() exists. It
	// means nothing for a root.
	HasParent bool
	// Backing is the Subnet that backs the pool. It means nothing for a root.
	Backing Backing
	// Outside are Subnets of the pool that are not inside of its spec.
	Outside SubnetListing
}

// An OtherPool is what DecidePool knows about another pool.
type OtherPool struct {
	Name, Parent string
	// Spec and Open are what the pool asks for and what it has. The zero prefix
	// means none.
	Spec, Open netip.Prefix
	// Candidate reports whether it waits for a decision.
	Candidate bool
	// Version is its resourceVersion.
	Version string
}

// A StraySubnet is an Allocated Subnet of a pool that is not open, or does not exist.
// Such Subnets are stored by versions of Arbor that did not open pools, or remain
// where a finalizer was removed by force.
type StraySubnet struct {
	Name, CIDR string
	// Pool is spec.poolRef, Exists whether that pool does.
	Pool   string
	Exists bool
	// Parent is the parent of that pool.
	Parent string
	// Backed reports whether an Allocated Subnet which backs a child pool of the pool contains this
	// one, so that the pool never allocates its addresses.
	Backed bool
}

// A Backing is the Subnet that backs a child pool: a Subnet of the parent that is Allocated, not
// being deleted, has the finalizer, and whose status.poolUID is the UID of the pool. The zero
// Backing means that the Subnet is not decided yet.
type Backing struct {
	// Prefix of that Subnet, the zero prefix if there is none.
	Prefix netip.Prefix
	// Reason and Message are why there is none, if that is known: the parent has no such block.
	Reason, Message string
}

// A SubnetListing is the result of listing the Subnets of the pool. Subnets that are Failed do not
// count.
type SubnetListing struct {
	// Live means that the list was read from the API server, after the version of the pool that is
	// decided on was known. Otherwise it comes from the informer's store.
	Live bool
	// Example is a Subnet that is not inside of the pool's spec, such as
	// "10.0.1.0/24 of Subnet x", "" if there is none.
	Example string
}

// OtherPoolOf returns what DecidePool needs to know about another pool.
func OtherPoolOf(p *v1alpha1.SubnetPool) OtherPool {
	o := OtherPool{Name: p.Name, Parent: p.ParentName(), Open: open(p), Candidate: IsCandidate(p), Version: p.ResourceVersion}
	if prefix, err := netip.ParsePrefix(p.Spec.CIDR); err == nil {
		o.Spec = prefix.Masked()
	}

	return o
}

// open returns the range that a pool has, the zero prefix if it has none.
func open(p *v1alpha1.SubnetPool) netip.Prefix {
	prefix, err := netip.ParsePrefix(p.Open())
	if err != nil {
		return netip.Prefix{}
	}

	return prefix.Masked()
}

// IsCandidate reports whether a pool requests a range that it does not have, and that was not
// rejected.
func IsCandidate(p *v1alpha1.SubnetPool) bool {
	return p.DeletionTimestamp == nil && p.Spec.CIDR != p.Open() && !IsLost(p)
}

// IsLost reports whether the pool's present generation was rejected.
func IsLost(p *v1alpha1.SubnetPool) bool {
	return p.Status.Lost != 0 && p.Status.Lost == p.Generation
}

// DecidePool decides whether a pool gets the range of its spec. Write the decision on condition
// that the pool still has the version that was decided on.
func DecidePool(p *v1alpha1.SubnetPool, f PoolFacts) PoolDecision {
	if p.DeletionTimestamp != nil || p.Spec.CIDR == p.Open() || !slices.Contains(p.Finalizers, v1alpha1.Finalizer) {
		return PoolDecision{}
	}
	v := decideCandidate(p, f)
	if !IsLost(p) || v.Action == Reject || v.Action == Keep {
		return v
	}

	// A pool never changes from lost to open directly: other pools have counted it as absent. As a
	// candidate of a new version it is compared again.
	return PoolDecision{Action: Clear}
}

// decideCandidate decides as if the pool were a candidate.
func decideCandidate(p *v1alpha1.SubnetPool, f PoolFacts) PoolDecision {
	prefix, problem := read(p)
	if problem != nil {
		return PoolDecision{Reject, problem.Reason, problem.Message + ": " + problem.Fix}
	}
	rule := overlap
	if p.ParentName() != "" {
		rule = backed
	}
	for _, r := range []func(*v1alpha1.SubnetPool, netip.Prefix, PoolFacts) (PoolDecision, bool){rule, strays, outside} {
		if v, done := r(p, prefix, f); done {
			return v
		}
	}

	return PoolDecision{Action: Grant}
}

// overlap compares a root with the other roots: with the ranges that they have,
// and with the ranges that older candidates ask for.
func overlap(p *v1alpha1.SubnetPool, prefix netip.Prefix, f PoolFacts) (PoolDecision, bool) {
	const fix = "choose other addresses, or delete or shrink one of the two"
	for _, o := range f.Others {
		switch {
		case o.Name == p.Name || o.Parent != "":
		case overlaps(o.Open, prefix):
			return PoolDecision{Reject, ReasonOverlap, fmt.Sprintf("%s overlaps %s, which pool %s has: %s", prefix, o.Open, o.Name, fix)}, true
		case o.Candidate && overlaps(o.Spec, prefix):
			order, err := resourceversion.CompareResourceVersion(o.Version, p.ResourceVersion)
			if err != nil {
				return PoolDecision{}, true
			}
			// A pool that has lost is older than it will be as a candidate.
			if order < 0 || IsLost(p) {
				return PoolDecision{Reject, ReasonOverlap, fmt.Sprintf("%s overlaps %s, which pool %s asked for first: %s", prefix, o.Spec, o.Name, fix)}, true
			}
		}
	}

	return PoolDecision{}, false
}

// overlaps is Overlaps, and false for the zero prefix.
func overlaps(p, other netip.Prefix) bool { return p.IsValid() && p.Overlaps(other) }

// backed checks that a child is inside of its backing Subnet. Nothing else decides about a child:
// the Subnet is compared with all blocks of the parent.
func backed(p *v1alpha1.SubnetPool, prefix netip.Prefix, f PoolFacts) (PoolDecision, bool) {
	switch b := f.Backing; {
	case !f.HasParent:
		return PoolDecision{Reject, ReasonNoParent, fmt.Sprintf("the parent pool %s does not exist: create it, or create this pool again with another parent", p.ParentName())}, true
	case !b.Prefix.IsValid() && b.Reason == "":
		if IsLost(p) {
			return PoolDecision{Action: Clear}, true
		}

		return PoolDecision{}, true // the Subnet has no phase yet
	case !b.Prefix.IsValid():
		return PoolDecision{Reject, b.Reason, b.Message}, true
	case !within(b.Prefix, prefix):
		return PoolDecision{Reject, ReasonOutsideBlock, fmt.Sprintf("%s is not inside of %s, the block that this pool has of its parent %s: "+
			"choose a part of that block, or create another child pool", prefix, b.Prefix, p.ParentName())}, true
	}

	return PoolDecision{}, false
}

// strays checks that the range contains no Subnet of a pool that is not open.
func strays(p *v1alpha1.SubnetPool, prefix netip.Prefix, f PoolFacts) (PoolDecision, bool) {
	for _, s := range f.Strays {
		switch {
		case s.Backed:
		case !s.Exists:
			return PoolDecision{Reject, ReasonOrphans, fmt.Sprintf("%s contains %s of Subnet %s, whose pool %s does not exist: "+
				"create that pool again, or delete the Subnet if its addresses are no longer used", prefix, s.CIDR, s.Name, s.Pool)}, true
		case s.Parent == p.Name:
			return PoolDecision{Reject, ReasonInUse, fmt.Sprintf("the child pool %s has Subnets, such as %s of Subnet %s, but no backing Subnet in this pool: "+
				"stop the manager and run `arbor pools migrate`", s.Pool, s.CIDR, s.Name)}, true
		default:
			return PoolDecision{Reject, ReasonInUse, fmt.Sprintf("%s contains %s of Subnet %s, which pool %s has, and that pool is not open: "+
				"release the Subnet, or choose other addresses for one of the two pools", prefix, s.CIDR, s.Name, s.Pool)}, true
		}
	}

	return PoolDecision{}, false
}

// outside checks that a pool which opens, or gives up addresses, contains all its Subnets. A pool
// that only grows does.
func outside(p *v1alpha1.SubnetPool, prefix netip.Prefix, f PoolFacts) (PoolDecision, bool) {
	if has := open(p); has.IsValid() && within(prefix, has) {
		return PoolDecision{}, false
	}
	switch {
	case f.Outside.Example != "":
		return PoolDecision{Reject, ReasonInUse, fmt.Sprintf("%s leaves out %s, which is in use: choose a CIDR that contains everything "+
			"that was taken from the pool, or release that first", prefix, f.Outside.Example)}, true
	case !f.Outside.Live:
		return PoolDecision{Action: NeedsList}, true
	}

	return PoolDecision{}, false
}
