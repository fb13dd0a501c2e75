package podgroup

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// maxConditionBytes is what the API conventions allow a condition's message.
const maxConditionBytes = 32768

const messageValid = "the subgroups form a tree"

// Valid returns the condition that belongs on the group now. Its message is
// the first problem's, and is the same for as long as the list is. The time
// of the last transition is that of the condition already there, unless its
// status is another one.
func Valid(pg *v2alpha2.PodGroup, now metav1.Time) v2alpha2.PodGroupCondition {
	c := v2alpha2.PodGroupCondition{
		Type:               v2alpha2.PodGroupValid,
		Status:             metav1.ConditionTrue,
		ObservedGeneration: pg.Generation,
		LastTransitionTime: now,
		Reason:             v2alpha2.ReasonTreeValid,
		Message:            messageValid,
	}
	if v := (verdict.Verdict{Problems: problems(pg)}); !v.Allowed() {
		c.Status = metav1.ConditionFalse
		c.Reason = v.Reason()
		c.Message = verdict.Shorten(v.Message(), maxConditionBytes)
	}
	for _, had := range pg.Status.Conditions {
		if had.Type != c.Type || had.Status != c.Status {
			continue
		}
		c.TransitionID = had.TransitionID
		if !had.LastTransitionTime.IsZero() {
			c.LastTransitionTime = had.LastTransitionTime
		}
	}

	return c
}
