package ipam

import (
	"net/netip"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// Backs reports whether a Subnet of the parent holds the block that a child pool is
// made of, or is meant to. Any other Subnet that overlaps a child pool is in its
// way.
//
// The name in spec.backs decides, whatever the UID there: after a restore the pool
// has another UID, and two pools of one name never exist at a time. Whether the
// pool can be opened in the Subnet is another question, which status.poolUID
// answers.
func Backs(s *v1alpha1.Subnet, child *v1alpha1.SubnetPool) bool {
	if s.Status.PoolUID != "" && s.Status.PoolUID == child.UID {
		return true
	}
	if s.Spec.Backs != nil {
		return s.Spec.Backs.Name == child.Name
	}

	return backsStored(s, child)
}

// backsStored recognizes Subnets that were created before spec.backs existed: those
// of the claim that a SubnetPoolClaim made for its pool, with the block of the pool.
func backsStored(s *v1alpha1.Subnet, child *v1alpha1.SubnetPool) bool {
	owner := v1alpha1.PoolClaimOf(child)
	if o := metav1.GetControllerOf(child); o != nil && o.Kind == v1alpha1.SubnetPoolClaimKind {
		owner = o.Name
	}
	if owner == "" || s.Spec.ClaimRef == nil {
		return false
	}
	// Older claims were given a name that begins with their owner's.
	if claim := s.Spec.ClaimRef.Name; claim != owner && !strings.HasPrefix(claim, owner+"-") {
		return false
	}
	has, err := netip.ParsePrefix(s.Spec.CIDR)
	wants, bad := read(child)

	return err == nil && bad == nil && has.Masked() == wants
}
