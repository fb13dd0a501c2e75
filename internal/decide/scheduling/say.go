package scheduling

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
)

// Status is the scheduler's part of a PodGroup's status.
type Status struct {
	Conditions []v2alpha2.PodGroupCondition `json:"conditions,omitempty"`
}

func Show(pg *v2alpha2.PodGroup, g *Gang, decision *gang.Decision, why *Refusal, now metav1.Time) Status {
	return Status{}
}
func Shown(pg *v2alpha2.PodGroup, want Status) bool { return true }
func Transition(pg *v2alpha2.PodGroup, want Status) (string, v2alpha2.PodGroupCondition, bool) {
	return "", v2alpha2.PodGroupCondition{}, false
}

// preemptibleBelow is the priority from which on a group that says nothing about it is not preemptible.
const preemptibleBelow = 100

// Preemptible says whether a more important gang may take the group's place.
func Preemptible(pg *v2alpha2.PodGroup, priority int32) bool {
	switch pg.Spec.Preemptibility {
	case v2alpha2.Preemptible:
		return true
	case v2alpha2.NonPreemptible:
		return false
	default:
		return priority < preemptibleBelow
	}
}

// WaitingCondition is what a pod that waits has as its condition PodScheduled; nil if there is nothing to say.
func WaitingCondition(_ *corev1.Pod, g *Gang, decision *gang.Decision, why *Refusal) *corev1.PodCondition {
	c := &corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}
	switch {
	case why != nil:
		c.Reason, c.Message = why.Reason, why.Message
	case decision != nil && !decision.Fits:
		c.Reason, c.Message = corev1.PodReasonUnschedulable, "gang "+g.Group.Namespace+"/"+g.Group.Name+": "+decision.Reason(g.Tree)
	case decision != nil:
		c.Reason, c.Message = corev1.PodReasonUnschedulable, "gang "+g.Group.Namespace+"/"+g.Group.Name+" has its minimum; there is no room for more of it now"
	default:
		return nil
	}

	return c
}

// News says whether a condition has to be written.
func News(has, want *corev1.PodCondition, now time.Time) bool {
	return has.Status != want.Status || has.Reason != want.Reason || has.Message != want.Message
}
