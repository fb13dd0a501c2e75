package ipam

import (
	"strings"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipamplan"
)

// A RestoredReport is the result of arbor pools restored.
type RestoredReport struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Ended is false if the pool was not being restored.
	Ended bool `json:"ended"`
	// Waiting are the claims that have a recorded block and are not bound.
	Waiting []WaitingClaim `json:"waiting"`
}

// A WaitingClaim is a claim that waits for the block that it had.
type WaitingClaim struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	CIDR      string `json:"cidr"`
	Phase     string `json:"phase"`
	Message   string `json:"message"`
}

// StillWaiting are the claims that have a recorded block of a pool and are not bound.
func StillWaiting(a *ipamplan.Objects, p *v1alpha1.SubnetPool) []WaitingClaim {
	waiting := []WaitingClaim{}

	for _, c := range ipamplan.Sorted(a.Claims) {
		block, ok := strings.CutPrefix(c.Annotations[v1alpha1.BlockAnnotation], p.Name+"/")
		if ok && c.Namespace == p.Namespace && c.Spec.PoolRef == p.Name && c.Status.Phase != v1alpha1.ClaimBound {
			waiting = append(waiting, WaitingClaim{c.Namespace, c.Name, block, string(c.Status.Phase), c.Status.Message})
		}
	}

	return waiting
}
