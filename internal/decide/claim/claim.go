// Package claim decides what a SubnetClaim is given.
package claim

import (
	"time"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/cidr"
	"github.com/arbor-control/arbor/engine/ledger"
)

// Reasons of a claim's condition Ready.
const (
	ReasonBound          = "Allocated"
	ReasonPoolNotFound   = "PoolNotFound"
	ReasonPoolInvalid    = "PoolInvalid"
	ReasonPoolNotReady   = "PoolNotReady"
	ReasonPoolRestoring  = "PoolRestoring"
	ReasonExhausted      = "PoolExhausted"
	ReasonTaken          = "RequestedCIDRTaken"
	ReasonRecordTaken    = "RecordedBlockTaken"
	ReasonInvalidRecord  = "InvalidRecord"
	ReasonClusterIDTaken = "ClusterIDInUse"
	ReasonOutsidePool    = "OutsidePool"
	ReasonSizeRefused    = "BlockSizeRefused"
	ReasonNotCreated     = "NotCreated"
	ReasonSubnetLost     = "SubnetLost"
)

// CoolsUntil returns until when a block of a pool that was released stays unused. The zero
// time means that it is in use, or that only the deletion of a child pool frees it.
func CoolsUntil(b ledger.Block, p *v1alpha1.SubnetPool) time.Time {
	if b.Released == 0 || b.Delegated || p.Spec.ReuseAfter == nil {
		return time.Time{}
	}

	return time.Unix(b.Released, 0).Add(p.Spec.ReuseAfter.Duration)
}

// Strategy returns how the engine chooses a block for a pool's strategy. Pools
// without one are Linear.
func Strategy(s v1alpha1.Strategy) cidr.Strategy {
	if s == v1alpha1.StrategyBuddy {
		return cidr.BestFit
	}

	return cidr.FirstFit
}
