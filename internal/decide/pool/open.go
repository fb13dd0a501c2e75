package pool

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// Further reasons why a pool is not opened, or not yet.
const (
	ReasonJudging      = "Judging"
	ReasonNoParent     = "NoParent"
	ReasonOutsideBlock = "OutsideBlock"
	ReasonOrphans      = "Orphans"
)

// Action is what a Verdict asks the controller to write.
type Action int

// Actions.
const (
	// Keep writes nothing: the pool has the range that it asks for, or it stays
	// what it is until something changes.
	Keep Action = iota
	// NeedsList asks for the live list of the pool's Subnets. Call Open again
	// with it.
	NeedsList
	// Grant gives the pool the range of its spec.
	Grant
	// Refuse records that this generation of the pool has lost.
	Refuse
	// Clear makes a pool that had lost a candidate again. It is a write of its
	// own, which gives the pool a new version.
	Clear
)

// A Verdict is the decision on a pool.
type Verdict struct {
	Action Action
	// Reason and Message of a refusal. The message contains the fix.
	Reason, Message string
}

// Facts are what Open knows about the surroundings of a pool. Others and Strays
// come from the informer's store, which must hold the pool in the version that is
// judged; Others may come from a later state of it.
type Facts struct {
	// Others are pools of the namespace. Those that do not overlap the pool's
	// spec, and the pool itself, may be among them or not.
	Others []Other
	// Strays are Allocated Subnets that overlap the pool's spec, although no
	// open pool contains them. Subnets of the pool itself are not among them.
	Strays []Stray
	// HasParent reports whether the pool of the name p.ParentName() exists. It
	// means nothing for a root.
	HasParent bool
	// Backing is the Subnet that backs the pool. It means nothing for a root.
	Backing Backing
	// Outside are Subnets of the pool that are not inside of its spec.
	Outside Listing
}

// An Other is what Open knows about another pool.
type Other struct {
	Name, Parent string
	// Spec and Open are what the pool asks for and what it has. The zero prefix
	// means none.
	Spec, Open netip.Prefix
	// Candidate reports whether it waits for a verdict.
	Candidate bool
	// Version is its resourceVersion.
	Version string
}

// A Stray is an Allocated Subnet of a pool that is not open, or does not exist.
// Such Subnets are stored by versions of Arbor that did not open pools, or remain
// where a finalizer was removed by force.
type Stray struct {
	Name, CIDR string
	// Pool is spec.poolRef, Exists whether that pool does.
	Pool   string
	Exists bool
	// Parent is the parent of that pool.
	Parent string
	// Backed reports whether an Allocated Subnet which backs a child pool of the
	// judged pool contains this one, so that the judged pool never allocates its
	// addresses.
	Backed bool
}

// A Backing is the Subnet that backs a child pool: a Subnet of the parent that is
// Allocated, not being deleted, has the finalizer, and whose status.poolUID is the
// UID of the pool. The zero Backing means that the verdict on it is not known.
type Backing struct {
	// Prefix of that Subnet, the zero prefix if there is none.
	Prefix netip.Prefix
	// Reason and Message say why there is none, if that is known: the parent
	// has no such block.
	Reason, Message string
}

// A Listing is the outcome of listing the Subnets of the judged pool. Subnets
// that are Failed do not count.
type Listing struct {
	// Live means that the list was read from the API server, and that it began
	// when the judged version of the pool was known. Otherwise it comes from the
	// informer's store.
	Live bool
	// Example is a Subnet that is not inside of the pool's spec, such as
	// "10.0.1.0/24 of Subnet x", "" if there is none.
	Example string
}

// OtherOf returns what Open needs to know about another pool.
func OtherOf(p *v1alpha1.SubnetPool) Other {
	o := Other{Name: p.Name, Parent: p.ParentName(), Open: open(p), Candidate: IsCandidate(p), Version: p.ResourceVersion}
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

// IsCandidate reports whether a pool asks for a range that it neither has nor was
// refused.
func IsCandidate(p *v1alpha1.SubnetPool) bool {
	return p.DeletionTimestamp == nil && p.Spec.CIDR != p.Open() && !IsLost(p)
}

// IsLost reports whether the pool's present generation was refused.
func IsLost(p *v1alpha1.SubnetPool) bool {
	return p.Status.Lost != 0 && p.Status.Lost == p.Generation
}

// Open decides whether a pool gets the range of its spec. Write the verdict on
// condition that the pool still has the version that was judged.
func Open(p *v1alpha1.SubnetPool, f Facts) Verdict {
	if p.DeletionTimestamp != nil || p.Spec.CIDR == p.Open() || !slices.Contains(p.Finalizers, v1alpha1.Finalizer) {
		return Verdict{}
	}
	v := judge(p, f)
	if !IsLost(p) || v.Action == Refuse || v.Action == Keep {
		return v
	}

	// A pool never goes from lost to open directly: other pools have counted it
	// as absent. As a candidate of a new version it is compared again.
	return Verdict{Action: Clear}
}

// judge decides as if the pool were a candidate.
func judge(p *v1alpha1.SubnetPool, f Facts) Verdict {
	prefix, problem := read(p)
	if problem != nil {
		return Verdict{Refuse, problem.Reason, problem.Message + ": " + problem.Fix}
	}
	rule := overlap
	if p.ParentName() != "" {
		rule = backed
	}
	for _, r := range []func(*v1alpha1.SubnetPool, netip.Prefix, Facts) (Verdict, bool){rule, strays, outside} {
		if v, done := r(p, prefix, f); done {
			return v
		}
	}

	return Verdict{Action: Grant}
}

// overlap compares a root with the other roots: with the ranges that they have,
// and with the ranges that older candidates ask for.
func overlap(p *v1alpha1.SubnetPool, prefix netip.Prefix, f Facts) (Verdict, bool) {
	const fix = "choose other addresses, or delete or shrink one of the two"
	for _, o := range f.Others {
		switch {
		case o.Name == p.Name || o.Parent != "":
		case overlaps(o.Open, prefix):
			return Verdict{Refuse, ReasonOverlap, fmt.Sprintf("%s overlaps %s, which pool %s has: %s", prefix, o.Open, o.Name, fix)}, true
		case o.Candidate && overlaps(o.Spec, prefix):
			order, err := resourceversion.CompareResourceVersion(o.Version, p.ResourceVersion)
			if err != nil {
				return Verdict{}, true
			}
			// A pool that has lost is older than it will be as a candidate.
			if order < 0 || IsLost(p) {
				return Verdict{Refuse, ReasonOverlap, fmt.Sprintf("%s overlaps %s, which pool %s asked for first: %s", prefix, o.Spec, o.Name, fix)}, true
			}
		}
	}

	return Verdict{}, false
}

// overlaps is Overlaps, and false for the zero prefix.
func overlaps(p, other netip.Prefix) bool { return p.IsValid() && p.Overlaps(other) }

// backed asks that a child lies inside of its backing Subnet. Nothing else
// decides about a child: the Subnet is compared with all that is taken from the
// parent.
func backed(p *v1alpha1.SubnetPool, prefix netip.Prefix, f Facts) (Verdict, bool) {
	switch b := f.Backing; {
	case !f.HasParent:
		return Verdict{Refuse, ReasonNoParent, fmt.Sprintf("the parent pool %s does not exist: create it, or create this pool again with another parent", p.ParentName())}, true
	case !b.Prefix.IsValid() && b.Reason == "":
		if IsLost(p) {
			return Verdict{Action: Clear}, true
		}

		return Verdict{}, true // the Subnet is not judged yet
	case !b.Prefix.IsValid():
		return Verdict{Refuse, b.Reason, b.Message}, true
	case !within(b.Prefix, prefix):
		return Verdict{Refuse, ReasonOutsideBlock, fmt.Sprintf("%s is not inside of %s, the block that this pool has of its parent %s: "+
			"choose a part of that block, or create another child pool", prefix, b.Prefix, p.ParentName())}, true
	}

	return Verdict{}, false
}

// strays asks that the range contains no Subnet which no open pool knows.
func strays(p *v1alpha1.SubnetPool, prefix netip.Prefix, f Facts) (Verdict, bool) {
	for _, s := range f.Strays {
		switch {
		case s.Backed:
		case !s.Exists:
			return Verdict{Refuse, ReasonOrphans, fmt.Sprintf("%s contains %s of Subnet %s, whose pool %s does not exist: "+
				"create that pool again, or delete the Subnet if its addresses are no longer used", prefix, s.CIDR, s.Name, s.Pool)}, true
		case s.Parent == p.Name:
			return Verdict{Refuse, ReasonInUse, fmt.Sprintf("the child pool %s has Subnets, such as %s of Subnet %s, but no backing Subnet in this pool: "+
				"stop the manager and run `arbor pools migrate`", s.Pool, s.CIDR, s.Name)}, true
		default:
			return Verdict{Refuse, ReasonInUse, fmt.Sprintf("%s contains %s of Subnet %s, which pool %s has, and that pool is not open: "+
				"release the Subnet, or choose other addresses for one of the two pools", prefix, s.CIDR, s.Name, s.Pool)}, true
		}
	}

	return Verdict{}, false
}

// outside asks that a pool which opens, or gives up addresses, contains all its
// Subnets. A pool that only grows does.
func outside(p *v1alpha1.SubnetPool, prefix netip.Prefix, f Facts) (Verdict, bool) {
	if has := open(p); has.IsValid() && within(prefix, has) {
		return Verdict{}, false
	}
	switch {
	case f.Outside.Example != "":
		return Verdict{Refuse, ReasonInUse, fmt.Sprintf("%s leaves out %s, which is in use: choose a CIDR that contains everything "+
			"that was taken from the pool, or release that first", prefix, f.Outside.Example)}, true
	case !f.Outside.Live:
		return Verdict{Action: NeedsList}, true
	}

	return Verdict{}, false
}
