package synthesis

import (
	"slices"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// A Request is the origin of a synthesis, as far as the objects are concerned that it drops. See
// Manifest.Requested.
type Request int

const (
	// Automatic is a synthesis that no user asked for: because of inputs, of the
	// Synthesizer or of a lost slice.
	Automatic Request = iota
	// Edited is a synthesis of a composition that a user edited, or that a user forced.
	// The user asked for what it drops, and not for what an earlier one dropped. An edit
	// does not count if the Synthesizer has changed, too: the edit may have failed for
	// hours, and the first program that succeeds may print nothing.
	Edited
	// RolledBack is a synthesis whose manifests a user chose. Everything else is dropped
	// at the user's request.
	RolledBack
)

// RequestOf is the origin of the synthesis in flight. current are the slices of the current one
// that exist.
func RequestOf(st *enov1.CompositionStatus, current []*enov1.ResourceSlice) Request {
	in, was := st.InFlightSynthesis, st.CurrentSynthesis
	switch {
	case in == nil || was == nil:
		return Automatic // it drops nothing
	case in.RolledBackTo != "":
		return RolledBack
	case in.ObservedCompositionGeneration != was.ObservedCompositionGeneration && isSameProgram(in, was):
		return Edited
	case in.Forced && !isLost(was, current): // a lost slice is repaired by force
		return Edited
	}

	return Automatic
}

// isSameProgram reports whether a synthesis runs the program that made the manifests of the
// current one. The manifests of a rollback are those of an earlier program.
func isSameProgram(in, was *enov1.Synthesis) bool {
	return was.RolledBackTo == "" && in.ObservedSynthesizerGeneration == was.ObservedSynthesizerGeneration
}

// isLost reports whether a slice of a synthesis was deleted, is being deleted, or was restored
// since.
func isLost(s *enov1.Synthesis, slicesOf []*enov1.ResourceSlice) bool {
	return len(slicesOf) != len(s.ResourceSlices) || slices.ContainsFunc(slicesOf, func(s *enov1.ResourceSlice) bool {
		return s.DeletionTimestamp != nil || s.Annotations[enov1.AnnotationRestored] != ""
	})
}

// covers reports whether a user asked for the deletion of what a manifest of the current
// synthesis is about.
func (r Request) covers(m enov1.Manifest) bool {
	switch {
	case r == RolledBack:
		return true
	case m.Deleted:
		return m.Requested
	}

	return r == Edited
}
