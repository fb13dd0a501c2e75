package audit_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipam/audit"
)

func TestPreview(t *testing.T) {
	written := func(name, block, parent string) v1alpha1.SubnetPool {
		return v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.SubnetPoolSpec{CIDR: block, Parent: parent}}
	}
	block := func(pool, name, cidr string) v1alpha1.Subnet {
		return v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.SubnetSpec{PoolRef: pool, CIDR: cidr}}
	}
	claim := func(spec v1alpha1.SubnetClaimSpec) []v1alpha1.SubnetClaim {
		return []v1alpha1.SubnetClaim{{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: spec}}
	}
	wants := func(parent string, size int32) []v1alpha1.SubnetPoolClaim {
		return []v1alpha1.SubnetPoolClaim{{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: v1alpha1.SubnetPoolClaimSpec{ParentPoolRef: parent, DesiredBlockSize: size}}}
	}
	backs := block("root", "s", "10.0.16.0/20")
	backs.Spec.Backs = &v1alpha1.PoolReference{Name: "lab"}
	limited := written("p", "10.0.0.0/16", "")
	limited.Spec.MinBlockSize, limited.Spec.MaxBlockSize = new(int32(20)), new(int32(28))

	type (
		pools   = []v1alpha1.SubnetPool
		subnets = []v1alpha1.Subnet
	)

	cases := map[string]struct {
		reason string
		estate audit.Inventory
		want   []string
	}{
		"Nothing": {reason: "Nothing is wrong with nothing."},
		"Roots": {
			reason: "Two roots that overlap would both be refused, whichever comes second.",
			estate: audit.Inventory{Pools: pools{written("a", "10.0.0.0/16", ""), written("b", "10.0.1.0/24", "")}},
			want: []string{
				"error SubnetPool /a Overlap spec.cidr=10.0.0.0/16: 10.0.0.0/16 overlaps 10.0.1.0/24 of pool b, which is a root pool of this namespace too (choose other addresses, or set spec.parent if one is taken from the other)",
				"error SubnetPool /b Overlap spec.cidr=10.0.1.0/24: 10.0.1.0/24 overlaps 10.0.0.0/16 of pool a, which is a root pool of this namespace too (choose other addresses, or set spec.parent if one is taken from the other)",
			},
		},
		"Child":        {reason: "A child may lie in its parent.", estate: audit.Inventory{Pools: pools{written("a", "10.0.0.0/16", ""), written("b", "10.0.1.0/24", "a")}}},
		"Outside":      {reason: "Nowhere else.", estate: audit.Inventory{Pools: pools{written("a", "10.0.0.0/16", ""), written("b", "10.1.1.0/24", "a")}}, want: []string{"error SubnetPool /b OutsideParent spec.cidr=10.1.1.0/24: 10.1.1.0/24 is not inside of 10.0.0.0/16, which its parent a has (choose a part of 10.0.0.0/16, or another parent)"}},
		"AbsentParent": {reason: "A parent may be in the cluster.", estate: audit.Inventory{Pools: pools{written("b", "10.1.1.0/24", "a")}}},
		"AbsentPool":   {reason: "So may the pool of a Subnet and of a claim.", estate: audit.Inventory{Subnets: subnets{block("p", "s", "10.0.0.0/24")}, Claims: claim(v1alpha1.SubnetClaimSpec{PoolRef: "p", BlockSize: new(int32(99))}), PoolClaims: wants("p", 99)}},
		"Backed": {
			reason: "A child pool may lie in the Subnet that backs it.",
			estate: audit.Inventory{Pools: pools{written("root", "10.0.0.0/16", ""), written("lab", "10.0.16.0/24", "root")}, Subnets: subnets{backs}},
		},
		"Subnets": {
			reason: "Subnets that overlap would be refused, whether their pool is there or not.",
			estate: audit.Inventory{Subnets: subnets{block("p", "s", "10.0.0.0/24"), block("p", "t", "10.0.0.0/25"), block("q", "u", "10.0.0.0/24")}},
			want: []string{
				"error Subnet /s Overlap spec.cidr=10.0.0.0/24: 10.0.0.0/24 overlaps 10.0.0.0/25 of Subnet t (choose a block that is free, or let a SubnetClaim find one)",
				"error Subnet /t Overlap spec.cidr=10.0.0.0/25: 10.0.0.0/25 overlaps 10.0.0.0/24 of Subnet s (choose a block that is free, or let a SubnetClaim find one)",
			},
		},
		"SubnetInChild": {
			reason: "So would one in a child pool.",
			estate: audit.Inventory{Pools: pools{written("a", "10.0.0.0/16", ""), written("b", "10.0.1.0/24", "a")}, Subnets: subnets{block("a", "s", "10.0.1.0/25")}},
			want:   []string{"error Subnet /s Delegated spec.cidr=10.0.1.0/25: 10.0.1.0/25 overlaps 10.0.1.0/24 of the child pool b (take it from pool b, or choose a block that is free)"},
		},
		"Sizes": {
			reason: "A claim asks for what its pool hands out.",
			estate: audit.Inventory{Pools: pools{limited}, Claims: claim(v1alpha1.SubnetClaimSpec{PoolRef: "p", BlockSize: new(int32(29))}), PoolClaims: wants("p", 16)},
			want: []string{
				"error SubnetClaim /c BlockSizeRefused spec.blockSize=29: pool p allocates blocks from /20 to /28, not /29 ()",
				"error SubnetPoolClaim /c BlockSizeRefused spec.desiredBlockSize=16: pool p allocates blocks from /20 to /28, not /16 ()",
			},
		},
		"SizesFit": {reason: "Both ends are in.", estate: audit.Inventory{Pools: pools{limited}, Claims: claim(v1alpha1.SubnetClaimSpec{PoolRef: "p", BlockSize: new(int32(28))}), PoolClaims: wants("p", 20)}},
		"Requested": {
			reason: "A very block must be the pool's.",
			estate: audit.Inventory{Pools: pools{limited}, Claims: claim(v1alpha1.SubnetClaimSpec{PoolRef: "p", RequestedCIDR: "10.1.0.0/24"})},
			want:   []string{"error SubnetClaim /c OutsidePool spec.requestedCIDR=10.1.0.0/24: 10.1.0.0/24 is not inside of pool p, 10.0.0.0/16: ask for a block of that, or of another pool ()"},
		},
		"RequestedFits": {reason: "Then it is fine.", estate: audit.Inventory{Pools: pools{limited}, Claims: claim(v1alpha1.SubnetClaimSpec{PoolRef: "p", RequestedCIDR: "10.0.9.0/24"})}},
		"NoWish":        {reason: "A claim that asks for nothing is for the schema to refuse.", estate: audit.Inventory{Pools: pools{limited}, Claims: claim(v1alpha1.SubnetClaimSpec{PoolRef: "p"})}},
		"BadPool":       {reason: "What is wrong with a pool alone is said by its rules.", estate: audit.Inventory{Pools: pools{written("p", "ten", "p")}, Subnets: subnets{block("p", "s", "10.0.0.1/24")}, Claims: claim(v1alpha1.SubnetClaimSpec{PoolRef: "p", BlockSize: new(int32(24))})}},
		"Healthy":       {reason: "What a cluster holds could be applied again.", estate: healthy().Inventory},
		"Statuses":      {reason: "Statuses are not looked at.", estate: audit.Inventory{Pools: pools{{ObjectMeta: meta("p"), Spec: v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/16"}, Status: v1alpha1.SubnetPoolStatus{AllocatedCount: 9}}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, said(audit.Preview(tc.estate))); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzInspect gives anything for names and prefixes: no panic, and the same
// words twice.
func FuzzInspect(f *testing.F) {
	f.Add("10.0.0.0/16", "10.0.0.0/24", "root", "a", uint64(1))
	f.Add("::ffff:10.0.0.0/104", "ten", "", "held", uint64(2))
	f.Add("fd00::/48", "fd00::1/64", "lab", "", uint64(3))

	f.Fuzz(func(t *testing.T, one, two, parent, name string, seed uint64) {
		w := healthy()
		w.pool("hand").Spec.CIDR, w.pool("six").Spec.CIDR, w.pool("six").Spec.Parent = one, two, parent
		w.subnet("b").Spec.CIDR, w.subnet("c").Spec.PoolRef, w.subnet("c").Name = one, parent, name
		w.claim("team").Status.SubnetRef, w.claim("team").Status.AllocatedCIDR = name, two
		w.poolClaim("lab").Status.BoundPoolName = name
		e := wild(rand.New(rand.NewPCG(seed, 1)))
		w.Pools, w.Subnets = append(w.Pools, e.Pools...), append(w.Subnets, e.Subnets...)
		got := append(said(audit.Inspect(w.Inventory)), said(audit.Preview(w.Inventory))...)
		again := append(said(audit.Inspect(w.Inventory)), said(audit.Preview(w.Inventory))...)
		if diff := cmp.Diff(got, again); diff != "" {
			t.Errorf("(-first +second):\n%s", diff)
		}
	})
}
