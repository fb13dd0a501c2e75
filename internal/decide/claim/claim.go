// Package claim decides what a SubnetClaim is given.
package claim

import (
	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/cidr"
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

// Strategy returns how the engine chooses a block for a pool's strategy. Pools
// without one are Linear.
func Strategy(s v1alpha1.Strategy) cidr.Strategy {
	if s == v1alpha1.StrategyBuddy {
		return cidr.BestFit
	}

	return cidr.FirstFit
}
