package v1

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
)

// IsOrphan reports whether a value of AnnotationDeletionStrategy orphans objects.
func IsOrphan(strategy string) bool { return strings.EqualFold(strategy, DeletionOrphan) }

// IsForeground reports whether a value of AnnotationDeletionStrategy waits until an
// object is deleted.
func IsForeground(strategy string) bool { return strings.EqualFold(strategy, DeletionForeground) }

// Abandoned reports whether all objects of the composition are orphaned, because its
// Symphony is being deleted.
func (c *Composition) Abandoned() bool { return c.Labels[LabelSymphonyDeleting] == "true" }

// DeletionStarted reports whether the objects of a composition are being deleted. A
// composition that is being deleted keeps its objects while other compositions depend
// on it.
//
// When no dependent is left, the synthesis controller sets
// ObservedCompositionGeneration of the current synthesis to the generation. The
// condition Reconciled, which is written with it, remains true of this if the spec is
// edited later.
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
	reconciled := meta.FindStatusCondition(c.Status.Conditions, ConditionReconciled)

	return reconciled != nil && reconciled.Reason == StatusDeleting && reconciled.ObservedGeneration == current.ObservedCompositionGeneration
}
