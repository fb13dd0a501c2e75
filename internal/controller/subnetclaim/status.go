package subnetclaim

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
)

// An outcome is the status of a claim: its phase, and why.
type outcome struct {
	phase           v1alpha1.ClaimPhase
	ready           metav1.ConditionStatus
	reason, message string
}

// on returns a copy of a claim with this status.
func (w outcome) on(claim *v1alpha1.SubnetClaim) *v1alpha1.SubnetClaim {
	next := claim.DeepCopy()
	if claim.Status.Phase != w.phase {
		next.Status.UID = claim.UID // not for the many that were stored without it
	}
	next.Status.Phase = w.phase
	next.Status.Message = w.message
	next.Status.ObservedGeneration = claim.Generation
	meta.SetStatusCondition(&next.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: w.ready, Reason: w.reason, Message: w.message, ObservedGeneration: claim.Generation,
	})

	return next
}

// write writes the status of a claim under the resourceVersion that was read. It
// writes nothing if the status is like that already, and reports whether it wrote.
func write(ctx context.Context, c client.Client, claim *v1alpha1.SubnetClaim, w outcome, more func(*v1alpha1.SubnetClaimStatus)) (bool, error) {
	next := w.on(claim)
	if more != nil {
		more(&next.Status)
	}

	return kube.WriteStatus(ctx, c, next, claim.Status, next.Status)
}
