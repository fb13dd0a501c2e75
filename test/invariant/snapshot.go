package invariant

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	ipamaudit "github.com/arbor-control/arbor/internal/decide/ipam/audit"
)

// A Snapshot is everything of Arbor's in a cluster, or in a part of it.
type Snapshot struct {
	Inventory    ipamaudit.Inventory
	PodGroups    []v2alpha2.PodGroup
	Compositions []enov1.Composition
	Slices       []enov1.ResourceSlice
	// Objects are all of the kinds that compositions deliver, whichever client created them.
	Objects []unstructured.Unstructured
}

// Take reads a snapshot, with objects of some kinds. It is not a consistent state: lists are read
// one after the other. In a cluster that has settled this makes no difference.
func Take(ctx context.Context, c client.Client, kinds []schema.GroupVersionKind, in ...client.ListOption) (Snapshot, error) {
	pools, subnets := &v1alpha1.SubnetPoolList{}, &v1alpha1.SubnetList{}
	claims, poolClaims := &v1alpha1.SubnetClaimList{}, &v1alpha1.SubnetPoolClaimList{}
	groups, compositions, slices := &v2alpha2.PodGroupList{}, &enov1.CompositionList{}, &enov1.ResourceSliceList{}
	for _, list := range []client.ObjectList{claims, poolClaims, subnets, pools, groups, compositions, slices} {
		if err := c.List(ctx, list, in...); err != nil {
			return Snapshot{}, fmt.Errorf("cannot read the cluster: %w", err)
		}
	}
	s := Snapshot{
		Inventory:    ipamaudit.Inventory{Pools: pools.Items, Subnets: subnets.Items, Claims: claims.Items, PoolClaims: poolClaims.Items},
		PodGroups:    groups.Items,
		Compositions: compositions.Items,
		Slices:       slices.Items,
	}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := c.List(ctx, list, in...); err != nil {
			return Snapshot{}, fmt.Errorf("cannot read objects of kind %s: %w", kind.Kind, err)
		}
		s.Objects = append(s.Objects, list.Items...)
	}

	return s, nil
}
