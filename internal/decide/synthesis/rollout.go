package synthesis

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// DefaultMaxFailures is how many compositions may fail before a rollout halts by default.
// One that fails may have a reason of its own; three that worked before hardly have.
const DefaultMaxFailures = 3

// provenAfter is how long after its synthesis a composition that was delivered must begin to
// fail for the rollout not to be the reason.
const provenAfter = 10 * time.Minute

// A Stage is where a composition is in the rollout of its Synthesizer.
type Stage int

// Stages of a rollout.
const (
	// StageOther is a composition that the rollout does not concern: it is being deleted,
	// ignores side effects, is rolled back, or lacks something.
	StageOther Stage = iota
	// StageWaiting is a composition whose turn has not come.
	StageWaiting
	// StageRunning is a composition whose synthesis is in flight for the first time.
	StageRunning
	// StageUpdated is a composition whose current synthesis is of the generation.
	StageUpdated
	// StageFailed is a composition that the rollout has broken.
	StageFailed
)

// StageOf returns where a composition is in the rollout of its Synthesizer, nil if that
// does not exist. A rollout consists of the deferred syntheses of one generation.
func StageOf(c *enov1.Composition, s *enov1.Synthesizer) Stage {
	if s == nil || c.DeletionTimestamp != nil {
		return StageOther
	}
	if stage := guardedStage(c, s); stage != StageOther {
		return stage
	}
	if wish, ok := Want(c, s); ok && wish.Cause.deferred() {
		return StageWaiting
	}

	return plainStage(c, s)
}

// plainStage is that of a composition that is neither failing nor waiting.
func plainStage(c *enov1.Composition, s *enov1.Synthesizer) Stage {
	latest := Latest(&c.Status)
	switch {
	case latest == nil || latest.ObservedSynthesizerGeneration != s.Generation || latest.Canceled != nil || latest.RolledBackTo != "":
		return StageOther
	case Running(&c.Status):
		return StageRunning
	default:
		return StageUpdated
	}
}

// guardedStage is StageFailed or StageRunning for a composition that counts for the halt of a
// rollout, and StageOther for the rest.
func guardedStage(c *enov1.Composition, s *enov1.Synthesizer) Stage {
	if s == nil || c.DeletionTimestamp != nil {
		return StageOther
	}
	latest, rolledBack := rolledOut(&c.Status)
	switch {
	case !isGuarded(latest, s):
		return StageOther
	case rolledBack || isFailing(c) && !hasWorked(c):
		return StageFailed
	case Running(&c.Status):
		return StageRunning
	default:
		return StageOther
	}
}

// isGuarded reports whether a synthesis, nil if there is none, is part of the rollout of the
// present generation of a Synthesizer, and did not fail before it.
func isGuarded(latest *enov1.Synthesis, s *enov1.Synthesizer) bool {
	return latest != nil && latest.Deferred && !latest.FailedBefore && latest.ObservedSynthesizerGeneration == s.Generation
}

// rolledOut returns the latest synthesis that is not a rollback, and whether a rollback has
// replaced it.
func rolledOut(st *enov1.CompositionStatus) (_ *enov1.Synthesis, rolledBack bool) {
	latest := Latest(st)
	if latest == nil || latest.RolledBackTo == "" {
		return latest, false
	}
	for _, s := range promoted(st) {
		if s.RolledBackTo == "" {
			return s, true
		}
	}

	return nil, false
}

// isFailing reports whether the latest synthesis of a composition has failed, is tried again
// after that, or cannot be delivered.
func isFailing(c *enov1.Composition) bool {
	if in := c.Status.InFlightSynthesis; in != nil {
		if in.Canceled == nil {
			return in.Attempts > 1
		}

		return EndOf(c, in.UUID) == GivenUp
	}
	current, simple := c.Status.CurrentSynthesis, c.Status.Simplified
	if current == nil || current.Reconciled != nil || simple == nil || meta.IsStatusConditionTrue(c.Status.Conditions, enov1.ConditionSuspended) {
		return false
	}

	return simple.Status == enov1.StatusReconciling && simple.Error != ""
}

// hasWorked reports whether the current synthesis of a composition was delivered before it
// began to fail: the condition Reconciled is False since long after the synthesis.
func hasWorked(c *enov1.Composition) bool {
	current := c.Status.CurrentSynthesis
	if c.Status.InFlightSynthesis != nil || current == nil || current.Synthesized == nil {
		return false
	}
	is := meta.FindStatusCondition(c.Status.Conditions, enov1.ConditionReconciled)

	return is != nil && is.Status == metav1.ConditionFalse && is.LastTransitionTime.Sub(current.Synthesized.Time) > provenAfter
}

// failedBefore reports whether a composition is failing, and not because of a rollout.
func failedBefore(c *enov1.Composition) bool {
	if !isFailing(c) {
		return false
	}
	latest := Latest(&c.Status)

	return !latest.Deferred || latest.FailedBefore || hasWorked(c)
}

// IsResumed reports whether a user wants the rollout of a Synthesizer to go on however many
// compositions fail. That is about the present generation only.
func IsResumed(s *enov1.Synthesizer) bool {
	return s.Annotations[enov1.AnnotationResumeRollout] == strconv.FormatInt(s.Generation, 10)
}

// haltType is the type of the condition RolloutHalted that is about one namespace, or about
// all if scope is "". Managers that are about one namespace each share Synthesizers, so each
// has a condition of its own.
func haltType(scope string) string {
	if scope == "" {
		return enov1.ConditionRolloutHalted
	}

	return enov1.ConditionRolloutHalted + "." + scope
}

// Halted returns why the rollout of the present generation of a Synthesizer is halted in one
// namespace, or as a whole if scope is "". It is nil if the rollout is not halted.
func Halted(s *enov1.Synthesizer, scope string) *metav1.Condition {
	c := meta.FindStatusCondition(s.Status.Conditions, haltType(scope))
	if c == nil || !isHalt(s, c) {
		return nil
	}

	return c
}

// AllHalts returns the conditions with which any manager has halted the rollout of the
// present generation of a Synthesizer. There are none if a user has resumed it: a manager
// that no longer runs does not remove its condition.
func AllHalts(s *enov1.Synthesizer) []metav1.Condition {
	if IsResumed(s) {
		return nil
	}
	var all []metav1.Condition
	for i := range s.Status.Conditions {
		if c := &s.Status.Conditions[i]; isHalt(s, c) {
			all = append(all, *c)
		}
	}

	return all
}

// isHalt reports whether a condition halts the rollout of the present generation.
func isHalt(s *enov1.Synthesizer, c *metav1.Condition) bool {
	return isHaltType(c.Type) && c.Status == metav1.ConditionTrue && c.ObservedGeneration == s.Generation
}

func isHaltType(name string) bool {
	return name == enov1.ConditionRolloutHalted || strings.HasPrefix(name, enov1.ConditionRolloutHalted+".")
}

// ResumeCommand is the command that has a halted rollout go on.
func ResumeCommand(synthesizer string) string {
	return "arbor delivery rollout resume " + synthesizer
}

// A Halt is a Synthesizer whose condition RolloutHalted has to be written.
type Halt struct {
	Synthesizer *enov1.Synthesizer
	// Scope is the namespace that the condition is about, "" for all.
	Scope string
	// Message of the condition, "" if the condition has to be removed.
	Message string
}

// Apply returns the Synthesizer with its condition, and whether its rollout was halted
// before.
func (h Halt) Apply(now metav1.Time) (_ *enov1.Synthesizer, was bool) {
	s := h.Synthesizer.DeepCopy()
	was = Halted(s, h.Scope) != nil
	if h.Message == "" {
		meta.RemoveStatusCondition(&s.Status.Conditions, haltType(h.Scope))

		return s, was
	}
	meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
		Type: haltType(h.Scope), Status: metav1.ConditionTrue, Reason: enov1.ReasonTooManyFailures, Message: h.Message,
		ObservedGeneration: s.Generation, LastTransitionTime: now,
	})

	return s, was
}
