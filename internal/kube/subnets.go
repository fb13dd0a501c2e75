package kube

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// Indexes over the address API. Each is registered once, by IndexSubnets.
const (
	// SubnetPoolRefIndexKey finds Subnets by the name of their pool.
	SubnetPoolRefIndexKey = ".spec.poolRef.name"
	// SubnetBlockIndexKey finds Subnets by address; see Overlapping.
	SubnetBlockIndexKey = ".spec.cidr"
	// SubnetClusterIndexKey finds the Subnets that were taken for claims by pool and
	// clusterID; see SubnetsOf and SubnetsOfCluster.
	SubnetClusterIndexKey = ".spec.clusterID"
	// SubnetBacksIndexKey finds the Subnets that child pools are made of; see
	// SubnetsFor.
	SubnetBacksIndexKey = ".spec.backs"
	// SubnetUnclaimedIndexKey finds the Subnets that no claim has had; see
	// UnclaimedSubnets.
	SubnetUnclaimedIndexKey = ".status.claimUID"
	// OwnerIndexKey finds the Subnets, SubnetClaims and SubnetPools that a claim owns; see
	// CountOwned.
	OwnerIndexKey = ".metadata.ownerReferences"
	// PoolBlockIndexKey finds pools by the addresses that they have or want; see
	// PoolsNear.
	PoolBlockIndexKey = ".status.cidr"
	// PoolParentIndexKey finds the pools that were taken from a pool.
	PoolParentIndexKey = ".spec.parent"
	// ClaimWaitingIndexKey finds the claims that wait for a pool.
	ClaimWaitingIndexKey = ".spec.poolRef"
)

// A value with a single Subnet takes six times the memory of a Subnet under a value
// that many share, because the store keeps a map for each value. So a Subnet is
// indexed under blocks larger than itself and under a short hash, and lookups filter
// a few neighbors.
const (
	// step is how many bits lie between two indexed lengths of one address:
	// more would make the lists longer, fewer the index larger.
	step = 8
	// class is how many lengths are indexed together, up to sixteen neighbors.
	class = 4
	// buckets is the number of hashes: a dozen of 50,000 Subnets share one.
	buckets = 1 << 12
)

// IndexSubnets registers all indexes over the address API.
func IndexSubnets(ctx context.Context, i client.FieldIndexer) error {
	for _, index := range []struct {
		object client.Object
		key    string
		values func(client.Object) []string
	}{
		{&v1alpha1.Subnet{}, SubnetPoolRefIndexKey, ofSubnet(func(s *v1alpha1.Subnet) []string { return []string{s.Spec.PoolRef} })},
		{&v1alpha1.Subnet{}, SubnetBlockIndexKey, ofSubnet(blockValues)},
		{&v1alpha1.Subnet{}, SubnetClusterIndexKey, ofSubnet(clusterValues)},
		{&v1alpha1.Subnet{}, SubnetBacksIndexKey, ofSubnet(backsValues)},
		{&v1alpha1.Subnet{}, SubnetUnclaimedIndexKey, ofSubnet(unclaimedValues)},
		{&v1alpha1.Subnet{}, OwnerIndexKey, ownerValues},
		{&v1alpha1.SubnetClaim{}, OwnerIndexKey, ownerValues},
		{&v1alpha1.SubnetPool{}, OwnerIndexKey, ownerValues},
		{&v1alpha1.SubnetPool{}, PoolBlockIndexKey, poolValues},
		{&v1alpha1.SubnetPool{}, PoolParentIndexKey, func(o client.Object) []string {
			p, ok := o.(*v1alpha1.SubnetPool)
			if !ok || p.ParentName() == "" {
				return nil
			}

			return []string{p.ParentName()}
		}},
		{&v1alpha1.SubnetClaim{}, ClaimWaitingIndexKey, func(o client.Object) []string {
			c, ok := o.(*v1alpha1.SubnetClaim)
			if !ok || c.Status.Phase == v1alpha1.ClaimBound {
				return nil
			}

			return []string{c.Spec.PoolRef}
		}},
	} {
		add := indexField
		if _, many := index.object.(*v1alpha1.Subnet); many && index.key != SubnetUnclaimedIndexKey && index.key != OwnerIndexKey {
			add = indexInNamespace
		}
		if err := add(ctx, i, index.object, index.key, index.values); err != nil {
			return fmt.Errorf("cannot index %T by %s: %w", index.object, index.key, err)
		}
	}

	return nil
}

func ofSubnet(values func(*v1alpha1.Subnet) []string) func(client.Object) []string {
	return func(o client.Object) []string {
		s, ok := o.(*v1alpha1.Subnet)
		if !ok || s.Spec.PoolRef == "" {
			return nil
		}

		return values(s)
	}
}

func blockValues(s *v1alpha1.Subnet) []string { return placesOf(s.Spec.CIDR) }

// placesOf returns the class of a block, and the larger blocks at every step above
// it.
func placesOf(cidr string) []string {
	block, err := netip.ParsePrefix(cidr)
	if err != nil {
		return nil
	}
	values := []string{beside(block, classOf(block.Bits()))}
	for length := 0; length < block.Bits(); length += step {
		values = append(values, below(block, length))
	}

	return values
}

// classOf is the length that the class of a block begins behind. The classes of
// 0 and 1 to 4 are one.
func classOf(length int) int {
	return max(0, length-1) / class * class
}

// beside is the value of all blocks of one class in one block of this length.
func beside(block netip.Prefix, length int) string {
	return "=" + netip.PrefixFrom(block.Addr(), length).Masked().String()
}

// below is the value of all smaller blocks in a block of this length.
func below(block netip.Prefix, length int) string {
	return "<" + netip.PrefixFrom(block.Addr(), length).Masked().String()
}

// SubnetsAt lists Subnets of a namespace from a cache: all that overlap a block, and perhaps more.
// They belong to the cache; do not change them.
func SubnetsAt(ctx context.Context, r client.Reader, namespace string, block netip.Prefix) ([]v1alpha1.Subnet, error) {
	var near []v1alpha1.Subnet
	for _, value := range Overlapping(block) {
		list := &v1alpha1.SubnetList{}
		err := r.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{SubnetBlockIndexKey: value}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("cannot list Subnets: %w", err)
		}
		near = append(near, list.Items...)
	}

	return near, nil
}

// SubnetsNear lists Subnets of a pool from a cache: all that overlap a block, and perhaps more.
// They belong to the cache; do not change them.
func SubnetsNear(ctx context.Context, r client.Reader, namespace, pool string, block netip.Prefix) ([]v1alpha1.Subnet, error) {
	all, err := SubnetsAt(ctx, r, namespace, block)

	return slices.DeleteFunc(all, func(s v1alpha1.Subnet) bool { return s.Spec.PoolRef != pool }), err
}

// ChildPools lists the child pools of a pool. They belong to the cache; do not change
// them.
func ChildPools(ctx context.Context, r client.Reader, namespace, pool string) ([]v1alpha1.SubnetPool, error) {
	list := &v1alpha1.SubnetPoolList{}
	err := r.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{PoolParentIndexKey: pool}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("cannot list SubnetPools: %w", err)
	}

	return list.Items, nil
}

// Overlapping returns the values of SubnetBlockIndexKey and PoolBlockIndexKey that
// every block which overlaps this one has; other blocks may have them too. The number
// of values depends on the length only.
func Overlapping(block netip.Prefix) []string {
	// Blocks smaller than the step above, and the step itself with the blocks
	// around it.
	from := block.Bits() / step * step
	values := []string{below(block, from)}
	for length := classOf(from); length >= 0; length -= class {
		values = append(values, beside(block, length))
	}

	return values
}
