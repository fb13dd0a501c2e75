package ipam

import (
	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/cidr"
	"github.com/arbor-control/arbor/internal/decide/ipamplan"
)

// A PlanView is what arbor pools plan prints for programs.
type PlanView struct {
	Namespace string            `json:"namespace"`
	Pool      string            `json:"pool"`
	CIDR      string            `json:"cidr"`
	Strategy  v1alpha1.Strategy `json:"strategy"`
	// Size is the length that FreeOfSize counts.
	Size int `json:"size"`
	// Waiting are the claims that are served before, in their order.
	Waiting []ipamplan.Planned `json:"waiting"`
	// Blocks are what would be handed out.
	Blocks []ipamplan.Planned `json:"blocks"`
	// Fits is true if that is everything that was asked for.
	Fits bool `json:"fits"`
	// Problems say what does not fit, and what would help.
	Problems []string      `json:"problems"`
	Before   PlanSpaceView `json:"before"`
	After    PlanSpaceView `json:"after"`
}

// PlanKind is the kind of the document that a [PlanView] is.
const PlanKind = "PoolPlan"

// A PlanSpaceView is a pool before or after a plan.
type PlanSpaceView struct {
	SpaceView

	// FreeOfSize is how many blocks of the size could be handed out, or the
	// largest int64 if that is less.
	FreeOfSize int64 `json:"freeOfSize"`
}

// PlanViewOf returns the view of a plan.
func PlanViewOf(p *ipamplan.Plan) PlanView {
	return PlanView{
		Namespace: p.Stock.Namespace, Pool: p.Stock.Name, CIDR: p.Before().Prefix().String(), Strategy: p.Strategy, Size: p.Length,
		Waiting: append([]ipamplan.Planned{}, p.Waiting...), Blocks: append([]ipamplan.Planned{}, p.Blocks...),
		Fits: len(p.Problems) == 0, Problems: append([]string{}, p.Problems...),
		Before: planSpaceOf(p.Before(), p.Length), After: planSpaceOf(p.After(), p.Length),
	}
}

func planSpaceOf(c *cidr.Pool, length int) PlanSpaceView {
	return PlanSpaceView{SpaceView: spaceViewOf(c), FreeOfSize: c.FreeCount(length).Int64()}
}
