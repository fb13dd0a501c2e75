package view_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/view"
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
		"Subnet":          {"A Subnet wakes its pool.", view.MapSubnetToPool, subnet, request("p")},
		"SubnetTombstone": {"So does one whose deletion was missed.", view.MapSubnetToPool, cache.DeletedFinalStateUnknown{Key: "ns/s", Obj: subnet}, request("p")},
		"SubnetNoPool":    {"One without a pool wakes nobody.", view.MapSubnetToPool, &v1alpha1.Subnet{}, nil},
		"SubnetForeign":   {"Something else is not taken for one.", view.MapSubnetToPool, child, nil},
		"SubnetNothing":   {"Nor is a tombstone of nothing.", view.MapSubnetToPool, cache.DeletedFinalStateUnknown{}, nil},
		"Child":           {"A child pool wakes its parent.", view.MapChildToParent, child, request("p")},
		"ChildTombstone":  {"So does one whose deletion was missed.", view.MapChildToParent, cache.DeletedFinalStateUnknown{Obj: child}, request("p")},
		"ChildLabel":      {"The label says who the parent is.", view.MapChildToParent, labelled, request("p")},
		"ChildBoth":       {"The spec goes before the label.", view.MapChildToParent, both, request("q")},
		"Root":            {"A root has no parent.", view.MapChildToParent, &v1alpha1.SubnetPool{}, nil},
		"ChildForeign":    {"Something else is not taken for one.", view.MapChildToParent, subnet, nil},
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
