package compositions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/show"
)

// HistoryView is what arbor compositions history prints for programs.
type HistoryView struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// PinnedTo is the synthesis that the composition is rolled back to.
	PinnedTo string `json:"pinnedTo,omitempty"`
	// Syntheses are newest first.
	Syntheses []PastSynthesis `json:"syntheses"`
}

// A PastSynthesis is one synthesis among the others of its composition.
type PastSynthesis struct {
	UUID string `json:"uuid"`
	// Role is in flight, current, previous, or "" for older ones.
	Role                  string         `json:"role,omitempty"`
	Begun                 *metav1.Time   `json:"begun,omitempty"`
	SynthesizerGeneration int64          `json:"synthesizerGeneration"`
	CompositionGeneration int64          `json:"compositionGeneration"`
	State                 SynthesisState `json:"state"`
	// Resources are without those that were to go. They are absent if a slice is.
	Resources    *int           `json:"resources,omitempty"`
	RolledBackTo string         `json:"rolledBackTo,omitempty"`
	Results      []enov1.Result `json:"results"`
}

// History returns the view of the syntheses that a Composition knows.
func (d *Objects) History(c *enov1.Composition) HistoryView {
	v := HistoryView{Namespace: c.Namespace, Name: c.Name, PinnedTo: c.Annotations[enov1.AnnotationRollback], Syntheses: []PastSynthesis{}}

	for _, s := range Syntheses(c) {
		v.Syntheses = append(v.Syntheses, PastSynthesis{
			UUID: s.UUID, Role: RoleOf(c, s), Begun: s.Initialized, State: synthesisState(s),
			SynthesizerGeneration: s.ObservedSynthesizerGeneration, CompositionGeneration: s.ObservedCompositionGeneration,
			Resources: d.Size(c, s), RolledBackTo: s.RolledBackTo, Results: show.List(s.Results),
		})
	}

	return v
}

// RoleOf says what a synthesis is to its composition.
func RoleOf(c *enov1.Composition, s *enov1.Synthesis) string {
	switch s {
	case c.Status.InFlightSynthesis:
		return "in flight"
	case c.Status.CurrentSynthesis:
		return "current"
	case c.Status.PreviousSynthesis:
		return "previous"
	default:
		return ""
	}
}

// Size is how many resources a synthesis has, nil if nobody knows.
func (d *Objects) Size(c *enov1.Composition, s *enov1.Synthesis) *int {
	all, missing := d.Manifests(c, s)
	if len(missing) > 0 || s.Synthesized == nil {
		return nil
	}

	n := 0

	for _, one := range all {
		if !one.Tombstone {
			n++
		}
	}

	return &n
}
