package subnet

import (
	"fmt"
	"iter"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// Reasons of a verdict.
const (
	ReasonAllocated      = "Allocated"
	ReasonOverlap        = "Overlap"
	ReasonOutsidePool    = "OutsidePool"
	ReasonPoolNotFound   = "PoolNotFound"
	ReasonPoolNotReady   = "PoolNotReady"
	ReasonPoolDeleting   = "PoolDeleting"
	ReasonClusterIDInUse = "ClusterIDInUse"
	ReasonVersion        = "InvalidResourceVersion"
)

// A Block is what the judge knows of a Subnet.
type Block struct {
	// Name of the Subnet, which tells it from the others of its pool.
	Name string
	// Prefix that it takes, masked.
	Prefix netip.Prefix
	// Phase that is written on it; none is as good as Pending.
	Phase v1alpha1.SubnetPhase
	// Version is its resourceVersion.
	Version string
	// Cluster is its clusterID.
	Cluster string
	// Claimed reports whether it was created for a claim and is not being
	// deleted. A pool allocates one such block for each clusterID.
	Claimed bool
}

// final says whether a verdict has been given. There is no second one.
func (b Block) final() bool {
	return b.Phase == v1alpha1.SubnetAllocated || b.Phase == v1alpha1.SubnetFailed
}

// A Pool is what the judge knows of a Subnet's pool. It must be read from the API
// server after the Subnet was known in the version that is judged.
type Pool struct {
	Name string
	// Spec and Open are what the pool asks for and what it has. The zero prefix
	// means none.
	Spec, Open netip.Prefix
	// Deleting reports whether it is being deleted.
	Deleting bool
}

// PoolOf returns what the judge needs to know of a pool.
func PoolOf(p *v1alpha1.SubnetPool) *Pool {
	return &Pool{Name: p.Name, Spec: prefixOf(p.Spec.CIDR), Open: prefixOf(p.Open()), Deleting: p.DeletionTimestamp != nil}
}

func prefixOf(cidr string) netip.Prefix {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return netip.Prefix{}
	}

	return prefix.Masked()
}

// A Verdict is what a Subnet becomes.
type Verdict struct {
	Phase   v1alpha1.SubnetPhase
	Reason  string
	Message string
}

// Judge says what becomes of a block. The pool is nil when there is no such pool.
// Others are Subnets of the same pool, from a snapshot that holds the block itself
// in the version that is judged; those that neither overlap it nor have its
// clusterID, and the block itself, may be among them or not.
func Judge(b Block, pool *Pool, others iter.Seq[Block]) Verdict {
	if b.final() {
		return Verdict{Phase: b.Phase}
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
			return Verdict{v1alpha1.SubnetPending, ReasonVersion, err.Error()}
		}
		if wins {
			return Verdict{v1alpha1.SubnetFailed, reason, message}
		}
	}

	return Verdict{v1alpha1.SubnetAllocated, ReasonAllocated, "no other Subnet overlaps it"}
}

// place asks that a block lies in what its pool has and goes on to ask for.
func place(b Block, pool *Pool) (Verdict, bool) {
	switch {
	case pool == nil:
		return Verdict{v1alpha1.SubnetPending, ReasonPoolNotFound, "its pool does not exist"}, true
	case pool.Deleting:
		return Verdict{v1alpha1.SubnetFailed, ReasonPoolDeleting, fmt.Sprintf("pool %s is being deleted", pool.Name)}, true
	case !pool.Spec.IsValid():
		return Verdict{v1alpha1.SubnetPending, ReasonPoolNotReady, fmt.Sprintf("pool %s has no valid CIDR", pool.Name)}, true
	case !within(pool.Spec, b.Prefix):
		return Verdict{v1alpha1.SubnetFailed, ReasonOutsidePool, fmt.Sprintf("%s is not inside of pool %s, %s", b.Prefix, pool.Name, pool.Spec)}, true
	case !pool.Open.IsValid():
		return Verdict{v1alpha1.SubnetPending, ReasonPoolNotReady, fmt.Sprintf("pool %s is not open", pool.Name)}, true
	case !within(pool.Open, b.Prefix):
		return Verdict{v1alpha1.SubnetPending, ReasonPoolNotReady, fmt.Sprintf("%s is not inside of %s, the addresses that pool %s has so far", b.Prefix, pool.Open, pool.Name)}, true
	}

	return Verdict{}, false
}

// conflict returns why two blocks cannot both be used, "" if they can.
func conflict(b, o Block) (string, string) {
	switch {
	case o.Prefix.Overlaps(b.Prefix):
		return ReasonOverlap, fmt.Sprintf("%s overlaps %s of Subnet %s, which was first", b.Prefix, o.Prefix, o.Name)
	case b.Claimed && o.Claimed && b.Cluster == o.Cluster:
		return ReasonClusterIDInUse, fmt.Sprintf("Subnet %s was first for the clusterID %s, and a pool has one block for each", o.Name, o.Cluster)
	}

	return "", ""
}

// wins says whether a conflicting block keeps another from being used.
func (b Block) wins(other Block) (bool, error) {
	if b.final() {
		return b.Phase == v1alpha1.SubnetAllocated, nil
	}
	order, err := resourceversion.CompareResourceVersion(b.Version, other.Version)
	if err != nil {
		return false, fmt.Errorf("cannot compare Subnets %s and %s: %w", b.Name, other.Name, err)
	}

	return order < 0, nil
}

func within(pool, block netip.Prefix) bool {
	return pool.Bits() <= block.Bits() && pool.Contains(block.Addr())
}
