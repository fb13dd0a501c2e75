package synthesis

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// maxOwner is the maximum length of the owner label, since the annotation may have any length.
const maxOwner = 63

// words are all values of the simplified status.
var words = []string{
	enov1.StatusMissingSynthesizer, enov1.StatusSynthesizing, enov1.StatusSynthesisBackoff, enov1.StatusMissingInputs, enov1.StatusMismatchedInputs,
	enov1.StatusWaitingOnDependencies, enov1.StatusPendingSynthesis, enov1.StatusReconciling, enov1.StatusNotReady, enov1.StatusReady,
	enov1.StatusDeleting, enov1.StatusWaitingOnDependents, enov1.StatusUnknown,
}

// A Census counts compositions.
type Census struct {
	// States counts them by their simplified status. Every status is there; compositions without a
	// status are Unknown.
	States map[string]int
	// Stuck counts those that are stuck, for each Synthesizer that there is.
	Stuck map[Program]int
	// Halted is 1 for each Synthesizer whose rollout is halted, and 0 for the rest.
	Halted map[Program]int
}

// A Program is a Synthesizer, and the owner label of its metrics.
type Program struct{ Name, Owner string }

// Count counts compositions. Stuck are those that stay as they should not be for
// longer than they are given.
func Count(all []enov1.Composition, synthesizers []enov1.Synthesizer, given time.Duration, now time.Time) Census {
	c := Census{States: make(map[string]int, len(words)), Stuck: make(map[Program]int, len(synthesizers)), Halted: make(map[Program]int, len(synthesizers))}
	for _, conditionText := range words {
		c.States[conditionText] = 0
	}
	programs := make(map[string]Program, len(synthesizers))
	for i := range synthesizers {
		p := Program{synthesizers[i].Name, ownerOf(&synthesizers[i])}
		programs[p.Name], c.Stuck[p], c.Halted[p] = p, 0, 0
		if len(AllHalts(&synthesizers[i])) > 0 {
			c.Halted[p] = 1
		}
	}
	for i := range all {
		c.States[wordOf(&all[i])]++
		since, isStuck := pendingSince(&all[i])
		if p, ok := programs[all[i].Spec.Synthesizer.Name]; ok && isStuck && now.Sub(since) > given {
			c.Stuck[p]++
		}
	}

	return c
}

func wordOf(c *enov1.Composition) string {
	if s := c.Status.Simplified; s != nil && slices.Contains(words, s.Status) {
		return s.Status
	}

	return enov1.StatusUnknown
}

// pendingSince is since when a synthesized composition is reconciling, or is being deleted. One
// that waits until other compositions are deleted is not stuck itself, nor is one that is
// suspended.
func pendingSince(c *enov1.Composition) (time.Time, bool) {
	current := c.Status.CurrentSynthesis
	switch {
	case c.DeletionTimestamp != nil:
		return c.DeletionTimestamp.Time, c.Status.DependencyStatus == nil
	case current == nil || current.Reconciled != nil || meta.IsStatusConditionTrue(c.Status.Conditions, enov1.ConditionSuspended):
		return time.Time{}, false
	}
	var since time.Time
	for _, t := range []*metav1.Time{current.Initialized, current.Synthesized} {
		if t != nil {
			since = later(since, t.Time)
		}
	}
	// It may have been reconciled, and another client has changed an object since.
	if said := meta.FindStatusCondition(c.Status.Conditions, enov1.ConditionReconciled); said != nil && said.Status == metav1.ConditionFalse {
		since = later(since, said.LastTransitionTime.Time)
	}

	return since, true
}

func ownerOf(s *enov1.Synthesizer) string {
	text := s.Annotations[enov1.AnnotationOwner]

	return strings.ToValidUTF8(text[:min(len(text), maxOwner)], "")
}
