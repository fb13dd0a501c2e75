package ipamcache_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/ipamcache"
)

func TestMappers(t *testing.T) {
	subnet := &v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Spec: v1alpha1.SubnetSpec{PoolRef: "p"}}
	child := &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}, Spec: v1alpha1.SubnetPoolSpec{Parent: "p"}}
	labelled := &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{v1alpha1.ParentLabel: "p"}}}
	both := labelled.DeepCopy()
	both.Spec.Parent = "q"
	request := func(name string) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}}
	}

	cases := map[string]struct {
		reason string
		mapper func(any) []reconcile.Request
		object any
		want   []reconcile.Request
	}{
		"Subnet":          {"A Subnet wakes its pool.", ipamcache.MapSubnetToPool, subnet, request("p")},
		"SubnetTombstone": {"So does one whose deletion was missed.", ipamcache.MapSubnetToPool, cache.DeletedFinalStateUnknown{Key: "ns/s", Obj: subnet}, request("p")},
		"SubnetNoPool":    {"One without a pool wakes nobody.", ipamcache.MapSubnetToPool, &v1alpha1.Subnet{}, nil},
		"SubnetForeign":   {"Something else is not taken for one.", ipamcache.MapSubnetToPool, child, nil},
		"SubnetNothing":   {"Nor is a tombstone of nothing.", ipamcache.MapSubnetToPool, cache.DeletedFinalStateUnknown{}, nil},
		"Child":           {"A child pool wakes its parent.", ipamcache.MapChildToParent, child, request("p")},
		"ChildTombstone":  {"So does one whose deletion was missed.", ipamcache.MapChildToParent, cache.DeletedFinalStateUnknown{Obj: child}, request("p")},
		"ChildLabel":      {"The label says who the parent is.", ipamcache.MapChildToParent, labelled, request("p")},
		"ChildBoth":       {"The spec goes before the label.", ipamcache.MapChildToParent, both, request("q")},
		"Root":            {"A root has no parent.", ipamcache.MapChildToParent, &v1alpha1.SubnetPool{}, nil},
		"ChildForeign":    {"Something else is not taken for one.", ipamcache.MapChildToParent, subnet, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.mapper(tc.object)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			for _, r := range got {
				if r.Namespace == "" {
					t.Errorf("%s\na request without a namespace: %v", tc.reason, r)
				}
			}
		})
	}
}
