package ipam

import (
	"cmp"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// namePrefix begins the name and the clusterID of a backing Subnet.
const namePrefix = "pool."

// BackedRange returns the addresses that the backing Subnet of a pool must contain: those
// that the pool has, or asks for if it has none.
func BackedRange(p *v1alpha1.SubnetPool) string {
	return cmp.Or(p.Open(), p.Spec.CIDR)
}

// A BackingStep is what to do about the backing Subnet of a pool.
type BackingStep int

// Steps.
const (
	// KeepBlock means that the pool has its block, or must wait.
	KeepBlock BackingStep = iota
	// BindBlock means that a Subnet becomes the block of the pool.
	BindBlock
	// RetryBlock means that a Failed Subnet is deleted if another may be Allocated.
	RetryBlock
	// CreateBlock means that the pool needs a Subnet.
	CreateBlock
)

// DecideBacking returns the next step towards a backing Subnet, and the Subnet that it is
// about.
func DecideBacking(p *v1alpha1.SubnetPool, wants netip.Prefix, subnets []v1alpha1.Subnet) (*v1alpha1.Subnet, BackingStep) {
	var failed, bindable *v1alpha1.Subnet
	for i := range subnets {
		s := &subnets[i]
		switch {
		case s.Status.Phase == v1alpha1.SubnetFailed:
			failed = s
		case !Contains(s.Spec.CIDR, wants):
			// The pool asked for other addresses before, and has a block with those. A
			// pool keeps its block, so a second one would never be released.
			if keeps(s, p) {
				return nil, KeepBlock
			}
		case s.Status.PoolUID == p.UID && protects(s), s.DeletionTimestamp != nil, !isAllocated(s):
			return nil, KeepBlock // it backs the pool, or prevents another one until it is gone, or is not decided
		default:
			bindable = s
		}
	}
	switch {
	case bindable != nil:
		return bindable, BindBlock
	case IsClaimed(p):
		return nil, KeepBlock // the SubnetPoolClaim gets one
	case failed != nil:
		return failed, RetryBlock
	}

	return nil, CreateBlock
}

// keeps reports whether a Subnet is for this very pool and no other, or becomes so.
func keeps(s *v1alpha1.Subnet, p *v1alpha1.SubnetPool) bool {
	if s.DeletionTimestamp != nil {
		return false
	}

	return s.Status.PoolUID == p.UID || s.Status.PoolUID == "" && s.Spec.Backs != nil && s.Spec.Backs.UID == p.UID
}

// isAllocated reports whether a Subnet has its block. A status with the UID of another
// Subnet comes from a backup and counts as none.
func isAllocated(s *v1alpha1.Subnet) bool {
	return s.Status.Phase == v1alpha1.SubnetAllocated && (s.Status.UID == "" || s.Status.UID == s.UID)
}

// Contains reports whether a block lies inside of the range that a text names.
func Contains(cidr string, block netip.Prefix) bool {
	outer, err := netip.ParsePrefix(cidr)

	return err == nil && outer.Bits() <= block.Bits() && outer.Contains(block.Addr())
}

func protects(s *v1alpha1.Subnet) bool { return slices.Contains(s.Finalizers, v1alpha1.Finalizer) }

// IsPoolClaim reports whether an owner reference is to a SubnetPoolClaim.
func IsPoolClaim(o metav1.OwnerReference) bool { return o.Kind == v1alpha1.SubnetPoolClaimKind }

// IsClaimed reports whether a pool was made for a SubnetPoolClaim.
func IsClaimed(p *v1alpha1.SubnetPool) bool {
	return v1alpha1.PoolClaimOf(p) != "" || slices.ContainsFunc(p.OwnerReferences, IsPoolClaim)
}

// BackingSubnet returns the Subnet that reserves the addresses of a child pool in its parent.
func BackingSubnet(p *v1alpha1.SubnetPool) *v1alpha1.Subnet {
	id := v1alpha1.LabelValue(namePrefix, p.Name)

	return &v1alpha1.Subnet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: id, Finalizers: []string{v1alpha1.Finalizer},
			Labels: map[string]string{v1alpha1.ClusterIDLabel: id},
		},
		Spec: v1alpha1.SubnetSpec{
			PoolRef: p.ParentName(), CIDR: BackedRange(p), ClusterID: id,
			Backs: &v1alpha1.PoolReference{Name: p.Name, UID: p.UID},
		},
	}
}
