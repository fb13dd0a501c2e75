package kube

import (
	"context"
	"fmt"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// Indexes over the address API. Each is registered once, by IndexSubnets.
const (
	// SubnetPoolRefIndexKey finds Subnets by the name of their pool.
	SubnetPoolRefIndexKey = ".spec.poolRef.name"
	// SubnetBlockIndexKey finds Subnets by pool and address; see Overlapping.
	SubnetBlockIndexKey = ".spec.cidr"
	// SubnetClaimIndexKey finds the Subnets that were taken for a claim; see
	// SubnetsOf.
	SubnetClaimIndexKey = ".spec.claimRef.uid"
	// PoolParentIndexKey finds the pools that were taken from a pool.
	PoolParentIndexKey = ".spec.parent"
	// ControllerIndexKey finds claims and pools by the UID of what owns them.
	ControllerIndexKey = ".metadata.ownerReferences.controller"
	// ClaimWaitingIndexKey finds the claims that wait for a pool.
	ClaimWaitingIndexKey = ".spec.poolRef"
)

// A value that one Subnet stands under alone takes six times the memory of a
// Subnet's place under a value of many: the store keeps a map for each value.
// So a Subnet stands under blocks that are larger than itself only, and under
// the beginning of a UID, and those that are looked for are chosen from a few
// neighbours.
const (
	// step is how many bits lie between two indexed lengths of one address:
	// more would make the lists longer, fewer the index larger.
	step = 8
	// class is how many lengths stand together, up to sixteen neighbours.
	class = 4
	// digits are the beginning of a UID: a dozen of 50,000 have the same.
	digits = 3
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
		{&v1alpha1.Subnet{}, SubnetClaimIndexKey, ofSubnet(func(s *v1alpha1.Subnet) []string {
			if s.Spec.ClaimRef == nil {
				return nil
			}

			return []string{beginning(s.Spec.ClaimRef.UID)}
		})},
		{&v1alpha1.SubnetPool{}, PoolParentIndexKey, func(o client.Object) []string {
			p, ok := o.(*v1alpha1.SubnetPool)
			if !ok || p.ParentName() == "" {
				return nil
			}

			return []string{p.ParentName()}
		}},
		{&v1alpha1.SubnetPool{}, ControllerIndexKey, controllerOf},
		{&v1alpha1.SubnetClaim{}, ControllerIndexKey, controllerOf},
		{&v1alpha1.SubnetClaim{}, ClaimWaitingIndexKey, func(o client.Object) []string {
			c, ok := o.(*v1alpha1.SubnetClaim)
			if !ok || c.Status.Phase == v1alpha1.ClaimBound {
				return nil
			}

			return []string{c.Spec.PoolRef}
		}},
	} {
		if err := i.IndexField(ctx, index.object, index.key, index.values); err != nil {
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

func controllerOf(o client.Object) []string {
	if owner := metav1.GetControllerOf(o); owner != nil {
		return []string{string(owner.UID)}
	}

	return nil
}

// blockValues are the class of a Subnet's own block, and the larger blocks at
// every step above it.
func blockValues(s *v1alpha1.Subnet) []string {
	block, err := netip.ParsePrefix(s.Spec.CIDR)
	if err != nil {
		return nil
	}
	values := []string{beside(s.Spec.PoolRef, block, classOf(block.Bits()))}
	for length := 0; length < block.Bits(); length += step {
		values = append(values, below(s.Spec.PoolRef, block, length))
	}

	return values
}

// classOf is the length that the class of a block begins behind. The classes of
// 0 and 1 to 4 are one.
func classOf(length int) int {
	return max(0, length-1) / class * class
}

// beside is what the blocks of one class in one block of this length stand
// under.
func beside(pool string, block netip.Prefix, length int) string {
	return pool + "=" + netip.PrefixFrom(block.Addr(), length).Masked().String()
}

// below is what all smaller blocks in a block of this length stand under.
func below(pool string, block netip.Prefix, length int) string {
	return pool + "<" + netip.PrefixFrom(block.Addr(), length).Masked().String()
}

func beginning(claim types.UID) string {
	return string(claim[:min(digits, len(claim))])
}

// SubnetsOf lists the Subnets that were taken for a claim from a cache, as
// copies.
func SubnetsOf(ctx context.Context, r client.Reader, claim *v1alpha1.SubnetClaim) ([]v1alpha1.Subnet, error) {
	list := &v1alpha1.SubnetList{}
	fields := client.MatchingFields{SubnetClaimIndexKey: beginning(claim.UID)}
	if err := r.List(ctx, list, client.InNamespace(claim.Namespace), fields, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list Subnets: %w", err)
	}
	var taken []v1alpha1.Subnet
	for i := range list.Items {
		if s := &list.Items[i]; s.Spec.ClaimRef != nil && s.Spec.ClaimRef.UID == claim.UID {
			taken = append(taken, *s.DeepCopy())
		}
	}

	return taken, nil
}

// SubnetsNear lists Subnets of a pool from a cache: all that overlap a block, and
// perhaps others. They are the cache's own; nobody may change them.
func SubnetsNear(ctx context.Context, r client.Reader, namespace, pool string, block netip.Prefix) ([]v1alpha1.Subnet, error) {
	var near []v1alpha1.Subnet
	for _, value := range Overlapping(pool, block) {
		list := &v1alpha1.SubnetList{}
		err := r.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{SubnetBlockIndexKey: value}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("cannot list Subnets: %w", err)
		}
		near = append(near, list.Items...)
	}

	return near, nil
}

// ChildPools lists the pools that were taken from a pool, from a cache: nobody
// may change them.
func ChildPools(ctx context.Context, r client.Reader, namespace, pool string) ([]v1alpha1.SubnetPool, error) {
	list := &v1alpha1.SubnetPoolList{}
	err := r.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{PoolParentIndexKey: pool}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("cannot list SubnetPools: %w", err)
	}

	return list.Items, nil
}

// Overlapping returns the values of SubnetBlockIndexKey under which every
// Subnet of a pool stands that overlaps a block; other Subnets may stand there
// too. The number of values depends on the length only.
func Overlapping(pool string, block netip.Prefix) []string {
	// Those that are smaller than the step above, and those that are not, which
	// can only be the step itself and the blocks around it.
	from := block.Bits() / step * step
	values := []string{below(pool, block, from)}
	for length := classOf(from); length >= 0; length -= class {
		values = append(values, beside(pool, block, length))
	}

	return values
}
