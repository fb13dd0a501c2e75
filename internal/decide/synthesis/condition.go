package synthesis

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// Reasons of conditions, in addition to the values of the simplified status.
const (
	ReasonSynthesized     = "Synthesized"
	ReasonRolledBack      = "RolledBack"
	ReasonRollbackUnknown = "RollbackUnknown"
	ReasonRolloutPending  = "RolloutPending"
	ReasonRolloutHalted   = "RolloutHalted"
	ReasonNoExecutor      = "NoExecutor"
	ReasonReconciled      = "Reconciled"
	ReasonNotSynthesized  = "NotSynthesized"
	ReasonSliceLost       = "SliceLost"
)

// timedOut is the message of a synthesis that was canceled without a reported error.
const timedOut = "Timeout"

const maxMessage = 1 << 10

// simplified is a summary of the status.
func simplified(v View, after *enov1.Composition, o *anObstacle, p Progress) *enov1.SimplifiedStatus {
	st := &after.Status
	current := st.CurrentSynthesis
	switch {
	case after.DeletionTimestamp != nil:
		return going(st, p)
	case Running(st):
		return &enov1.SimplifiedStatus{Status: enov1.StatusSynthesizing}
	case pinned(after) && current != nil: // the requested synthesis exists, or never will
	case v.Synthesizer == nil:
		return &enov1.SimplifiedStatus{Status: enov1.StatusMissingSynthesizer, Error: shorten(o.message)}
	case st.InFlightSynthesis != nil:
		return &enov1.SimplifiedStatus{Status: enov1.StatusSynthesisBackoff, Error: Failure(st.InFlightSynthesis)}
	case o != nil && (o.reason != ReasonNoExecutor || current == nil):
		return &enov1.SimplifiedStatus{Status: o.status, Error: shorten(o.message)}
	}

	return withSuspension(st, come(current, p))
}

// withSuspension shows on a status that delivery is suspended.
func withSuspension(st *enov1.CompositionStatus, s *enov1.SimplifiedStatus) *enov1.SimplifiedStatus {
	if c := meta.FindStatusCondition(st.Conditions, enov1.ConditionSuspended); c != nil && st.CurrentSynthesis != nil {
		s.Error = c.Message
	}

	return s
}

// going is the word for a composition that is being deleted.
func going(st *enov1.CompositionStatus, p Progress) *enov1.SimplifiedStatus {
	if st.DependencyStatus != nil {
		return &enov1.SimplifiedStatus{Status: enov1.StatusWaitingOnDependents}
	}

	return &enov1.SimplifiedStatus{Status: enov1.StatusDeleting, Error: errorOf(p.Undeleted)}
}

// come is the word for how far a synthesis has come.
func come(current *enov1.Synthesis, p Progress) *enov1.SimplifiedStatus {
	switch {
	case current == nil:
		return &enov1.SimplifiedStatus{Status: enov1.StatusPendingSynthesis}
	case current.Ready != nil && current.Reconciled != nil:
		return &enov1.SimplifiedStatus{Status: enov1.StatusReady}
	case current.Reconciled != nil:
		return &enov1.SimplifiedStatus{Status: enov1.StatusNotReady}
	default:
		return &enov1.SimplifiedStatus{Status: enov1.StatusReconciling, Error: errorOf(p.Unreconciled)}
	}
}

// pinned reports whether a rollback prevents that a composition is synthesized.
func pinned(c *enov1.Composition) bool {
	to := c.Annotations[enov1.AnnotationRollback]
	in := c.Status.InFlightSynthesis

	return to != "" && (in == nil || in.RolledBackTo != to)
}

func errorOf(w Waiting) string {
	if w.Error == "" {
		return ""
	}

	return shorten(w.describe(""))
}

// Failure is why a synthesis was given up.
func Failure(s *enov1.Synthesis) string {
	for _, r := range s.Results {
		if r.Severity == enov1.SeverityError {
			return shorten(r.Message)
		}
	}

	return timedOut
}

// conditionText is the content of a condition.
type conditionText struct {
	status          metav1.ConditionStatus
	reason, message string
}

// writeConditions writes the conditions. Their texts depend on nothing but the state, so that they stay the
// same as long as it does.
func writeConditions(v View, after *enov1.Composition, o *anObstacle, p Progress, now time.Time) {
	for _, c := range []struct {
		conditionText

		kind string
	}{
		{synthesized(v, after, o, p), enov1.ConditionSynthesized},
		{reconciled(after, p), enov1.ConditionReconciled},
		{ready(after, p), enov1.ConditionReady},
	} {
		meta.SetStatusCondition(&after.Status.Conditions, metav1.Condition{
			Type: c.kind, Status: c.status, Reason: c.reason, Message: shorten(c.message),
			ObservedGeneration: after.Generation, LastTransitionTime: *at(now),
		})
	}
}

func synthesized(v View, after *enov1.Composition, o *anObstacle, p Progress) conditionText {
	st := &after.Status
	to := after.Annotations[enov1.AnnotationRollback]
	switch {
	case after.DeletionTimestamp != nil:
		return conditionText{metav1.ConditionFalse, enov1.StatusDeleting, "the composition is being deleted"}
	case Running(st):
		return conditionText{metav1.ConditionFalse, enov1.StatusSynthesizing, "a synthesis is in flight"}
	case pinned(after):
		return rolledBack(after, to)
	case to == "" && o != nil:
		return conditionText{metav1.ConditionFalse, o.reason, o.message}
	case st.InFlightSynthesis != nil:
		return conditionText{metav1.ConditionFalse, enov1.StatusSynthesisBackoff, Failure(st.InFlightSynthesis)}
	default:
		return idle(v, after, p)
	}
}

// idle is the condition while nothing is in flight and there is no obstacle.
func idle(v View, after *enov1.Composition, p Progress) conditionText {
	st := &after.Status
	wish, ok := Want(after, v.Synthesizer)
	switch {
	case st.CurrentSynthesis == nil:
		return conditionText{metav1.ConditionFalse, enov1.StatusPendingSynthesis, "the first synthesis waits for its turn"}
	case ok && wish.Cause.deferred() && isHeld(v, after):
		return conditionText{metav1.ConditionTrue, ReasonRolloutHalted, fmt.Sprintf("the rollout of Synthesizer %s, generation %d, is halted; for the reason: arbor delivery rollout %s", v.Synthesizer.Name, v.Synthesizer.Generation, v.Synthesizer.Name)}
	case ok && wish.Cause.deferred():
		return conditionText{metav1.ConditionTrue, ReasonRolloutPending, fmt.Sprintf("the next synthesis waits for its turn in a rollout (%s)", wish.Cause)}
	case ok:
		return conditionText{metav1.ConditionFalse, enov1.StatusPendingSynthesis, fmt.Sprintf("the next synthesis waits for its turn (%s)", wish.Cause)}
	default:
		return conditionText{metav1.ConditionTrue, ReasonSynthesized, counted(p.Total, "resource") + " in " + counted(len(st.CurrentSynthesis.ResourceSlices), "slice")}
	}
}

// isHeld reports whether a halted rollout keeps a composition from its next synthesis.
func isHeld(v View, after *enov1.Composition) bool {
	return (Halted(v.Synthesizer, v.Scope) != nil || Halted(v.Synthesizer, after.Namespace) != nil) && guardedStage(after, v.Synthesizer) != StageFailed
}

func rolledBack(after *enov1.Composition, to string) conditionText {
	current := after.Status.CurrentSynthesis
	switch {
	case current != nil && (current.UUID == to || current.RolledBackTo == to):
		return conditionText{metav1.ConditionTrue, ReasonRolledBack, fmt.Sprintf("the manifests are those of synthesis %s; nothing is synthesized until the annotation %s is removed", to, enov1.AnnotationRollback)}
	case Find(&after.Status, to) == nil:
		return conditionText{metav1.ConditionFalse, ReasonRollbackUnknown, fmt.Sprintf("annotation %s: there is no synthesis %s in currentSynthesis, previousSynthesis or history; nothing is synthesized until it names one of them or is removed", enov1.AnnotationRollback, to)}
	default:
		return conditionText{metav1.ConditionFalse, enov1.StatusPendingSynthesis, fmt.Sprintf("the rollback to %s waits for its turn", to)}
	}
}

func reconciled(after *enov1.Composition, p Progress) conditionText {
	switch current := after.Status.CurrentSynthesis; {
	case after.DeletionTimestamp != nil && after.Status.DependencyStatus != nil:
		return conditionText{metav1.ConditionFalse, enov1.StatusWaitingOnDependents, dependent(after.Status.DependencyStatus.BlockedBy[0])}
	case after.DeletionTimestamp != nil && p.Undeleted.Count > 0:
		return conditionText{metav1.ConditionFalse, enov1.StatusDeleting, p.Undeleted.describe("it is not deleted yet")}
	case after.DeletionTimestamp != nil:
		return conditionText{metav1.ConditionFalse, enov1.StatusDeleting, "no object is left"}
	case current == nil:
		return conditionText{metav1.ConditionFalse, ReasonNotSynthesized, "nothing was synthesized yet"}
	case p.Lost > 0:
		return conditionText{metav1.ConditionFalse, ReasonSliceLost, lost(p)}
	case current.Reconciled == nil:
		return conditionText{metav1.ConditionFalse, enov1.StatusReconciling, p.Unreconciled.describe("it is not reconciled yet")}
	default:
		return conditionText{metav1.ConditionTrue, ReasonReconciled, fmt.Sprintf("the cluster agrees with all %d resources", p.Total)}
	}
}

// lost describes slices of the current synthesis that do not exist, or do not belong to it.
func lost(p Progress) string {
	if len(p.Rejected) == 0 {
		return fmt.Sprintf("%d of %d slices of the current synthesis do not exist", p.Lost, p.Lost+p.Slices)
	}

	return fmt.Sprintf("%d of %d slices of the current synthesis are lost, and their objects stay as they are: %s", p.Lost, p.Lost+p.Slices, strings.Join(p.Rejected, "; "))
}

// dependent describes what keeps a composition from being deleted.
func dependent(by enov1.BlockedBy) string {
	if by.Name == "" {
		return fmt.Sprintf("compositions of other namespaces depend on this one and are not deleted; to delete it all the same, remove the annotation %s", enov1.AnnotationDependentsFrom)
	}

	return fmt.Sprintf("Composition %s/%s depends on this one and is not deleted", by.Namespace, by.Name)
}

func ready(after *enov1.Composition, p Progress) conditionText {
	switch current := after.Status.CurrentSynthesis; {
	case after.DeletionTimestamp != nil:
		return conditionText{metav1.ConditionFalse, enov1.StatusDeleting, "the composition is being deleted"}
	case current == nil:
		return conditionText{metav1.ConditionFalse, ReasonNotSynthesized, "nothing was synthesized yet"}
	case current.Ready != nil:
		return conditionText{metav1.ConditionTrue, enov1.StatusReady, fmt.Sprintf("all %d resources are ready", p.Total)}
	case p.Unready.Count > 0:
		return conditionText{metav1.ConditionFalse, enov1.StatusNotReady, p.Unready.describe("it is not ready yet")}
	default:
		return conditionText{metav1.ConditionFalse, enov1.StatusReconciling, "all resources are ready, and not all are reconciled"}
	}
}

// Made describes what a synthesis created.
func Made(uuid string, resources int) string {
	return fmt.Sprintf("Synthesis %s made %s", uuid, counted(resources, "resource"))
}

// Lost describes slices that were lost with the record of which objects were delivered.
func Lost(names string) string {
	return "ResourceSlice " + names + " does not exist any more, or does not belong to the Composition, and no manager that runs remembers its manifests: " +
		"objects that are in no later synthesis may be left behind. To find them, look for objects with the field manager of delivery (eno by default) that no Composition has"
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}

	return fmt.Sprintf("%d %ss", n, what)
}

func shorten(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	runes := []rune(text)

	return string(runes[:min(len(runes), maxMessage/4)]) + "…"
}
