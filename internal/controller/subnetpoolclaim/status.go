package subnetpoolclaim

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
)

// Reasons of the condition Ready.
const (
	reasonBound        = "Bound"
	reasonWaiting      = "WaitingForBlock"
	reasonPoolNotReady = "PoolNotReady"
	reasonTaken        = "NameTaken"
	reasonNotCreated   = "NotCreated"
)

// A result is what the status of a claim reports.
type result struct {
	phase                 v1alpha1.ClaimPhase
	pool, reason, message string
}

// report writes the status of a claim unless it is the same already.
func (r *Reconciler) report(ctx context.Context, c *v1alpha1.SubnetPoolClaim, w result) error {
	before := c.Status.DeepCopy()
	c.Status.Phase, c.Status.BoundPoolName, c.Status.Message, c.Status.ObservedGeneration = w.phase, w.pool, w.message, c.Generation
	ready := metav1.ConditionFalse
	if w.phase == v1alpha1.ClaimBound {
		ready = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: ready, Reason: w.reason, Message: w.message, ObservedGeneration: c.Generation,
	})
	wrote, err := kube.WriteStatus(ctx, r.client, c, *before, c.Status)
	if wrote && w.reason != reasonWaiting && w.reason != reasonPoolNotReady && !had(before, w.reason) {
		kind := corev1.EventTypeWarning
		if w.phase == v1alpha1.ClaimBound {
			kind = corev1.EventTypeNormal
		}
		r.recorder.Eventf(c, nil, kind, w.reason, "Bind", "%s", w.message)
	}

	return err
}

// had reports whether a status had a reason.
func had(s *v1alpha1.SubnetPoolClaimStatus, reason string) bool {
	ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)

	return ready != nil && ready.Reason == reason
}
