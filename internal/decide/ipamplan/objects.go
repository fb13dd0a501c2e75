package ipamplan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamaudit "github.com/arbor-control/arbor/internal/decide/ipam/audit"
)

// Objects are the objects of the address API. Of two with one name the last
// counts, as it would if they were applied.
type Objects struct {
	Pools      map[types.NamespacedName]*v1alpha1.SubnetPool
	Subnets    map[types.NamespacedName]*v1alpha1.Subnet
	Claims     map[types.NamespacedName]*v1alpha1.SubnetClaim
	PoolClaims map[types.NamespacedName]*v1alpha1.SubnetPoolClaim
}

// NewObjects returns a collection without objects.
func NewObjects() *Objects {
	return &Objects{
		Pools:      map[types.NamespacedName]*v1alpha1.SubnetPool{},
		Subnets:    map[types.NamespacedName]*v1alpha1.Subnet{},
		Claims:     map[types.NamespacedName]*v1alpha1.SubnetClaim{},
		PoolClaims: map[types.NamespacedName]*v1alpha1.SubnetPoolClaim{},
	}
}

// Sorted returns the values of a map by namespace and name.
func Sorted[T any](all map[types.NamespacedName]T) []T {
	keys := slices.SortedFunc(maps.Keys(all), func(a, b types.NamespacedName) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	out := make([]T, len(keys))

	for i, k := range keys {
		out[i] = all[k]
	}

	return out
}

// Empty reports whether there are no objects.
func (a *Objects) Empty() bool {
	return len(a.Pools)+len(a.Subnets)+len(a.Claims)+len(a.PoolClaims) == 0
}

// Estate is all objects, by namespace and name.
func (a *Objects) Estate() ipamaudit.Inventory {
	return ipamaudit.Inventory{Pools: values(Sorted(a.Pools)), Subnets: values(Sorted(a.Subnets)), Claims: values(Sorted(a.Claims)), PoolClaims: values(Sorted(a.PoolClaims))}
}

func values[T any](all []*T) []T {
	out := make([]T, len(all))
	for i, o := range all {
		out[i] = *o
	}

	return out
}
