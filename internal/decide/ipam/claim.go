package ipam

import (
	"time"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/cidr"
	"github.com/arbor-control/arbor/engine/ledger"
)

// ReservedUntil returns until when a block of a pool that was released stays unused. The zero
// time means that it is in use, or that only the deletion of a child pool frees it.
func ReservedUntil(b ledger.Block, p *v1alpha1.SubnetPool) time.Time {
	if b.Released == 0 || b.Delegated || p.Spec.ReuseAfter == nil {
		return time.Time{}
	}

	return time.Unix(b.Released, 0).Add(p.Spec.ReuseAfter.Duration)
}

// AllocationStrategy returns how the engine chooses a block for a pool's strategy. Pools
// without one are Linear.
func AllocationStrategy(s v1alpha1.Strategy) cidr.Strategy {
	if s == v1alpha1.StrategyBuddy {
		return cidr.BestFit
	}

	return cidr.FirstFit
}
