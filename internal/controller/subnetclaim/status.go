package subnetclaim

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
)

// A word is what a claim's status says: its phase, and why.
type word struct {
	phase           v1alpha1.ClaimPhase
	ready           metav1.ConditionStatus
	reason, message string
}

// write says a word on a claim, on condition that the claim is as it was read.
// It changes nothing that says so already, and reports whether it wrote.
func write(ctx context.Context, c client.Client, claim *v1alpha1.SubnetClaim, w word, more func(*v1alpha1.SubnetClaimStatus)) (bool, error) {
	claim = claim.DeepCopy()
	before := claim.Status.DeepCopy()
	claim.Status.Phase = w.phase
	claim.Status.Message = w.message
	claim.Status.ObservedGeneration = claim.Generation
	if more != nil {
		more(&claim.Status)
	}
	meta.SetStatusCondition(&claim.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: w.ready, Reason: w.reason, Message: w.message, ObservedGeneration: claim.Generation,
	})

	return kube.WriteStatus(ctx, c, claim, *before, claim.Status)
}
