package invariant_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/test/invariant"
)

func TestShared(t *testing.T) {
	pool := func(name, parent string) v1alpha1.SubnetPool {
		return v1alpha1.SubnetPool{ObjectMeta: named(name), Spec: v1alpha1.SubnetPoolSpec{Parent: parent}}
	}
	block := func(name, pool, cidr string, backs types.UID) v1alpha1.Subnet {
		return v1alpha1.Subnet{
			ObjectMeta: named(name), Spec: v1alpha1.SubnetSpec{PoolRef: pool, CIDR: cidr},
			Status: v1alpha1.SubnetStatus{Phase: v1alpha1.SubnetAllocated, PoolUID: backs},
		}
	}
	failed, elsewhere := block("b", "q", "10.0.0.0/25", ""), block("b", "q", "10.0.0.0/25", "")
	failed.Status.Phase, elsewhere.Namespace = v1alpha1.SubnetFailed, "elsewhere"
	pools := []v1alpha1.SubnetPool{pool("p", ""), pool("q", "nowhere"), pool("child", "p"), pool("grandchild", "child"), pool("x", "y"), pool("y", "x")}

	cases := map[string]struct {
		reason string
		second []v1alpha1.Subnet
		want   []string // names of those that share an address with another
	}{
		"Beside":     {"Neighbors share nothing.", []v1alpha1.Subnet{block("b", "p", "10.0.1.0/24", "")}, nil},
		"OtherPool":  {"Pools that are not related.", []v1alpha1.Subnet{block("b", "q", "10.0.0.0/25", "")}, []string{"b"}},
		"Failed":     {"A Failed Subnet has no addresses.", []v1alpha1.Subnet{failed}, nil},
		"Elsewhere":  {"Namespaces are separate.", []v1alpha1.Subnet{elsewhere}, nil},
		"Child":      {"A child pool without a block that backs it.", []v1alpha1.Subnet{block("b", "child", "10.0.0.0/25", "")}, []string{"b"}},
		"Backed":     {"A child pool with one.", []v1alpha1.Subnet{block("b", "p", "10.0.4.0/24", "child"), block("c", "child", "10.0.4.0/24", "")}, nil},
		"BackedDeep": {"A pool below it.", []v1alpha1.Subnet{block("b", "p", "10.0.4.0/24", "child"), block("c", "grandchild", "10.0.4.0/26", "")}, nil},
		"BackedTwice": {
			"Two Subnets in a child pool are compared still.",
			[]v1alpha1.Subnet{block("b", "p", "10.0.4.0/24", "child"), block("c", "child", "10.0.4.0/25", ""), block("d", "child", "10.0.4.0/26", "")},
			[]string{"d"},
		},
		"OfThePast": {"A block that backs a pool of the same name, which is gone.", []v1alpha1.Subnet{block("b", "p", "10.0.4.0/24", "old"), block("c", "child", "10.0.4.0/25", "")}, []string{"c"}},
		"Ring":      {"Pools that are their own ancestors.", []v1alpha1.Subnet{block("b", "x", "10.0.0.0/25", "")}, []string{"b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			all := append([]v1alpha1.Subnet{block("a", "p", "10.0.0.0/24", "")}, tc.second...)
			for _, f := range invariant.Shared(all, invariant.Backs(pools)) {
				got = append(got, f.Object.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
