package subnet

import (
	"fmt"
	"iter"
	"net/netip"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// Reasons of a verdict.
const (
	ReasonAllocated    = "Allocated"
	ReasonOverlap      = "Overlap"
	ReasonOutsidePool  = "OutsidePool"
	ReasonPoolNotFound = "PoolNotFound"
	ReasonPoolDeleting = "PoolDeleting"
)

// A Block is what the judge knows of a Subnet.
type Block struct {
	// Name of the Subnet, which tells it from the others of its pool.
	Name string
	// Prefix that it takes, masked.
	Prefix netip.Prefix
	// Phase that is written on it; none is as good as Pending.
	Phase v1alpha1.SubnetPhase
	// Version is its resource version.
	Version uint64
}

// final says whether a verdict has been given. There is no second one.
func (b Block) final() bool {
	return b.Phase == v1alpha1.SubnetAllocated || b.Phase == v1alpha1.SubnetFailed
}

// A Verdict is what a Subnet becomes.
type Verdict struct {
	Phase   v1alpha1.SubnetPhase
	Reason  string
	Message string
}

// Judge says what becomes of a block. The pool's prefix is nil when there is no
// such pool. Others are Subnets of the same pool, from a snapshot that holds
// the block itself in the version that is judged; those that do not overlap it,
// and the block itself, may be among them or not.
func Judge(b Block, pool *netip.Prefix, others iter.Seq[Block]) Verdict {
	switch {
	case b.final():
		return Verdict{Phase: b.Phase}
	case pool == nil:
		return Verdict{v1alpha1.SubnetPending, ReasonPoolNotFound, "its pool does not exist"}
	case !within(*pool, b.Prefix):
		return Verdict{v1alpha1.SubnetFailed, ReasonOutsidePool, fmt.Sprintf("%s is not inside of its pool, %s", b.Prefix, pool)}
	}
	for o := range others {
		if o.Name != b.Name && o.Prefix.Overlaps(b.Prefix) && o.wins(b) {
			return Verdict{v1alpha1.SubnetFailed, ReasonOverlap, fmt.Sprintf("%s overlaps %s of Subnet %s, which was first", b.Prefix, o.Prefix, o.Name)}
		}
	}

	return Verdict{v1alpha1.SubnetAllocated, ReasonAllocated, "no other Subnet overlaps it"}
}

// wins says whether an overlapping block keeps another from being used.
func (b Block) wins(other Block) bool {
	if b.final() {
		return b.Phase == v1alpha1.SubnetAllocated
	}

	return b.Version < other.Version
}

func within(pool, block netip.Prefix) bool {
	return pool.Bits() <= block.Bits() && pool.Contains(block.Addr())
}
