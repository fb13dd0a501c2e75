package ipam_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipam"
)

func made(name, cidr string) v1alpha1.Subnet {
	return v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.SubnetSpec{PoolRef: "p", CIDR: cidr}}
}

// claimedSubnet is a Subnet that was taken for the claim c.
func claimedSubnet(s v1alpha1.Subnet) v1alpha1.Subnet {
	s.Spec.ClaimRef = &v1alpha1.ClaimReference{Name: "c"}

	return s
}

// backingSubnet is a Subnet that names a child pool.
func backingSubnet(child string, s v1alpha1.Subnet) v1alpha1.Subnet {
	s.Spec.Backs = &v1alpha1.PoolReference{Name: child}

	return s
}

func in(phase v1alpha1.SubnetPhase, s v1alpha1.Subnet) v1alpha1.Subnet {
	s.Status.Phase = phase

	return s
}

func poolOf(name, cidr string) v1alpha1.SubnetPool {
	return v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.SubnetPoolSpec{CIDR: cidr}}
}

// claimedPool is the pool of the SubnetPoolClaim c.
func claimedPool(cidr string) v1alpha1.SubnetPool {
	p := poolOf("c", cidr)
	p.OwnerReferences = []metav1.OwnerReference{{Kind: v1alpha1.SubnetPoolClaimKind, Name: "c", Controller: new(true)}}

	return p
}

func subnetProblems(s *v1alpha1.Subnet, a ipam.SubnetNeighbors) []string {
	var all []string
	v := ipam.CheckSubnet(s, a)
	for _, p := range v.Problems {
		all = append(all, fmt.Sprintf("%s %s=%s: %s (%s)", p.Reason, p.Field, p.Value, p.Message, p.Fix))
	}
	for _, w := range v.Warnings {
		all = append(all, fmt.Sprintf("warning %s %s", w.Reason, w))
	}

	return all
}

func TestCheckSubnet(t *testing.T) {
	const (
		example = "(write an address and a length, such as 10.0.0.0/24 or fd00::/64)"
		part    = "(choose a part of 10.0.0.0/16, or another pool)"
		free    = "(choose a block that is free, or let a SubnetClaim find one)"
		child   = "(take it from pool c, or choose a block that is free)"
		waits   = "warning PoolNotFound spec.poolRef: there is no pool p in this namespace yet; the Subnet waits for it"
	)
	pool, six := poolOf("p", "10.0.0.0/16"), poolOf("p", "fd00::/48")

	type subnets = []v1alpha1.Subnet
	type pools = []v1alpha1.SubnetPool

	cases := map[string]struct {
		reason string
		subnet v1alpha1.Subnet
		around ipam.SubnetNeighbors
		want   []string
	}{
		"Fine":     {"A free block of the pool.", made("s", "10.0.0.0/24"), ipam.SubnetNeighbors{Pool: &pool}, nil},
		"Six":      {"Of either family.", made("s", "fd00::/64"), ipam.SubnetNeighbors{Pool: &six}, nil},
		"Whole":    {"It may be all of the pool.", made("s", "10.0.0.0/16"), ipam.SubnetNeighbors{Pool: &pool}, nil},
		"Rubbish":  {"A text that is not a CIDR is rejected.", made("s", "ten"), ipam.SubnetNeighbors{Pool: &pool}, []string{`InvalidCIDR spec.cidr=ten: "ten" is not a CIDR ` + example}},
		"Address":  {"An address without a length is not a CIDR.", made("s", "10.0.0.0"), ipam.SubnetNeighbors{}, []string{`InvalidCIDR spec.cidr=10.0.0.0: "10.0.0.0" is not a CIDR ` + example}},
		"Unmasked": {"Bits behind the length are rejected, and nothing else is checked.", made("s", "10.9.0.5/24"), ipam.SubnetNeighbors{}, []string{"NotMasked spec.cidr=10.9.0.5/24: 10.9.0.5/24 has bits set behind its length (write 10.9.0.0/24)"}},

		"NoPool": {"It may be there before its pool.", made("s", "10.0.0.0/24"), ipam.SubnetNeighbors{}, []string{waits}},
		"NoPoolOverlap": {
			"Subnets that overlap will still overlap when the pool exists.",
			made("s", "10.0.0.0/24"),
			ipam.SubnetNeighbors{Others: subnets{made("o", "10.0.0.0/25")}},
			[]string{"Overlap spec.cidr=10.0.0.0/24: 10.0.0.0/24 overlaps 10.0.0.0/25 of Subnet o " + free, waits},
		},
		"BadPool":     {"An invalid CIDR of the pool is the pool's problem.", made("s", "10.0.0.0/24"), ipam.SubnetNeighbors{Pool: new(poolOf("p", "ten"))}, nil},
		"Outside":     {"A block lies in its pool.", made("s", "10.1.0.0/24"), ipam.SubnetNeighbors{Pool: &pool}, []string{"OutsidePool spec.cidr=10.1.0.0/24: 10.1.0.0/24 is not inside of pool p, 10.0.0.0/16 " + part}},
		"Larger":      {"Not around it.", made("s", "10.0.0.0/15"), ipam.SubnetNeighbors{Pool: &pool}, []string{"OutsidePool spec.cidr=10.0.0.0/15: 10.0.0.0/15 is not inside of pool p, 10.0.0.0/16 " + part}},
		"OtherFamily": {"Nor of the other family.", made("s", "fd00::/64"), ipam.SubnetNeighbors{Pool: &pool}, []string{"OutsidePool spec.cidr=fd00::/64: fd00::/64 is not inside of pool p, 10.0.0.0/16 " + part}},
		"Mapped":      {"IPv4 written as IPv6 is of the other family.", made("s", "::ffff:10.0.0.0/120"), ipam.SubnetNeighbors{Pool: &pool}, []string{"OutsidePool spec.cidr=::ffff:10.0.0.0/120: ::ffff:10.0.0.0/120 is not inside of pool p, 10.0.0.0/16 " + part}},

		"Overlap": {
			"The block of another Subnet is taken, all of it and parts of it.",
			made("s", "10.0.0.0/24"),
			ipam.SubnetNeighbors{Pool: &pool, Others: subnets{in(v1alpha1.SubnetAllocated, made("same", "10.0.0.0/24")), in(v1alpha1.SubnetPending, made("inside", "10.0.0.0/25")), made("around", "10.0.0.0/23")}},
			[]string{
				"Overlap spec.cidr=10.0.0.0/24: 10.0.0.0/24 overlaps 10.0.0.0/24 of Subnet same " + free,
				"Overlap spec.cidr=10.0.0.0/24: 10.0.0.0/24 overlaps 10.0.0.0/25 of Subnet inside " + free,
				"Overlap spec.cidr=10.0.0.0/24: 10.0.0.0/24 overlaps 10.0.0.0/23 of Subnet around " + free,
			},
		},
		"OverlapUnmasked": {
			"Bits behind the length of the other do not hide it.",
			made("s", "10.0.0.0/24"),
			ipam.SubnetNeighbors{Pool: &pool, Others: subnets{made("o", "10.0.0.9/25")}},
			[]string{"Overlap spec.cidr=10.0.0.0/24: 10.0.0.0/24 overlaps 10.0.0.9/25 of Subnet o " + free},
		},
		"Free": {
			"The Subnet itself, adjacent ones, Failed ones, invalid ones and the other family do not conflict.",
			made("s", "10.0.0.0/24"),
			ipam.SubnetNeighbors{Pool: &pool, Others: subnets{made("s", "10.0.0.0/24"), made("n", "10.0.1.0/24"), in(v1alpha1.SubnetFailed, made("f", "10.0.0.0/24")), made("r", "ten"), made("x", "::/0")}},
			nil,
		},

		"Child": {
			"Addresses of a child pool are allocated by the child.",
			made("s", "10.0.0.0/24"),
			ipam.SubnetNeighbors{Pool: &pool, Children: pools{poolOf("c", "10.0.0.0/20")}},
			[]string{"Delegated spec.cidr=10.0.0.0/24: 10.0.0.0/24 overlaps 10.0.0.0/20 of the child pool c " + child},
		},
		"AroundChild": {
			"Also if it is only a part of the block.",
			made("s", "10.0.0.0/20"),
			ipam.SubnetNeighbors{Pool: &pool, Children: pools{poolOf("c", "10.0.0.0/24")}},
			[]string{"Delegated spec.cidr=10.0.0.0/20: 10.0.0.0/20 overlaps 10.0.0.0/24 of the child pool c " + child},
		},
		"BesideChild": {"Not a range next to it, or an invalid one.", made("s", "10.0.0.0/24"), ipam.SubnetNeighbors{Pool: &pool, Children: pools{poolOf("c", "10.0.1.0/24"), poolOf("r", "ten")}}, nil},
		"Backing": {
			"The Subnet that a SubnetPoolClaim took for the child's block stays.",
			claimedSubnet(made("s", "10.0.0.0/24")),
			ipam.SubnetNeighbors{Pool: &pool, Children: pools{claimedPool("10.0.0.0/24")}},
			nil,
		},
		"BackingNamed": {
			"So does one that names the child, whatever part of it that is.",
			backingSubnet("c", made("s", "10.0.0.0/23")),
			ipam.SubnetNeighbors{Pool: &pool, Children: pools{poolOf("c", "10.0.0.0/24")}},
			nil,
		},
		"BackingNamedOther": {
			"One that names another child is in the way of this one.",
			backingSubnet("d", made("s", "10.0.0.0/24")),
			ipam.SubnetNeighbors{Pool: &pool, Children: pools{poolOf("c", "10.0.0.0/24")}},
			[]string{"Delegated spec.cidr=10.0.0.0/24: 10.0.0.0/24 overlaps 10.0.0.0/24 of the child pool c " + child},
		},
		"BackingTaken": {
			"It may take no more than any other Subnet.",
			backingSubnet("c", made("s", "10.0.0.0/24")),
			ipam.SubnetNeighbors{Pool: &pool, Others: subnets{made("o", "10.0.0.0/25")}},
			[]string{"Overlap spec.cidr=10.0.0.0/24: 10.0.0.0/24 overlaps 10.0.0.0/25 of Subnet o " + free},
		},
		"BackingByHand": {
			"A child that a user created has none, whatever claim the Subnet names.",
			claimedSubnet(made("s", "10.0.0.0/24")),
			ipam.SubnetNeighbors{Pool: &pool, Children: pools{poolOf("c", "10.0.0.0/24")}},
			[]string{"Delegated spec.cidr=10.0.0.0/24: 10.0.0.0/24 overlaps 10.0.0.0/24 of the child pool c " + child},
		},
		"BackingOther": {
			"One that was taken for another claim, or for none, is in the way.",
			made("s", "10.0.0.0/24"),
			ipam.SubnetNeighbors{Pool: &pool, Children: pools{claimedPool("10.0.0.0/24")}},
			[]string{"Delegated spec.cidr=10.0.0.0/24: 10.0.0.0/24 overlaps 10.0.0.0/24 of the child pool c " + child},
		},
		"BackingPart": {
			"So is one that is not the very block.",
			claimedSubnet(made("s", "10.0.0.0/25")),
			ipam.SubnetNeighbors{Pool: &pool, Children: pools{claimedPool("10.0.0.0/24")}},
			[]string{"Delegated spec.cidr=10.0.0.0/25: 10.0.0.0/25 overlaps 10.0.0.0/24 of the child pool c " + child},
		},

		"Everything": {
			"All problems are reported, in the order of the rules.",
			made("s", "10.0.0.0/8"),
			ipam.SubnetNeighbors{Pool: &pool, Others: subnets{made("o", "10.0.0.0/24")}, Children: pools{poolOf("c", "10.0.1.0/24")}},
			[]string{
				"OutsidePool spec.cidr=10.0.0.0/8: 10.0.0.0/8 is not inside of pool p, 10.0.0.0/16 " + part,
				"Overlap spec.cidr=10.0.0.0/8: 10.0.0.0/8 overlaps 10.0.0.0/24 of Subnet o " + free,
				"Delegated spec.cidr=10.0.0.0/8: 10.0.0.0/8 overlaps 10.0.1.0/24 of the child pool c " + child,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, subnetProblems(&tc.subnet, tc.around)); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzCheckSubnet passes any text as prefixes: CheckSubnet must not panic, and overlapping must be
// symmetric.
func FuzzCheckSubnet(f *testing.F) {
	f.Add("10.0.0.0/16", "10.0.0.0/24", "10.0.0.128/25")
	f.Add("fd00::/48", "fd00::/64", "fd00::/64")
	f.Add("::/0", "::ffff:10.0.0.0/120", "ten")
	f.Add("10.0.0.1/16", "10.0.0.0/33", "")

	f.Fuzz(func(t *testing.T, pool, one, two string) {
		p, child, x, y := poolOf("p", pool), claimedPool(two), claimedSubnet(made("x", one)), made("y", two)
		ipam.CheckSubnet(&x, ipam.SubnetNeighbors{Pool: &p, Others: []v1alpha1.Subnet{y}, Children: []v1alpha1.SubnetPool{child, p}})
		overlaps := func(s, o v1alpha1.Subnet) bool {
			return ipam.CheckSubnet(&s, ipam.SubnetNeighbors{Others: []v1alpha1.Subnet{o}}).Reason() == ipam.ReasonOverlap
		}
		fine := ipam.CheckSubnet(&x, ipam.SubnetNeighbors{}).Allowed() && ipam.CheckSubnet(&y, ipam.SubnetNeighbors{}).Allowed()
		if fine && overlaps(x, y) != overlaps(y, x) {
			t.Errorf("%s and %s overlap in one direction only", one, two)
		}
	})
}
