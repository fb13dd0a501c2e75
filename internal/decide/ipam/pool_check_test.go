package ipam_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// A change makes a pool or a Subnet of a table a little different.
type change func(p *v1alpha1.SubnetPool)

func a(name, cidr string, changes ...change) v1alpha1.SubnetPool {
	p := v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: v1alpha1.SubnetPoolSpec{CIDR: cidr}}
	for _, c := range changes {
		c(&p)
	}

	return p
}

func from(parent string) change { return func(p *v1alpha1.SubnetPool) { p.Spec.Parent = parent } }

func labelled(parent string) change {
	return func(p *v1alpha1.SubnetPool) { p.Labels = map[string]string{v1alpha1.ParentLabel: parent} }
}

func sizes(normal, least, most *int32) change {
	return func(p *v1alpha1.SubnetPool) {
		p.Spec.DefaultBlockSize, p.Spec.MinBlockSize, p.Spec.MaxBlockSize = normal, least, most
	}
}

// ownedBy an object of the pool's own name.
func ownedBy(kind string) change {
	return func(p *v1alpha1.SubnetPool) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "plexaubnet.io/v1alpha1", Kind: kind, Name: p.Name, Controller: new(true)}}
	}
}

// madeFor a SubnetPoolClaim.
func madeFor(claim string) change {
	return func(p *v1alpha1.SubnetPool) { p.Labels = map[string]string{v1alpha1.PoolClaimLabel: claim} }
}

// opened with a range.
func opened(cidr, parent string) change {
	return func(p *v1alpha1.SubnetPool) {
		p.UID = types.UID("uid-" + p.Name)
		p.Status.CIDR, p.Status.UID, p.Status.Parent = cidr, p.UID, parent
	}
}

// rejected is a change of a pool whose range was rejected.
func rejected(p *v1alpha1.SubnetPool) { p.Generation, p.Status.Lost = 1, 1 }

func backing(s v1alpha1.Subnet, child string, uid types.UID) v1alpha1.Subnet {
	s.Spec.Backs = &v1alpha1.PoolReference{Name: child, UID: uid}

	return s
}

func bound(s v1alpha1.Subnet, uid types.UID) v1alpha1.Subnet {
	s.Status.PoolUID = uid

	return s
}

func poolBlock(name, cidr string) v1alpha1.Subnet {
	return v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.SubnetSpec{CIDR: cidr}}
}

func claimed(s v1alpha1.Subnet, claim string) v1alpha1.Subnet {
	s.Spec.ClaimRef = &v1alpha1.ClaimReference{Name: claim}

	return s
}

func failed(s v1alpha1.Subnet) v1alpha1.Subnet {
	s.Status.Phase = v1alpha1.SubnetFailed

	return s
}

// poolProblems returns problems and warnings as lines.
func poolProblems(v verdict.Verdict) []string {
	var all []string
	for _, p := range v.Problems {
		all = append(all, fmt.Sprintf("%s %s=%s: %s (%s)", p.Reason, p.Field, p.Value, p.Message, p.Fix))
	}
	for _, w := range v.Warnings {
		all = append(all, "warning "+w.String())
	}

	return all
}

func TestPoolParent(t *testing.T) {
	cases := map[string]struct {
		reason string
		pool   v1alpha1.SubnetPool
		want   string
	}{
		"Root":  {"A pool that names no parent has none.", a("x", ""), ""},
		"Spec":  {"The spec names it.", a("x", "", from("p")), "p"},
		"Label": {"Or the label, where the spec could not yet.", a("x", "", labelled("p")), "p"},
		"Both":  {"The spec takes precedence.", a("x", "", from("p"), labelled("q")), "p"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.pool.ParentName(); got != tc.want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

type pools = []v1alpha1.SubnetPool

type subnets = []v1alpha1.Subnet

func TestCheckPool(t *testing.T) {
	const (
		whole     = "10.0.0.0/8"
		freeThere = "(choose addresses that are free there; a SubnetPoolClaim finds some)"
		release   = "(choose a CIDR that contains everything that was taken from the pool, or release that first)"
		noOthers  = "(choose addresses that no other child of p has)"
		other     = "(choose other addresses, or set spec.parent if one is taken from the other)"
		notItself = "(name a parent that is not among its own children, or none)"
	)

	cases := map[string]struct {
		reason string
		pool   v1alpha1.SubnetPool
		around ipam.PoolNeighbors
		want   []string
	}{
		"Fine":     {reason: "A prefix of its own is fine.", pool: a("x", "10.0.0.0/16")},
		"Six":      {reason: "Of either family.", pool: a("x", "fd00::/48")},
		"One":      {reason: "A single address is a prefix too.", pool: a("x", "10.0.0.1/32")},
		"Rubbish":  {reason: "A text that is not a CIDR is rejected.", pool: a("x", "ten"), want: []string{`InvalidCIDR spec.cidr=ten: "ten" is not a CIDR (write an address and a length, such as 10.0.0.0/16 or fd00::/48)`}},
		"Address":  {reason: "An address without a length is not a CIDR.", pool: a("x", "10.0.0.0"), want: []string{`InvalidCIDR spec.cidr=10.0.0.0: "10.0.0.0" is not a CIDR (write an address and a length, such as 10.0.0.0/16 or fd00::/48)`}},
		"Unmasked": {reason: "Bits behind the length are rejected.", pool: a("x", "10.0.0.1/16"), want: []string{`NotMasked spec.cidr=10.0.0.1/16: 10.0.0.1/16 has bits set behind its length (write 10.0.0.0/16)`}},
		"Mapped":   {reason: "IPv4 in the clothes of IPv6 would be a second name for the same addresses.", pool: a("x", "::ffff:10.0.0.0/104"), want: []string{"IPv4AsIPv6 spec.cidr=::ffff:10.0.0.0/104: ::ffff:10.0.0.0/104 is IPv4 written as IPv6 (write 10.0.0.0/8)"}},
		"Around":   {reason: "A range that contains all mapped IPv4 addresses and more is valid.", pool: a("x", "::/80")},
		"Nothing": {
			reason: "Nothing else is checked for a text that is not a prefix.",
			pool:   a("x", "10.0.0.1/16", from("x"), sizes(new(int32(99)), nil, nil)),
			want:   []string{`NotMasked spec.cidr=10.0.0.1/16: 10.0.0.1/16 has bits set behind its length (write 10.0.0.0/16)`},
		},

		"Sizes":    {reason: "IPv4 ends at 32.", pool: a("x", "10.0.0.0/16", sizes(new(int32(32)), new(int32(0)), new(int32(32))))},
		"Sizes6":   {reason: "IPv6 at 128.", pool: a("x", "fd00::/48", sizes(new(int32(64)), new(int32(48)), new(int32(128))))},
		"TooLong":  {reason: "A length that the family does not have is rejected.", pool: a("x", "10.0.0.0/16", sizes(new(int32(33)), nil, nil)), want: []string{"InvalidBlockSize spec.defaultBlockSize=33: IPv4 has no prefix of length 33 (choose a length of at most 32)"}},
		"TooLong6": {reason: "Of either family.", pool: a("x", "fd00::/48", sizes(nil, nil, new(int32(129)))), want: []string{"InvalidBlockSize spec.maxBlockSize=129: IPv6 has no prefix of length 129 (choose a length of at most 128)"}},
		"AllLong": {
			reason: "Each is named.",
			pool:   a("x", "10.0.0.0/16", sizes(new(int32(33)), new(int32(64)), new(int32(128)))),
			want: []string{
				"InvalidBlockSize spec.defaultBlockSize=33: IPv4 has no prefix of length 33 (choose a length of at most 32)",
				"InvalidBlockSize spec.minBlockSize=64: IPv4 has no prefix of length 64 (choose a length of at most 32)",
				"InvalidBlockSize spec.maxBlockSize=128: IPv4 has no prefix of length 128 (choose a length of at most 32)",
			},
		},
		"SmallPool": {
			reason: "24 stands in many old pools, also in those that are smaller.",
			pool:   a("x", "10.0.0.0/28", sizes(new(int32(24)), nil, nil)),
			want:   []string{"warning spec.defaultBlockSize: a /24 does not fit into 10.0.0.0/28; the condition Exhausted is about the whole pool instead"},
		},
		"FitsJust": {reason: "A block as large as the pool fits.", pool: a("x", "10.0.0.0/28", sizes(new(int32(28)), nil, new(int32(28))))},
		"NoneFits": {
			reason: "A pool that can serve no claim gets a warning.",
			pool:   a("x", "10.0.0.0/28", sizes(nil, new(int32(16)), new(int32(24)))),
			want:   []string{"warning spec.maxBlockSize: no block of at most /24 fits into 10.0.0.0/28, so every claim will fail"},
		},

		"Inside":      {reason: "A child lies in its parent.", pool: a("x", "10.1.0.0/16", from("p")), around: ipam.PoolNeighbors{Pools: pools{a("p", whole)}}},
		"InsideLabel": {reason: "Also one by label.", pool: a("x", "10.1.0.0/16", labelled("p")), around: ipam.PoolNeighbors{Pools: pools{a("p", whole)}}},
		"AllOfIt":     {reason: "It may be all of it.", pool: a("x", whole, from("p")), around: ipam.PoolNeighbors{Pools: pools{a("p", whole)}}},
		"Outside": {
			reason: "Not outside of it.",
			pool:   a("x", "11.0.0.0/16", from("p")), around: ipam.PoolNeighbors{Pools: pools{a("p", whole)}},
			want: []string{"OutsideParent spec.cidr=11.0.0.0/16: 11.0.0.0/16 is not inside of 10.0.0.0/8, which its parent p has (choose a part of 10.0.0.0/8, or another parent)"},
		},
		"OutsideLabel": {
			reason: "The label counts as the spec does.",
			pool:   a("x", "11.0.0.0/16", labelled("p")), around: ipam.PoolNeighbors{Pools: pools{a("p", whole)}},
			want: []string{"OutsideParent spec.cidr=11.0.0.0/16: 11.0.0.0/16 is not inside of 10.0.0.0/8, which its parent p has (choose a part of 10.0.0.0/8, or another parent)"},
		},
		"Larger": {
			reason: "Nor around it.",
			pool:   a("x", "10.0.0.0/7", from("p")), around: ipam.PoolNeighbors{Pools: pools{a("p", whole)}},
			want: []string{"OutsideParent spec.cidr=10.0.0.0/7: 10.0.0.0/7 is not inside of 10.0.0.0/8, which its parent p has (choose a part of 10.0.0.0/8, or another parent)"},
		},
		"OtherFamily": {
			reason: "Nor of the other family.",
			pool:   a("x", "fd00::/48", from("p")), around: ipam.PoolNeighbors{Pools: pools{a("p", "0.0.0.0/0")}},
			want: []string{"OutsideParent spec.cidr=fd00::/48: fd00::/48 is not inside of 0.0.0.0/0, which its parent p has (choose a part of 0.0.0.0/0, or another parent)"},
		},
		"NoParent": {
			reason: "A parent may come later.",
			pool:   a("x", "10.1.0.0/16", from("p")), around: ipam.PoolNeighbors{Pools: pools{a("q", "11.0.0.0/8")}},
			want: []string{"warning spec.parent: there is no pool p in this namespace yet"},
		},
		"NoParentOverlap": {
			reason: "Until then it counts as a root, or no rule would compare it with another pool.",
			pool:   a("x", "10.1.0.0/16", from("p")), around: ipam.PoolNeighbors{Pools: pools{a("q", whole)}},
			want: []string{
				"Overlap spec.cidr=10.1.0.0/16: 10.1.0.0/16 overlaps 10.0.0.0/8 of pool q, which is a root pool of this namespace (create the parent p first, or choose other addresses)",
				"warning spec.parent: there is no pool p in this namespace yet",
			},
		},
		"NoParents": {
			reason: "Also two whose parents have different names.",
			pool:   a("x", "10.1.0.0/16", from("p")), around: ipam.PoolNeighbors{Pools: pools{a("y", "10.1.0.0/16", from("q"))}},
			want: []string{
				"Overlap spec.cidr=10.1.0.0/16: 10.1.0.0/16 overlaps 10.1.0.0/16 of pool y, which is a root pool of this namespace (create the parent p first, or choose other addresses)",
				"warning spec.parent: there is no pool p in this namespace yet",
			},
		},
		"ParentLater": {reason: "The parent may come after its child.", pool: a("p", whole), around: ipam.PoolNeighbors{Pools: pools{a("x", "10.1.0.0/16", from("p"))}}},
		"BadParent":   {reason: "An invalid CIDR of the parent is the parent's problem.", pool: a("x", "10.1.0.0/16", from("p")), around: ipam.PoolNeighbors{Pools: pools{a("p", "10.0.0.1/8")}}},

		"Itself": {
			reason: "A pool is never its own parent.",
			pool:   a("x", "10.1.0.0/16", from("x")),
			want:   []string{"ParentCycle spec.parent=x: pool x would be taken from itself: x -> x " + notItself},
		},
		"Two": {
			reason: "Nor by way of another.",
			pool:   a("x", "10.1.0.0/16", from("y")), around: ipam.PoolNeighbors{Pools: pools{a("x", "10.1.0.0/16"), a("y", "10.1.0.0/16", labelled("x"))}},
			want: []string{"ParentCycle spec.parent=y: pool x would be taken from itself: x -> y -> x " + notItself},
		},
		"Three": {
			reason: "Nor of two other pools.",
			pool:   a("x", whole, from("y")), around: ipam.PoolNeighbors{Pools: pools{a("z", whole, from("x")), a("y", whole, from("z"))}},
			want: []string{"ParentCycle spec.parent=y: pool x would be taken from itself: x -> y -> z -> x " + notItself},
		},
		"Chain":       {reason: "A chain that ends is not a cycle.", pool: a("x", whole, from("y")), around: ipam.PoolNeighbors{Pools: pools{a("x", whole), a("y", whole, from("z")), a("z", whole)}}},
		"ChainBroken": {reason: "Nor is one that ends in nothing.", pool: a("x", whole, from("y")), around: ipam.PoolNeighbors{Pools: pools{a("y", whole, from("z"))}}},
		"ForeignRing": {reason: "A cycle of other pools is their problem.", pool: a("x", whole, from("y")), around: ipam.PoolNeighbors{Pools: pools{a("y", whole, from("z")), a("z", "11.0.0.0/8", from("y"))}}},

		"RootInside": {
			reason: "Two roots share no addresses.",
			pool:   a("x", "10.1.0.0/16"), around: ipam.PoolNeighbors{Pools: pools{a("y", whole)}},
			want: []string{"Overlap spec.cidr=10.1.0.0/16: 10.1.0.0/16 overlaps 10.0.0.0/8 of pool y, which is a root pool of this namespace too " + other},
		},
		"RootAround": {
			reason: "Whichever is larger.",
			pool:   a("x", whole), around: ipam.PoolNeighbors{Pools: pools{a("y", "10.1.0.0/16"), a("z", "10.2.0.0/16"), a("far", "11.0.0.0/8")}},
			want: []string{
				"Overlap spec.cidr=10.0.0.0/8: 10.0.0.0/8 overlaps 10.1.0.0/16 of pool y, which is a root pool of this namespace too " + other,
				"Overlap spec.cidr=10.0.0.0/8: 10.0.0.0/8 overlaps 10.2.0.0/16 of pool z, which is a root pool of this namespace too " + other,
			},
		},
		"RootSame": {
			reason: "Least of all the same.",
			pool:   a("x", whole), around: ipam.PoolNeighbors{Pools: pools{a("y", whole)}},
			want: []string{"Overlap spec.cidr=10.0.0.0/8: 10.0.0.0/8 overlaps 10.0.0.0/8 of pool y, which is a root pool of this namespace too " + other},
		},
		"RootUnmasked": {
			reason: "Bits behind the length of the other do not hide it.",
			pool:   a("x", whole), around: ipam.PoolNeighbors{Pools: pools{a("y", "10.0.0.1/16")}},
			want: []string{"Overlap spec.cidr=10.0.0.0/8: 10.0.0.0/8 overlaps 10.0.0.1/16 of pool y, which is a root pool of this namespace too " + other},
		},
		"RootBeside":  {reason: "Adjacent ranges do not overlap.", pool: a("x", "10.0.0.0/16"), around: ipam.PoolNeighbors{Pools: pools{a("y", "10.1.0.0/16")}}},
		"RootSelf":    {reason: "Nor is what is stored of the pool itself.", pool: a("x", "10.0.0.0/16"), around: ipam.PoolNeighbors{Pools: pools{a("x", whole)}}},
		"RootFamily":  {reason: "Nor are the two families.", pool: a("x", "0.0.0.0/0"), around: ipam.PoolNeighbors{Pools: pools{a("y", "::/0")}}},
		"RootRubbish": {reason: "Nor does a text that is not a prefix.", pool: a("x", whole), around: ipam.PoolNeighbors{Pools: pools{a("y", "ten")}}},
		"RootChild":   {reason: "A root and the children of its parent are not siblings: the parent contains them.", pool: a("x", "10.1.0.0/16", from("z")), around: ipam.PoolNeighbors{Pools: pools{a("z", whole), a("y", "10.1.0.0/16", from("w")), a("w", "10.1.0.0/16", from("v")), a("v", "11.0.0.0/8")}}},
		"RootLost": {
			reason: "A pool whose parent does not exist is compared with roots.",
			pool:   a("x", "10.1.0.0/16"), around: ipam.PoolNeighbors{Pools: pools{a("y", "10.1.0.0/16", from("z"))}},
			want: []string{"Overlap spec.cidr=10.1.0.0/16: 10.1.0.0/16 overlaps 10.1.0.0/16 of pool y, which is taken from z, a pool that does not exist " + other},
		},
		"RootOpen": {
			reason: "A range that a pool has counts, also if the pool asks for another by now.",
			pool:   a("x", "10.1.0.0/16"), around: ipam.PoolNeighbors{Pools: pools{a("y", "11.0.0.0/16", opened("10.1.2.0/24", ""))}},
			want: []string{"Overlap spec.cidr=10.1.0.0/16: 10.1.0.0/16 overlaps 10.1.2.0/24 of pool y, which is a root pool of this namespace too " + other},
		},
		"RootRefused": {reason: "A range for which a pool was rejected does not count.", pool: a("x", "10.1.0.0/16"), around: ipam.PoolNeighbors{Pools: pools{a("y", whole, rejected)}}},
		"RootAskedAgain": {
			reason: "The pool has changed its range since another was rejected.",
			pool:   a("x", "10.1.0.0/16"), around: ipam.PoolNeighbors{Pools: pools{a("y", whole, rejected, func(p *v1alpha1.SubnetPool) { p.Generation++ })}},
			want: []string{"Overlap spec.cidr=10.1.0.0/16: 10.1.0.0/16 overlaps 10.0.0.0/8 of pool y, which is a root pool of this namespace too " + other},
		},
		"RootRefusedMore": {
			reason: "A pool for which another range was rejected still has its own.",
			pool:   a("x", "10.1.0.0/16"), around: ipam.PoolNeighbors{Pools: pools{a("y", whole, opened("10.1.2.0/24", ""), rejected)}},
			want: []string{"Overlap spec.cidr=10.1.0.0/16: 10.1.0.0/16 overlaps 10.1.2.0/24 of pool y, which is a root pool of this namespace too " + other},
		},
		"Sibling": {
			reason: "Children of one parent share no addresses, however they name it.",
			pool:   a("x", "10.1.0.0/16", from("p")), around: ipam.PoolNeighbors{Pools: pools{a("p", whole), a("y", "10.1.2.0/24", labelled("p"))}},
			want: []string{"Overlap spec.cidr=10.1.0.0/16: 10.1.0.0/16 overlaps 10.1.2.0/24 of pool y, which is also taken from p " + noOthers},
		},
		"SiblingInside": {
			reason: "In either direction.",
			pool:   a("x", "10.1.2.0/24", labelled("p")), around: ipam.PoolNeighbors{Pools: pools{a("p", whole), a("y", "10.1.0.0/16", from("p"))}},
			want: []string{"Overlap spec.cidr=10.1.2.0/24: 10.1.2.0/24 overlaps 10.1.0.0/16 of pool y, which is also taken from p " + noOthers},
		},
		"SiblingFar": {reason: "Pools with different parents are not siblings.", pool: a("x", "10.1.0.0/16", from("p")), around: ipam.PoolNeighbors{Pools: pools{a("p", whole), a("q", "10.1.0.0/16", from("p2")), a("p2", whole), a("y", "10.1.0.0/16", from("q"))}}},

		"ParentSubnets": {
			reason: "Addresses that a Subnet has of the parent cannot be delegated.",
			pool:   a("x", "10.1.0.0/16", from("p")), around: ipam.PoolNeighbors{Pools: pools{a("p", whole)}, ParentSubnets: subnets{poolBlock("s", "10.1.2.0/24")}},
			want: []string{"Overlap spec.cidr=10.1.0.0/16: 10.1.0.0/16 overlaps 10.1.2.0/24, which Subnet s has of the parent p " + freeThere},
		},
		"BesideAround": {
			reason: "Not even a part of it.",
			pool:   a("x", "10.1.0.0/16", from("p")), around: ipam.PoolNeighbors{Pools: pools{a("p", whole)}, ParentSubnets: subnets{poolBlock("s", "10.0.0.0/10")}},
			want: []string{"Overlap spec.cidr=10.1.0.0/16: 10.1.0.0/16 overlaps 10.0.0.0/10, which Subnet s has of the parent p " + freeThere},
		},
		"BesideFree": {
			reason: "Adjacent Subnets, Failed ones, and texts that are not a prefix do not conflict.",
			pool:   a("x", "10.1.0.0/16", from("p")),
			around: ipam.PoolNeighbors{Pools: pools{a("p", whole)}, ParentSubnets: subnets{poolBlock("s", "10.2.0.0/16"), failed(poolBlock("f", "10.1.0.0/16")), poolBlock("r", "ten")}},
		},
		"Backed": {
			reason: "The Subnet that a SubnetPoolClaim took for the pool is the pool's own.",
			pool:   a("x", "10.1.0.0/16", from("p"), ownedBy("SubnetPoolClaim")),
			around: ipam.PoolNeighbors{Pools: pools{a("p", whole)}, ParentSubnets: subnets{claimed(poolBlock("s", "10.1.0.0/16"), "x")}},
		},
		"BackedPart": {
			reason: "Only if it is the very block.",
			pool:   a("x", "10.1.0.0/16", from("p"), ownedBy("SubnetPoolClaim")),
			around: ipam.PoolNeighbors{Pools: pools{a("p", whole)}, ParentSubnets: subnets{claimed(poolBlock("s", "10.1.0.0/17"), "x")}},
			want:   []string{"Overlap spec.cidr=10.1.0.0/16: 10.1.0.0/16 overlaps 10.1.0.0/17, which Subnet s has of the parent p " + freeThere},
		},
		"BackedOther": {
			reason: "And only if it was taken for this claim.",
			pool:   a("x", "10.1.0.0/16", from("p"), ownedBy("SubnetPoolClaim")),
			around: ipam.PoolNeighbors{Pools: pools{a("p", whole)}, ParentSubnets: subnets{claimed(poolBlock("s", "10.1.0.0/16"), "y"), poolBlock("t", "10.1.0.0/16")}},
			want: []string{
				"Overlap spec.cidr=10.1.0.0/16: 10.1.0.0/16 overlaps 10.1.0.0/16, which Subnet s has of the parent p " + freeThere,
				"Overlap spec.cidr=10.1.0.0/16: 10.1.0.0/16 overlaps 10.1.0.0/16, which Subnet t has of the parent p " + freeThere,
			},
		},
		"BackedByHand": {
			reason: "A pool that a user created has no such Subnet.",
			pool:   a("x", "10.1.0.0/16", from("p"), ownedBy("Tenant")),
			around: ipam.PoolNeighbors{Pools: pools{a("p", whole)}, ParentSubnets: subnets{claimed(poolBlock("s", "10.1.0.0/16"), "x")}},
			want:   []string{"Overlap spec.cidr=10.1.0.0/16: 10.1.0.0/16 overlaps 10.1.0.0/16, which Subnet s has of the parent p " + freeThere},
		},

		"BacksName": {
			reason: "A Subnet that names the pool is its own, whatever UID it had before a restore.",
			pool:   a("x", "10.1.0.0/17", from("p")),
			around: ipam.PoolNeighbors{Pools: pools{a("p", whole)}, ParentSubnets: subnets{backing(poolBlock("s", "10.1.0.0/16"), "x", "old")}},
		},
		"BacksUID": {
			reason: "So is one that is bound to it.",
			pool:   a("x", "10.1.0.0/16", from("p"), opened("10.1.0.0/16", "p")),
			around: ipam.PoolNeighbors{Pools: pools{a("p", whole)}, ParentSubnets: subnets{bound(poolBlock("s", "10.1.0.0/16"), "uid-x")}},
		},
		"BacksOther": {
			reason: "Not one of another pool, even if its claim has the name of this one.",
			pool:   a("x", "10.1.0.0/16", from("p"), ownedBy("SubnetPoolClaim")),
			around: ipam.PoolNeighbors{Pools: pools{a("p", whole)}, ParentSubnets: subnets{backing(claimed(poolBlock("s", "10.1.0.0/16"), "x"), "y", "")}},
			want:   []string{"Overlap spec.cidr=10.1.0.0/16: 10.1.0.0/16 overlaps 10.1.0.0/16, which Subnet s has of the parent p " + freeThere},
		},
		"BacksLabel": {
			reason: "Stored Subnets are found by the label too, where the owner reference is gone.",
			pool:   a("x", "10.1.0.0/16", from("p"), madeFor("x")),
			around: ipam.PoolNeighbors{Pools: pools{a("p", whole)}, ParentSubnets: subnets{claimed(poolBlock("s", "10.1.0.0/16"), "x-block")}},
		},
		"Outgrown": {
			reason: "A child cannot grow out of its block.",
			pool:   a("x", "10.0.0.0/15", from("p")),
			around: ipam.PoolNeighbors{Pools: pools{a("p", whole)}, ParentSubnets: subnets{backing(poolBlock("s", "10.1.0.0/16"), "x", "")}},
			want:   []string{"OutsideBlock spec.cidr=10.0.0.0/15: 10.0.0.0/15 is not inside of 10.1.0.0/16, which Subnet s keeps for this pool in the parent p (choose a part of 10.1.0.0/16, or create another child pool)"},
		},

		"Shrunk": {
			reason: "A pool must still contain its Subnets.",
			pool:   a("x", "10.0.0.0/16"), around: ipam.PoolNeighbors{Inside: subnets{poolBlock("in", "10.0.0.0/24"), poolBlock("out", "10.1.0.0/24")}},
			want: []string{"InUse spec.cidr=10.0.0.0/16: 10.0.0.0/16 leaves out 10.1.0.0/24 of Subnet out, which is in use " + release},
		},
		"ShrunkBelow": {
			reason: "All of it.",
			pool:   a("x", "10.0.0.0/25"), around: ipam.PoolNeighbors{Inside: subnets{poolBlock("s", "10.0.0.0/24")}},
			want: []string{"InUse spec.cidr=10.0.0.0/25: 10.0.0.0/25 leaves out 10.0.0.0/24 of Subnet s, which is in use " + release},
		},
		"ShrunkChild": {
			reason: "Child pools live in it as well.",
			pool:   a("x", "10.0.0.0/16"), around: ipam.PoolNeighbors{Pools: pools{a("x", whole), a("c", "10.1.0.0/16", labelled("x"))}},
			want: []string{"InUse spec.cidr=10.0.0.0/16: 10.0.0.0/16 leaves out 10.1.0.0/16 of child pool c, which is in use " + release},
		},
		"ShrunkBacked": {
			reason: "A child pool and the Subnet that backs it are one block.",
			pool:   a("x", "10.0.0.0/16"),
			around: ipam.PoolNeighbors{Pools: pools{a("c", "10.1.0.0/17", from("x"))}, Inside: subnets{backing(poolBlock("s", "10.1.0.0/16"), "c", "")}},
			want:   []string{"InUse spec.cidr=10.0.0.0/16: 10.0.0.0/16 leaves out 10.1.0.0/16 of Subnet s, which is in use " + release},
		},
		"ShrunkMany": {
			reason: "Of many, one is named, always the same.",
			pool:   a("x", "10.0.0.0/16"),
			around: ipam.PoolNeighbors{Pools: pools{a("c", "10.1.0.0/16", from("x"))}, Inside: subnets{poolBlock("s", "10.3.0.0/24"), poolBlock("r", "10.2.0.0/24")}},
			want:   []string{"InUse spec.cidr=10.0.0.0/16: 10.0.0.0/16 leaves out 3 blocks that are in use, such as 10.1.0.0/16 of child pool c " + release},
		},
		"ShrunkJust": {
			reason: "A block that fits exactly is not left out; nor is a Failed one, a text that is not a prefix, or a child of another pool.",
			pool:   a("x", "10.0.0.0/24"),
			around: ipam.PoolNeighbors{
				Pools:  pools{a("c", "10.0.0.0/24", from("x")), a("o", "10.9.0.0/24", from("y")), a("r", "ten", from("x"))},
				Inside: subnets{poolBlock("s", "10.0.0.0/24"), failed(poolBlock("f", "10.9.0.0/24")), poolBlock("r", "ten")},
			},
		},

		"Everything": {
			reason: "All problems are reported, in the order of the rules.",
			pool:   a("x", "10.1.0.0/16", from("p"), sizes(new(int32(8)), new(int32(40)), nil)),
			around: ipam.PoolNeighbors{
				Pools:         pools{a("p", "11.0.0.0/8"), a("y", "10.1.0.0/16", from("p"))},
				ParentSubnets: subnets{poolBlock("b", "10.1.0.0/24")}, Inside: subnets{poolBlock("i", "10.2.0.0/24")},
			},
			want: []string{
				"InvalidBlockSize spec.minBlockSize=40: IPv4 has no prefix of length 40 (choose a length of at most 32)",
				"OutsideParent spec.cidr=10.1.0.0/16: 10.1.0.0/16 is not inside of 11.0.0.0/8, which its parent p has (choose a part of 11.0.0.0/8, or another parent)",
				"Overlap spec.cidr=10.1.0.0/16: 10.1.0.0/16 overlaps 10.1.0.0/16 of pool y, which is also taken from p " + noOthers,
				"Overlap spec.cidr=10.1.0.0/16: 10.1.0.0/16 overlaps 10.1.0.0/24, which Subnet b has of the parent p " + freeThere,
				"InUse spec.cidr=10.1.0.0/16: 10.1.0.0/16 leaves out 10.2.0.0/24 of Subnet i, which is in use " + release,
				"warning spec.defaultBlockSize: a /8 does not fit into 10.1.0.0/16; the condition Exhausted is about the whole pool instead",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, poolProblems(ipam.CheckPool(&tc.pool, tc.around))); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAdmitPool(t *testing.T) {
	const (
		unmasked = "NotMasked spec.cidr=10.0.0.1/16: 10.0.0.1/16 has bits set behind its length (write 10.0.0.0/16)"
		stored   = "warning spec.cidr: the stored pool breaks the rule and should be fixed: "
		overlap  = "10.0.0.0/16 overlaps 10.0.0.0/8 of pool y, which is a root pool of this namespace too"
		tooLong  = "InvalidBlockSize spec.maxBlockSize=33: IPv4 has no prefix of length 33 (choose a length of at most 32)"
	)
	overlapping := ipam.PoolNeighbors{Pools: pools{a("y", "10.0.0.0/8")}}

	cases := map[string]struct {
		reason        string
		before, after v1alpha1.SubnetPool
		isNew         bool
		around        ipam.PoolNeighbors
		want          []string
	}{
		"New":    {reason: "A new pool is checked as it is.", isNew: true, after: a("x", "10.0.0.1/16"), want: []string{unmasked}},
		"Fine":   {reason: "A change from good to good passes.", before: a("x", "10.0.0.0/16"), after: a("x", "10.0.0.0/15")},
		"Worse":  {reason: "A change to the bad does not.", before: a("x", "10.0.0.0/16"), after: a("x", "10.0.0.1/16"), want: []string{unmasked}},
		"Mended": {reason: "A change that fixes the problem passes without a warning.", before: a("x", "10.0.0.1/16"), after: a("x", "10.0.0.0/16")},
		"Same": {
			reason: "An old problem that the change does not touch passes, or no label or finalizer could be written.",
			before: a("x", "10.0.0.1/16"), after: a("x", "10.0.0.1/16", labelled("")),
			want: []string{stored + "10.0.0.1/16 has bits set behind its length"},
		},
		"RootAfterGrandchild": {
			reason: "A backup brings pools back in any order: a root is admitted although a grandchild is there before the child.",
			isNew:  true, after: a("x", "10.0.0.0/16"),
			around: ipam.PoolNeighbors{Pools: pools{a("y", "10.0.0.0/20", from("later"))}},
			want: []string{"warning spec.cidr: 10.0.0.0/16 overlaps 10.0.0.0/20 of pool y, which is taken from later, a pool that does not exist" +
				"; the one without its parent is not opened before that exists"},
		},
		"Narrower": {
			reason: "A change that takes fewer addresses of another object is an improvement.",
			before: a("x", "10.0.0.0/15"), after: a("x", "10.0.0.0/16"), around: overlapping,
			want: []string{stored + overlap},
		},
		"Otherwise": {
			reason: "To be wrong in another way is a change.",
			before: a("x", "10.0.0.0/17"), after: a("x", "10.0.0.0/16"), around: overlapping,
			want: []string{"Overlap spec.cidr=10.0.0.0/16: " + overlap + " (choose other addresses, or set spec.parent if one is taken from the other)"},
		},
		"Another": {
			reason: "An old problem does not permit a new one: the new one is rejected, and the old one reported.",
			before: a("x", "10.0.0.0/16"), after: a("x", "10.0.0.0/16", sizes(nil, nil, new(int32(33)))), around: overlapping,
			want: []string{tooLong, stored + overlap},
		},
		"OneOfTwo": {
			reason: "A change that fixes one of two old problems passes.",
			before: a("x", "10.0.0.0/16", sizes(nil, nil, new(int32(33)))), after: a("x", "10.0.0.0/16"), around: overlapping,
			want: []string{stored + overlap},
		},
		"TwoOld": {
			reason: "Of several old ones the first is named.",
			before: a("x", "10.0.0.0/16", sizes(nil, nil, new(int32(33)))), after: a("x", "10.0.0.0/16", sizes(nil, nil, new(int32(33)))), around: overlapping,
			want: []string{"warning spec.maxBlockSize: the stored pool breaks the rule and should be fixed: IPv4 has no prefix of length 33 (and 1 more)"},
		},
		"Warnings": {
			reason: "Warnings are reported next to the stored problem.",
			before: a("x", "10.0.0.0/16"), after: a("x", "10.0.0.0/16", sizes(new(int32(8)), nil, nil)), around: overlapping,
			want: []string{"warning spec.defaultBlockSize: a /8 does not fit into 10.0.0.0/16; the condition Exhausted is about the whole pool instead", stored + overlap},
		},
		"Shrink": {
			reason: "A pool cannot shrink below what lives in it.",
			before: a("x", "10.0.0.0/16"), after: a("x", "10.0.0.0/24"), around: ipam.PoolNeighbors{Inside: subnets{poolBlock("s", "10.0.1.0/24")}},
			want: []string{"InUse spec.cidr=10.0.0.0/24: 10.0.0.0/24 leaves out 10.0.1.0/24 of Subnet s, which is in use (choose a CIDR that contains everything that was taken from the pool, or release that first)"},
		},
		"ShrinkFree": {
			reason: "It may where nothing lives.",
			before: a("x", "10.0.0.0/16"), after: a("x", "10.0.0.0/24"), around: ipam.PoolNeighbors{Inside: subnets{poolBlock("s", "10.0.0.128/25"), failed(poolBlock("f", "10.0.1.0/24"))}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := &tc.before
			if tc.isNew {
				before = nil
			}
			if diff := cmp.Diff(tc.want, poolProblems(ipam.AdmitPool(before, &tc.after, tc.around))); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzCheckPool gives the rules anything for names, prefixes and sizes: no panic,
// an unchanged pool always passes, and a problem of one of two siblings is a
// problem of the other.
func FuzzCheckPool(f *testing.F) {
	f.Add("10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "", "", int32(24))
	f.Add("10.0.0.0/8", "10.1.0.0/16", "10.1.0.0/16", "y", "x", int32(33))
	f.Add("::/0", "::ffff:10.0.0.0/104", "ten", "z", "z", int32(-1))
	f.Add("10.0.0.1/8", "fd00::/64", "10.0.0.0/33", "y", "z", int32(129))

	f.Fuzz(func(t *testing.T, one, two, taken, parentOne, parentTwo string, size int32) {
		x, y := a("x", one, from(parentOne), sizes(&size, &size, &size)), a("y", two, from(parentTwo))
		around := ipam.PoolNeighbors{Pools: pools{x, y, a("z", taken, labelled(parentTwo))}, Inside: subnets{poolBlock("i", taken)}, ParentSubnets: subnets{claimed(poolBlock("b", taken), "x")}}
		if v := ipam.AdmitPool(&x, &x, around); !v.Allowed() {
			t.Errorf("an unchanged pool is rejected: %v", v.Problems)
		}
		overlaps := func(p *v1alpha1.SubnetPool, o v1alpha1.SubnetPool) bool {
			return ipam.CheckPool(p, ipam.PoolNeighbors{Pools: pools{o}}).Reason() == ipam.ReasonOverlap
		}
		x, y = a("x", one), a("y", two)
		bad := func(p *v1alpha1.SubnetPool) bool { return !ipam.CheckPool(p, ipam.PoolNeighbors{}).Allowed() }
		if !bad(&x) && !bad(&y) && overlaps(&x, y) != overlaps(&y, x) {
			t.Errorf("%s and %s overlap in one direction only", one, two)
		}
	})
}
