package ipam

import (
	"fmt"
	"iter"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// SubnetFacts are what DecideSubnet knows about a Subnet.
type SubnetFacts struct {
	// Name of the Subnet, which is unique in its pool.
	Name string
	// Prefix that it takes, masked.
	Prefix netip.Prefix
	// Phase in its status; an empty phase means Pending.
	Phase v1alpha1.SubnetPhase
	// Version is its resourceVersion.
	Version string
	// Cluster is its clusterID.
	Cluster string
	// Claimed reports whether it was created for a claim and is not being
	// deleted. A pool allocates one such block for each clusterID.
	Claimed bool
}

// final reports whether the Subnet was decided on. There is no second decision.
func (b SubnetFacts) final() bool {
	return b.Phase == v1alpha1.SubnetAllocated || b.Phase == v1alpha1.SubnetFailed
}

// PoolRanges are what DecideSubnet knows about a Subnet's pool. They must be read from the API
// server after the Subnet was known in the version that is decided on.
type PoolRanges struct {
	Name string
	// Spec and Open are what the pool asks for and what it has. The zero prefix
	// means none.
	Spec, Open netip.Prefix
	// Deleting reports whether it is being deleted.
	Deleting bool
}

// PoolRangesOf returns what DecideSubnet needs to know about a pool.
func PoolRangesOf(p *v1alpha1.SubnetPool) *PoolRanges {
	return &PoolRanges{Name: p.Name, Spec: prefixOf(p.Spec.CIDR), Open: prefixOf(p.Open()), Deleting: p.DeletionTimestamp != nil}
}

func prefixOf(cidr string) netip.Prefix {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return netip.Prefix{}
	}

	return prefix.Masked()
}

// A SubnetDecision is the phase of a Subnet, and why.
type SubnetDecision struct {
	Phase   v1alpha1.SubnetPhase
	Reason  string
	Message string
}

// DecideSubnet decides whether a block may be used. The pool is nil when there is no such pool.
// other are Subnets of the same pool, from a snapshot that contains the block itself in the version
// that is decided on; those that neither overlap it nor have its clusterID, and the block itself,
// may be among them or not.
func DecideSubnet(b SubnetFacts, pool *PoolRanges, others iter.Seq[SubnetFacts]) SubnetDecision {
	if b.final() {
		return SubnetDecision{Phase: b.Phase}
	}
	if v, done := place(b, pool); done {
		return v
	}
	for o := range others {
		if o.Name == b.Name {
			continue
		}
		reason, message := conflict(b, o)
		if reason == "" {
			continue
		}
		wins, err := o.wins(b)
		if err != nil {
			return SubnetDecision{v1alpha1.SubnetPending, ReasonVersion, err.Error()}
		}
		if wins {
			return SubnetDecision{v1alpha1.SubnetFailed, reason, message}
		}
	}

	return SubnetDecision{v1alpha1.SubnetAllocated, ReasonAllocated, "no other Subnet overlaps it"}
}

// place checks that a block is inside of the range that its pool has and of the one that it
// requests.
func place(b SubnetFacts, pool *PoolRanges) (SubnetDecision, bool) {
	switch {
	case pool == nil:
		return SubnetDecision{v1alpha1.SubnetPending, ReasonPoolNotFound, "its pool does not exist"}, true
	case pool.Deleting:
		return SubnetDecision{v1alpha1.SubnetFailed, ReasonPoolDeleting, fmt.Sprintf("pool %s is being deleted", pool.Name)}, true
	case !pool.Spec.IsValid():
		return SubnetDecision{v1alpha1.SubnetPending, ReasonPoolNotReady, fmt.Sprintf("pool %s has no valid CIDR", pool.Name)}, true
	case !within(pool.Spec, b.Prefix):
		return SubnetDecision{v1alpha1.SubnetFailed, ReasonOutsidePool, fmt.Sprintf("%s is not inside of pool %s, %s", b.Prefix, pool.Name, pool.Spec)}, true
	case !pool.Open.IsValid():
		return SubnetDecision{v1alpha1.SubnetPending, ReasonPoolNotReady, fmt.Sprintf("pool %s is not open", pool.Name)}, true
	case !within(pool.Open, b.Prefix):
		return SubnetDecision{v1alpha1.SubnetPending, ReasonPoolNotReady, fmt.Sprintf("%s is not inside of %s, the addresses that pool %s has so far", b.Prefix, pool.Open, pool.Name)}, true
	}

	return SubnetDecision{}, false
}

// conflict returns why two blocks cannot both be used, "" if they can.
func conflict(b, o SubnetFacts) (string, string) {
	switch {
	case o.Prefix.Overlaps(b.Prefix):
		return ReasonOverlap, fmt.Sprintf("%s overlaps %s of Subnet %s, which was first", b.Prefix, o.Prefix, o.Name)
	case b.Claimed && o.Claimed && b.Cluster == o.Cluster:
		return ReasonClusterIDInUse, fmt.Sprintf("Subnet %s was first for the clusterID %s, and a pool has one block for each", o.Name, o.Cluster)
	}

	return "", ""
}

// wins reports whether a conflicting block prevents another from being used.
func (b SubnetFacts) wins(other SubnetFacts) (bool, error) {
	if b.final() {
		return b.Phase == v1alpha1.SubnetAllocated, nil
	}
	order, err := resourceversion.CompareResourceVersion(b.Version, other.Version)
	if err != nil {
		return false, fmt.Errorf("cannot compare Subnets %s and %s: %w", b.Name, other.Name, err)
	}

	return order < 0, nil
}
