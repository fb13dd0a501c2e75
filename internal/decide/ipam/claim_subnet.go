package ipam

import (
	"crypto/sha1" //nolint:gosec // a name, not a secret; existing names are made so
	"encoding/hex"
	"net/netip"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// NewSubnet returns the Subnet to create now for a claim that is given a block of a
// pool. It has the finalizer if something depends on its orderly release: a child
// pool in the block, or the time that a freed block stays unused.
func NewSubnet(c *v1alpha1.SubnetClaim, p *v1alpha1.SubnetPool, block netip.Prefix, name string, now time.Time) *v1alpha1.Subnet {
	s := &v1alpha1.Subnet{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name},
		Spec: v1alpha1.SubnetSpec{
			PoolRef: c.Spec.PoolRef, CIDR: block.String(), ClusterID: c.Spec.ClusterID,
			ClaimRef: &v1alpha1.ClaimReference{Name: c.Name, UID: c.UID, PoolUID: p.UID, Time: new(metav1.NewTime(now))},
		},
	}
	if len(validation.IsValidLabelValue(c.Spec.ClusterID)) == 0 {
		s.Labels = map[string]string{v1alpha1.ClusterIDLabel: c.Spec.ClusterID}
	}
	if child := ChildPoolOf(c); child != "" {
		s.Spec.Backs = &v1alpha1.PoolReference{Name: child}
	}
	if s.Spec.Backs != nil || p.Spec.ReuseAfter != nil && p.Spec.ReuseAfter.Duration > 0 {
		s.Finalizers = []string{v1alpha1.Finalizer}
	}

	return s
}

// clockError is how much later than it was taken a block's Subnet may be created: the
// request takes time, and the clocks of Arbor and the API server differ.
const clockError = 2 * time.Minute

// IsOriginal reports whether a Subnet is the one that Arbor created when it took the
// block, and not one of a backup: its claim existed then.
func IsOriginal(s *v1alpha1.Subnet) bool {
	if s.Spec.ClaimRef == nil || s.Spec.ClaimRef.Time == nil {
		return false
	}

	return s.CreationTimestamp.Sub(s.Spec.ClaimRef.Time.Time).Abs() <= clockError
}

// ChildPoolOf returns the name of the pool that is made of a claim's block, "" if the claim is not
// that of a SubnetPoolClaim. Such a claim has the name of the SubnetPoolClaim, or one that begins
// with it. A pool is never made of its own block, even if the label names it: they would wait for
// each other.
func ChildPoolOf(c *v1alpha1.SubnetClaim) string {
	child := v1alpha1.PoolClaimOf(c)
	if child == c.Spec.PoolRef || c.Name != child && !strings.HasPrefix(c.Name, child+"-") {
		return ""
	}

	return child
}

// OwnsBlock reports whether a Subnet holds exactly this block of a pool for the claim
// with this UID.
func OwnsBlock(claim types.UID, pool string, block netip.Prefix, s *v1alpha1.Subnet) bool {
	has, err := netip.ParsePrefix(s.Spec.CIDR)

	return err == nil && has.Masked() == block && s.Spec.ClaimRef != nil && s.Spec.ClaimRef.UID == claim && TakesBlock(pool, block, s)
}

// TakesBlock reports whether a Subnet takes this block of a pool, or a part of it. A
// Failed Subnet takes nothing.
func TakesBlock(pool string, block netip.Prefix, s *v1alpha1.Subnet) bool {
	has, err := netip.ParsePrefix(s.Spec.CIDR)

	return err == nil && has.Overlaps(block) && s.Spec.PoolRef == pool && s.Status.Phase != v1alpha1.SubnetFailed
}

const (
	maxName   = 63 // of a label value, and so of the names of Subnets
	uidDigits = 5  // of a claim's UID, in a name
)

// SubnetNames returns the names for the Subnet of a block that is taken for a claim, in
// the order in which to try them: the second is for when another object has the
// first.
func SubnetNames(pool string, block netip.Prefix, claim types.UID) []string {
	name := SubnetName(pool, block)

	return []string{name, name + "-" + string(claim[:min(uidDigits, len(claim))])}
}

// SubnetName is the name of a block's Subnet. It decides nothing: it is for
// people, and for tools that look a block up by it.
func SubnetName(pool string, block netip.Prefix) string {
	name := pool + "-" + strings.NewReplacer(".", "-", "/", "-", ":", "-").Replace(block.String())
	if len(name) <= maxName {
		return name
	}
	const kept, digits = 40, 16
	sum := sha1.Sum([]byte(name)) //nolint:gosec // as above

	// A dot that is followed by a dash would make the name invalid.
	return strings.TrimRight(name[:min(kept, len(pool))], ".") + "-" + hex.EncodeToString(sum[:])[:digits]
}
