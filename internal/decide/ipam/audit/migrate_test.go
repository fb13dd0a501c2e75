package audit_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipam/audit"
)

func TestMigrate(t *testing.T) {
	const allocated = v1alpha1.SubnetAllocated
	root, lab := unwritten("root", "10.0.0.0/16", ""), unwritten("lab", "10.0.16.0/20", "root")
	used := subnetOf("lab", "s", "10.0.16.0/24", allocated)
	claimed := *lab.DeepCopy()
	claimed.Labels = map[string]string{v1alpha1.PoolClaimLabel: "lab"}
	begun := subnetOf("root", "begun", "10.0.16.0/20", "")
	begun.Spec.Backs = &v1alpha1.PoolReference{Name: "lab", UID: "uid-lab"}
	other := unwritten("other", "10.0.16.0/24", "root")
	long := unwritten(strings.Repeat("l", 100), "10.0.16.0/20", "root")

	type (
		pools   = []v1alpha1.SubnetPool
		subnets = []v1alpha1.Subnet
	)
	cases := map[string]struct {
		reason  string
		pools   pools
		subnets subnets
		want    []string
	}{
		"Used":     {reason: "A pool in use gets a Subnet.", pools: pools{root, lab}, subnets: subnets{used}, want: []string{"lab: root-10-0-16-0-20 pool.lab new"}},
		"Unused":   {reason: "The manager makes those of others.", pools: pools{root, lab}},
		"Root":     {reason: "A root needs none.", pools: pools{root}, subnets: subnets{subnetOf("root", "s", "10.0.0.0/24", allocated)}},
		"Claimed":  {reason: "The claim of a pool has one.", pools: pools{root, claimed}, subnets: subnets{used}},
		"Backed":   {reason: "One is enough.", pools: pools{root, lab}, subnets: subnets{used, backing("lab", "10.0.16.0/20")}},
		"Begun":    {reason: "One that was not finished is.", pools: pools{root, lab}, subnets: subnets{used, begun}, want: []string{"lab: begun of-begun there"}},
		"Name":     {reason: "A name that is taken is not used.", pools: pools{root, lab}, subnets: subnets{used, subnetOf("root", "root-10-0-16-0-20", "10.0.0.0/24", allocated)}, want: []string{"lab: root-10-0-16-0-20-72630ad236ecee3d pool.lab new"}},
		"Conflict": {reason: "What is taken stays taken.", pools: pools{root, lab}, subnets: subnets{used, subnetOf("root", "x", "10.0.17.0/24", allocated)}, want: []string{"lab: Subnet x of pool root has 10.0.17.0/24"}},
		"Outside":  {reason: "A child lies in its parent.", pools: pools{unwritten("root", "10.1.0.0/16", ""), lab}, subnets: subnets{used}, want: []string{"lab: 10.0.16.0/20 is not inside of 10.1.0.0/16, which pool root has"}},
		"Siblings": {
			reason: "Of two that share addresses neither is chosen.", pools: pools{root, lab, other}, subnets: subnets{used, subnetOf("other", "t", "10.0.16.0/25", allocated)},
			want: []string{"lab: pool other has 10.0.16.0/24, and is in use too", "other: pool lab has 10.0.16.0/20, and is in use too"},
		},
		"Long": {
			reason: "A clusterID is a label value.", pools: pools{root, long}, subnets: subnets{subnetOf(long.Name, "s", "10.0.16.0/24", allocated)},
			want: []string{long.Name + ": root-10-0-16-0-20 pool.f9c63732fde374b3 new"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, m := range audit.Migrate(audit.Inventory{Pools: tc.pools, Subnets: tc.subnets}) {
				line := m.Conflict
				if line == "" {
					line = m.Subnet.Name + " " + m.Subnet.Spec.ClusterID + " new"
				}
				if m.Conflict == "" && m.Subnet.UID != "" {
					line = strings.TrimSuffix(line, "new") + "there"
				}
				got = append(got, m.Child.Name+": "+line)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
