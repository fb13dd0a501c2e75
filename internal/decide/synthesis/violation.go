package synthesis

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// violated is the obstacle of a composition that breaks a rule between tenants.
func violated(v *tenancy.Violation) *anObstacle {
	if v.Condition == enov1.ConditionInputForbidden {
		return &anObstacle{enov1.StatusMissingInputs, v.Condition, v.Message}
	}

	return &anObstacle{enov1.StatusPendingSynthesis, v.Condition, v.Message}
}

// forbiddenInput returns the first rule that an input breaks, nil if there is none.
func forbiddenInput(v View) *tenancy.Violation {
	for _, in := range v.Inputs {
		if in.Forbidden != nil {
			return in.Forbidden
		}
	}

	return nil
}

// reportViolations writes the conditions of the rules between tenants. Each is absent if the
// composition keeps to its rules.
func reportViolations(v View, after *enov1.Composition, now time.Time) {
	var inputs, env []*tenancy.Violation
	if v.Synthesizer != nil && after.DeletionTimestamp == nil {
		for _, in := range v.Inputs {
			if in.Forbidden != nil {
				inputs = append(inputs, in.Forbidden)
			}
		}
		for _, in := range v.Inputs {
			if in.Ignored != nil {
				inputs = append(inputs, in.Ignored)
			}
		}
		if found := v.Rules.Env(after.Spec.SynthesisEnv); found != nil {
			env = append(env, found)
		}
	}
	report(after, enov1.ConditionInputForbidden, inputs, now)
	report(after, enov1.ConditionEnvForbidden, env, now)
}

// report writes one condition, about the first of several violations.
func report(after *enov1.Composition, condition string, all []*tenancy.Violation, now time.Time) {
	if len(all) == 0 {
		meta.RemoveStatusCondition(&after.Status.Conditions, condition)

		return
	}
	message := all[0].Message
	if n := len(all); n > 1 {
		message += fmt.Sprintf(" (and %d more)", n-1)
	}
	meta.SetStatusCondition(&after.Status.Conditions, metav1.Condition{
		Type: condition, Status: metav1.ConditionTrue, Reason: all[0].Reason, Message: shorten(message),
		ObservedGeneration: after.Generation, LastTransitionTime: *at(now),
	})
}
