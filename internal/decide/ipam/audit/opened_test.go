package audit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipam/audit"
)

// open is a pool that Arbor has found to have a range of its own.
func open(p v1alpha1.SubnetPool) v1alpha1.SubnetPool {
	p.Status.Parent = p.ParentName()
	p.Status.CIDR, p.Status.UID = p.Spec.CIDR, p.UID

	return p
}

func refused(p v1alpha1.SubnetPool, reason, message string) v1alpha1.SubnetPool {
	p.Status.Lost = p.Generation
	p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message}}

	return p
}

// backing is a Subnet of root that holds the block of a child pool.
func backing(name, block string) v1alpha1.Subnet {
	s := subnetOf("root", "pool-"+name, block, v1alpha1.SubnetAllocated)
	s.Spec.Backs = &v1alpha1.PoolReference{Name: name}
	s.Status.UID, s.Status.PoolUID = s.UID, "uid-"+s.UID[len("uid-pool-"):]

	return s
}

// unwritten is a pool without any status: nothing is compared with a recount.
func unwritten(name, block, parent string) v1alpha1.SubnetPool {
	return v1alpha1.SubnetPool{ObjectMeta: meta(name), Spec: v1alpha1.SubnetPoolSpec{CIDR: block, Parent: parent}}
}

// Pools that share addresses, pools that stay closed, and what holds the blocks of child
// pools. Findings about figures are left out.
func TestInspectOpened(t *testing.T) {
	type (
		pools   = []v1alpha1.SubnetPool
		subnets = []v1alpha1.Subnet
	)
	const allocated = v1alpha1.SubnetAllocated
	moved := open(unwritten("a", "10.0.0.0/16", ""))
	moved.Spec.CIDR = "10.1.0.0/16"
	unclaimed := takenFor("team", subnetOf("root", "s", "10.0.0.0/24", allocated))
	unclaimed.Status.UID = unclaimed.UID
	another := v1alpha1.SubnetClaim{ObjectMeta: meta("team"), Spec: v1alpha1.SubnetClaimSpec{PoolRef: "root", ClusterID: "of-s", BlockSize: new(int32(24))}}
	another.UID = "new"
	larger := *another.DeepCopy()
	larger.Spec.BlockSize = new(int32(20))
	stored := subnetOf("root", "s", "10.0.0.0/24", allocated)
	stored.OwnerReferences = []metav1.OwnerReference{{Kind: v1alpha1.SubnetClaimKind, Name: "team"}}
	stored2 := *stored.DeepCopy()
	stored2.Name, stored2.Spec.CIDR = "t", "10.0.1.0/24"
	rebound := backing("lab", "10.0.16.0/20")
	rebound.Status.PoolUID = "old"

	cases := map[string]struct {
		reason string
		estate audit.Inventory
		want   []string
	}{
		"MissingParent": {
			reason: "A parent that does not exist hides nothing.",
			estate: audit.Inventory{Pools: pools{unwritten("a", "10.0.0.0/16", ""), unwritten("b", "10.0.0.0/16", "typo")}},
			want:   []string{"a Overlap", "b Overlap", "b ParentNotFound"},
		},
		"OtherParents": {
			reason: "Children of different parents share nothing.",
			estate: audit.Inventory{Pools: pools{
				unwritten("a", "10.0.0.0/16", ""), unwritten("b", "10.1.0.0/16", ""), unwritten("c", "10.0.0.0/20", "a"), unwritten("d", "10.0.0.0/24", "b"),
			}},
			want: []string{"a Overlap", "c Overlap", "d OutsideParent", "d Overlap"},
		},
		"Grandchild": {reason: "A pool lies in all that it was taken from.", estate: audit.Inventory{Pools: pools{unwritten("a", "10.0.0.0/16", ""), unwritten("b", "10.0.0.0/16", "a"), unwritten("c", "10.0.0.0/16", "b")}}},
		"Moved":      {reason: "A pool that moves still has its open range.", estate: audit.Inventory{Pools: pools{moved, unwritten("b", "10.0.0.0/24", "")}}, want: []string{"b Overlap"}},
		"MovedOnto":  {reason: "The range that it asks for is not open yet.", estate: audit.Inventory{Pools: pools{moved, unwritten("b", "10.1.0.0/24", "")}}, want: []string{"a Overlap", "b Overlap"}},
		"NeverOpened": {
			reason: "Open pools are not reported because of pools that Arbor never opened.",
			estate: audit.Inventory{
				Pools: pools{
					open(unwritten("root", "20.0.0.0/16", "")), open(unwritten("kid", "20.0.64.0/18", "root")),
					unwritten("kid2", "20.0.64.0/18", "nowhere"), unwritten("nowhere", "20.0.0.0/8", "alsonowhere"),
				},
				Subnets: subnets{backing("kid", "20.0.64.0/18")},
			},
			want: []string{"kid2 Overlap", "nowhere Overlap", "nowhere ParentNotFound"},
		},
		"OpenedTwice": {
			reason: "Two open pools with the same addresses are both reported.",
			estate: audit.Inventory{Pools: pools{open(unwritten("a", "10.0.0.0/16", "")), open(unwritten("b", "10.0.0.0/24", ""))}},
			want:   []string{"a Overlap", "b Overlap"},
		},
		"Refused": {reason: "One that was refused has none.", estate: audit.Inventory{Pools: pools{open(unwritten("a", "10.0.0.0/16", "")), refused(unwritten("b", "10.0.0.0/24", ""), "Overlap", "a has it")}}, want: []string{"b NotOpened"}},
		"StaysClosed": {
			reason: "Of two roots in use Arbor opens neither.",
			estate: audit.Inventory{
				Pools:   pools{unwritten("a", "10.0.0.0/16", ""), unwritten("b", "10.0.0.0/24", "")},
				Subnets: subnets{subnetOf("a", "s", "10.0.1.0/24", allocated), subnetOf("b", "t", "10.0.0.0/25", allocated)},
			},
			want: []string{"a Overlap", "a StaysClosed", "b Overlap", "b StaysClosed"},
		},
		"OneInUse": {
			reason: "The one in use wins.",
			estate: audit.Inventory{Pools: pools{unwritten("a", "10.0.0.0/16", ""), unwritten("b", "10.0.0.0/24", "")}, Subnets: subnets{subnetOf("a", "s", "10.0.1.0/24", allocated)}},
			want:   []string{"a Overlap", "b Overlap"},
		},
		"Backed": {
			reason: "An open child pool has a Subnet of its parent, also a larger one.",
			estate: audit.Inventory{Pools: pools{open(unwritten("root", "10.0.0.0/16", "")), open(unwritten("lab", "10.0.16.0/24", "root"))}, Subnets: subnets{backing("lab", "10.0.16.0/20")}},
		},
		"BackedLarger": {
			reason: "Everything in the block is taken, not only the pool.",
			estate: audit.Inventory{
				Pools:   pools{open(unwritten("root", "10.0.0.0/16", "")), open(unwritten("lab", "10.0.16.0/24", "root"))},
				Subnets: subnets{backing("lab", "10.0.16.0/20"), subnetOf("root", "s", "10.0.20.0/24", allocated)},
			},
			want: []string{"s Overlap"},
		},
		"NotBacked": {
			reason: "Without one its parent may hand the block out.",
			estate: audit.Inventory{Pools: pools{open(unwritten("root", "10.0.0.0/16", "")), open(unwritten("lab", "10.0.16.0/20", "root"))}},
			want:   []string{"lab NotBacked"},
		},
		"BackedByAnother": {
			reason: "One that is bound to another pool of that name does not hold the block of this one, nor is it in the way.",
			estate: audit.Inventory{Pools: pools{open(unwritten("root", "10.0.0.0/16", "")), open(unwritten("lab", "10.0.16.0/20", "root"))}, Subnets: subnets{rebound}},
			want:   []string{"lab NotBacked", "pool-lab ChildNotFound"},
		},
		"RestoredChild": {
			reason: "After a restore such a Subnet is bound to the new pool, which is not open yet.",
			estate: audit.Inventory{
				Pools:   pools{open(unwritten("root", "10.0.0.0/16", "")), unwritten("lab", "10.0.16.0/24", "root")},
				Subnets: subnets{rebound, subnetOf("lab", "s", "10.0.16.0/25", allocated)},
			},
			want: []string{"pool-lab ChildNotFound"},
		},
		"RefusedChild": {
			reason: "A child pool that was refused hands out nothing.",
			estate: audit.Inventory{
				Pools:   pools{open(unwritten("root", "10.0.0.0/16", "")), refused(unwritten("lab", "10.0.16.0/20", "root"), "Overlap", "s has it")},
				Subnets: subnets{subnetOf("root", "s", "10.0.16.0/24", allocated)},
			},
			want: []string{"lab NotOpened"},
		},
		"ChildNotFound": {
			reason: "A Subnet that holds a block for no pool.",
			estate: audit.Inventory{Pools: pools{open(unwritten("root", "10.0.0.0/16", ""))}, Subnets: subnets{backing("lab", "10.0.16.0/20")}},
			want:   []string{"pool-lab ChildNotFound"},
		},
		"Unclaimed": {
			reason: "A Subnet without its claim is kept.",
			estate: audit.Inventory{Pools: pools{open(unwritten("root", "10.0.0.0/16", ""))}, Subnets: subnets{unclaimed}},
			want:   []string{"s Unclaimed"},
		},
		"Adopted": {
			reason: "The claim of that name takes it.",
			estate: audit.Inventory{Pools: pools{open(unwritten("root", "10.0.0.0/16", ""))}, Subnets: subnets{unclaimed}, Claims: []v1alpha1.SubnetClaim{another}},
		},
		"NotAdopted": {
			reason: "Not one that asks for another size.",
			estate: audit.Inventory{Pools: pools{open(unwritten("root", "10.0.0.0/16", ""))}, Subnets: subnets{unclaimed}, Claims: []v1alpha1.SubnetClaim{larger}},
			want:   []string{"s Unclaimed"},
		},
		"Stored": {
			reason: "Owner references are reported once for a kind.",
			estate: audit.Inventory{Pools: pools{open(unwritten("root", "10.0.0.0/16", ""))}, Subnets: subnets{stored, stored2}},
			want:   []string{"s OwnerReferences"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range audit.Inspect(tc.estate) {
				if f.Reason != audit.ReasonStatusBehind {
					got = append(got, f.Object.Name+" "+f.Reason)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
