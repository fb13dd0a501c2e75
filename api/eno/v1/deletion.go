package v1

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
)

// IsOrphan reports whether a value of AnnotationDeletionStrategy leaves objects behind.
func IsOrphan(strategy string) bool { return strings.EqualFold(strategy, DeletionOrphan) }

// IsForeground reports whether a value of AnnotationDeletionStrategy waits until an
// object is gone.
func IsForeground(strategy string) bool { return strings.EqualFold(strategy, DeletionForeground) }

// Abandoned reports whether all objects of the composition stay, because its Symphony
// is being deleted.
func (c *Composition) Abandoned() bool { return c.Labels[LabelSymphonyDeleting] == "true" }

// DeletionStarted reports whether the objects of a composition are being deleted. A
// composition that is being deleted keeps its objects while others depend on it.
//
// Synthesis sets ObservedCompositionGeneration of the current synthesis to the
// generation when no dependent is left. The condition Reconciled, which is written
// with it, makes that hold if the spec is edited later.
func (c *Composition) DeletionStarted() bool {
	current := c.Status.CurrentSynthesis
	switch {
	case c.DeletionTimestamp == nil:
		return false
	case c.Abandoned():
		return true
	case current == nil:
		return false
	case current.ObservedCompositionGeneration == c.Generation:
		return true
	}
	said := meta.FindStatusCondition(c.Status.Conditions, ConditionReconciled)

	return said != nil && said.Reason == StatusDeleting && said.ObservedGeneration == current.ObservedCompositionGeneration
}
