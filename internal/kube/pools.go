package kube

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// clusterValues returns the bucket of the pool and clusterID of a Subnet that was
// taken for a claim.
func clusterValues(s *v1alpha1.Subnet) []string {
	if s.Spec.ClaimRef == nil {
		return nil
	}

	return []string{bucket(s.Spec.PoolRef, s.Spec.ClusterID)}
}

func bucket(pool, clusterID string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(pool + "/" + clusterID)) // never fails

	return fmt.Sprintf("%03x", h.Sum32()%buckets)
}

// backsValues returns the name and the UID of the child pool that a Subnet is for.
func backsValues(s *v1alpha1.Subnet) []string {
	var values []string
	if s.Spec.Backs != nil {
		values = append(values, backsName(s.Spec.Backs.Name))
	}
	if s.Status.PoolUID != "" {
		values = append(values, backsUID(s.Status.PoolUID))
	}

	return values
}

func backsName(pool string) string   { return "name/" + pool }
func backsUID(pool types.UID) string { return "uid/" + string(pool) }

// unclaimed is the only value of SubnetUnclaimedIndexKey.
const unclaimed = "unclaimed"

// unclaimedValues returns a value for a Subnet that holds the block of a claim which has
// never been there: it comes from a backup without the claim.
func unclaimedValues(s *v1alpha1.Subnet) []string {
	if s.Spec.ClaimRef == nil || s.Status.ClaimUID != "" || s.Status.Phase != v1alpha1.SubnetAllocated || s.DeletionTimestamp != nil {
		return nil
	}

	return []string{unclaimed}
}

// UnclaimedSubnets lists the Subnets of all namespaces that hold the block of a claim
// which has never been there. They belong to the cache; do not change them.
func UnclaimedSubnets(ctx context.Context, r client.Reader) ([]v1alpha1.Subnet, error) {
	list := &v1alpha1.SubnetList{}
	if err := r.List(ctx, list, client.MatchingFields{SubnetUnclaimedIndexKey: unclaimed}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list Subnets: %w", err)
	}

	return list.Items, nil
}

// owned is the only value of OwnerIndexKey.
const owned = "owned"

// ownerValues returns a value for an object with an owner reference to a claim, which
// former versions wrote.
func ownerValues(o client.Object) []string {
	for _, r := range o.GetOwnerReferences() {
		if r.Kind == v1alpha1.SubnetClaimKind || r.Kind == v1alpha1.SubnetPoolClaimKind {
			return []string{owned}
		}
	}

	return nil
}

// CountOwned returns how many objects of the kind of a list have an owner reference to a
// claim.
func CountOwned(ctx context.Context, r client.Reader, list client.ObjectList) (int, error) {
	if err := r.List(ctx, list, client.MatchingFields{OwnerIndexKey: owned}, client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("cannot list %T: %w", list, err)
	}

	return meta.LenList(list), nil
}

// poolValues returns the places of what a pool wants and of what it has.
func poolValues(o client.Object) []string {
	p, ok := o.(*v1alpha1.SubnetPool)
	if !ok {
		return nil
	}
	values := append(placesOf(p.Spec.CIDR), placesOf(p.Status.CIDR)...)
	slices.Sort(values)

	return slices.Compact(values)
}

// SubnetsOfCluster lists the Subnets of a pool that were taken for claims of a
// clusterID. They belong to the cache; do not change them.
func SubnetsOfCluster(ctx context.Context, r client.Reader, namespace, pool, clusterID string) ([]v1alpha1.Subnet, error) {
	list := &v1alpha1.SubnetList{}
	fields := client.MatchingFields{SubnetClusterIndexKey: bucket(pool, clusterID)}
	if err := r.List(ctx, list, client.InNamespace(namespace), fields, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list Subnets: %w", err)
	}

	return slices.DeleteFunc(list.Items, func(s v1alpha1.Subnet) bool {
		return s.Spec.PoolRef != pool || s.Spec.ClusterID != clusterID
	}), nil
}

// SubnetsOf lists the Subnets that were taken for a claim of this name, pool and
// clusterID, as copies.
func SubnetsOf(ctx context.Context, r client.Reader, claim *v1alpha1.SubnetClaim) ([]v1alpha1.Subnet, error) {
	all, err := SubnetsOfCluster(ctx, r, claim.Namespace, claim.Spec.PoolRef, claim.Spec.ClusterID)
	if err != nil {
		return nil, err
	}
	var taken []v1alpha1.Subnet
	for i := range all {
		if all[i].Spec.ClaimRef.Name == claim.Name {
			taken = append(taken, *all[i].DeepCopy())
		}
	}

	return taken, nil
}

// PoolsNear lists pools of a namespace: all whose requested or open range overlaps a block, and
// perhaps more. They belong to the cache; do not change them.
func PoolsNear(ctx context.Context, r client.Reader, namespace string, block netip.Prefix) ([]v1alpha1.SubnetPool, error) {
	var near []v1alpha1.SubnetPool
	seen := map[types.UID]bool{}
	for _, value := range Overlapping(block) {
		list := &v1alpha1.SubnetPoolList{}
		err := r.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{PoolBlockIndexKey: value}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("cannot list SubnetPools: %w", err)
		}
		for i := range list.Items {
			if p := &list.Items[i]; !seen[p.UID] {
				seen[p.UID] = true
				near = append(near, *p)
			}
		}
	}

	return near, nil
}

// SubnetsFor lists the Subnets, of any pool, that name a child pool: by the name in
// spec.backs or the UID in status.poolUID. They belong to the cache; do not change
// them.
func SubnetsFor(ctx context.Context, r client.Reader, pool *v1alpha1.SubnetPool) ([]v1alpha1.Subnet, error) {
	var all []v1alpha1.Subnet
	seen := map[types.UID]bool{}
	for _, value := range []string{backsName(pool.Name), backsUID(pool.UID)} {
		list := &v1alpha1.SubnetList{}
		err := r.List(ctx, list, client.InNamespace(pool.Namespace), client.MatchingFields{SubnetBacksIndexKey: value}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("cannot list Subnets: %w", err)
		}
		for i := range list.Items {
			if s := &list.Items[i]; !seen[s.UID] {
				seen[s.UID] = true
				all = append(all, *s)
			}
		}
	}

	return all, nil
}

// BackingOf lists the Subnets of a child pool's parent that are for the child pool. A Subnet that
// names another pool is never for it, whatever is in its status: a Subnet is released when the pool
// of that name is deleted. They belong to the cache; do not change them.
func BackingOf(ctx context.Context, r client.Reader, pool *v1alpha1.SubnetPool) ([]v1alpha1.Subnet, error) {
	parent := pool.ParentName()
	if parent == "" {
		return nil, nil
	}
	all, err := SubnetsFor(ctx, r, pool)

	return slices.DeleteFunc(all, func(s v1alpha1.Subnet) bool {
		return s.Spec.PoolRef != parent || s.Spec.Backs != nil && s.Spec.Backs.Name != pool.Name
	}), err
}
