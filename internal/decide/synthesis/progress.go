package synthesis

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/identity"
)

// A Progress is the progress of the manifests of a synthesis, by their slices.
type Progress struct {
	// Total counts manifests, without tombstones; Slices counts those that there
	// are, and Lost those that are not.
	Total, Slices, Lost int
	// Rejected is why slices are lost that exist. See View.
	Rejected []string

	Unreconciled, Unready, Undeleted Waiting
	// Unknown counts the manifests of slices whose states are missing: they were not written
	// yet, or another client has removed them.
	Unknown int
	// Unapplied counts the manifests, without tombstones, that are not reconciled.
	Unapplied int
	// Owed counts the undeleted objects that are deleted by their own manifest, whatever the
	// strategy of the composition.
	Owed int

	// ReadySince is when the last object became ready.
	ReadySince *metav1.Time
}

// Waiting are the objects that something is still to happen to.
type Waiting struct {
	Count int
	// First is the first of them that something is wrong with, or else the first of
	// all, and Error what is wrong.
	First identity.Identity
	Error string
}

// Measure reads the slices of a synthesis, in their order; nil stands for one
// that is not there.
func Measure(slices []*enov1.ResourceSlice) Progress {
	var p Progress
	for _, s := range slices {
		if s == nil {
			p.Lost++

			continue
		}
		p.Slices++
		if len(s.Status.Resources) != len(s.Spec.Resources) {
			p.Unknown += len(s.Spec.Resources)
		}
		for i, m := range s.Spec.Resources {
			p.count(m, stateOf(s, i))
		}
	}

	return p
}

func (p *Progress) count(m enov1.Manifest, state enov1.ResourceState) {
	gone := m.Deleted && state.Deleted
	if !state.Reconciled && !gone {
		p.Unreconciled.add(m, state)
	}
	if !m.Deleted {
		p.countManifest(m, state)
	}
	// A Patch counts too: it may delete its target with the composition.
	if !state.Deleted {
		p.undeleted(m, state)
	}
}

// countManifest is count for what is not a tombstone.
func (p *Progress) countManifest(m enov1.Manifest, state enov1.ResourceState) {
	p.Total++
	if !state.Reconciled {
		p.Unapplied++
	}
	switch {
	case state.Ready == nil:
		p.Unready.add(m, state)
	case p.ReadySince == nil || state.Ready.After(p.ReadySince.Time):
		p.ReadySince = state.Ready
	}
}

func (p *Progress) undeleted(m enov1.Manifest, state enov1.ResourceState) {
	p.Undeleted.add(m, state)
	if own := headOf(m.Manifest).Metadata.Annotations.DeletionStrategy; own != nil && !enov1.IsOrphan(*own) {
		p.Owed++
	}
}

func (w *Waiting) add(m enov1.Manifest, state enov1.ResourceState) {
	w.Count++
	text := ""
	if state.ReconciliationError != nil {
		text = *state.ReconciliationError
	}
	if w.Count == 1 || w.Error == "" && text != "" {
		w.First, w.Error = identity.Read(m.Manifest), text
	}
}

// describe names what is stuck, and how many more there are.
func (w *Waiting) describe(otherwise string) string {
	text := w.First.String() + ": " + otherwise
	if w.Error != "" {
		text = w.First.String() + ": " + w.Error
	}
	if w.Count > 1 {
		text += fmt.Sprintf(" (and %d more)", w.Count-1)
	}

	return text
}

// aggregate writes on a synthesis when all of its objects got how far. It takes
// back what is true no longer.
//
// If the states of a synthesis that was reconciled are missing, another client has removed them.
// Then what is recorded holds until delivery has written them again, which needs it to know
// what was done already.
func (p *Progress) aggregate(s *enov1.Synthesis, now time.Time) {
	switch {
	case s.Reconciled != nil && p.Lost == 0 && p.Unknown > 0 && p.Unreconciled.Count <= p.Unknown:
		return
	case p.Unreconciled.Count > 0 || p.Lost > 0:
		s.Reconciled = nil
	case s.Reconciled == nil:
		s.Reconciled = at(now)
	}
	p.aggregateReady(s, now)
}

// aggregateReady is aggregate for Ready. Objects that are still to be pruned do not
// count.
func (p *Progress) aggregateReady(s *enov1.Synthesis, now time.Time) {
	switch {
	case p.Unapplied > 0 || p.Lost > 0 || p.Unready.Count > 0:
		s.Ready = nil
	case s.Ready != nil:
	case s.Reconciled == nil:
		s.Ready = at(now)
	case p.ReadySince != nil && p.ReadySince.After(s.Reconciled.Time):
		s.Ready = p.ReadySince
	default:
		s.Ready = s.Reconciled
	}
}
