package synthesis

import (
	"slices"
	"time"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// A Cause is why a composition should have another synthesis, the most urgent
// one first.
type Cause int

// Causes, in the order in which they are served.
const (
	Initial Cause = iota
	RollBack
	Forced
	Resumed
	CompositionModified
	InputModified
	DeferredInputModified
	SynthesizerModified
	Retry
)

func (c Cause) String() string {
	return [...]string{
		"Initial", "RollBack", "Forced", "Resumed", "CompositionModified", "InputModified", "DeferredInputModified", "SynthesizerModified", "Retry",
	}[c]
}

// Causes returns all of them.
func Causes() []Cause {
	return []Cause{Initial, RollBack, Forced, Resumed, CompositionModified, InputModified, DeferredInputModified, SynthesizerModified, Retry}
}

// deferred causes reach many compositions at once, and wait for their turn.
func (c Cause) deferred() bool { return c == DeferredInputModified || c == SynthesizerModified }

// supersedes reports whether a synthesis in flight should be canceled. One that works with slightly
// older inputs is not useless: inputs that change all the time would otherwise never be used.
func (c Cause) supersedes() bool { return c <= CompositionModified }

const (
	// shortest is what a synthesis counts for in the backoff if it failed at once,
	// longest the longest backoff.
	shortest = time.Second
	longest  = time.Hour
)

// A Wish is a synthesis that a composition should have.
type Wish struct {
	Cause Cause
	// NotBefore is when, if not now.
	NotBefore time.Time
	// RollBackTo is the synthesis whose manifests are used, if nothing is run.
	RollBackTo string
}

// Want returns whether a composition should have another synthesis, whether or not it can have it
// now. Without its Synthesizer, it can be rolled back only.
func Want(c *enov1.Composition, s *enov1.Synthesizer) (Wish, bool) {
	if c.DeletionTimestamp != nil || !slices.Contains(c.Finalizers, enov1.Finalizer) {
		return Wish{}, false // its result could not be deleted again
	}
	if to := c.Annotations[enov1.AnnotationRollback]; to != "" {
		return wantRollback(c, to)
	}
	if s == nil {
		return Wish{}, false
	}
	cause, ok := cause(c, s, Latest(&c.Status))
	switch running := Running(&c.Status); {
	case running:
		return Wish{Cause: cause}, ok && cause.supersedes()
	case ok:
		return Wish{Cause: cause}, true
	case c.Status.InFlightSynthesis != nil:
		return Wish{Cause: Retry, NotBefore: backoff(c.Status.InFlightSynthesis)}, true
	default:
		return Wish{}, false
	}
}

// cause is what changed since the latest synthesis was begun.
func cause(c *enov1.Composition, s *enov1.Synthesizer, latest *enov1.Synthesis) (Cause, bool) {
	switch {
	case latest == nil:
		return Initial, true
	case c.Annotations[enov1.AnnotationForceResynthesis] == latest.UUID:
		return Forced, true
	case latest.RolledBackTo != "":
		return Resumed, true
	case latest.ObservedCompositionGeneration != c.Generation:
		return CompositionModified, true
	}
	now, deferred := inputsChanged(c, s, latest.InputRevisions)
	switch {
	case now:
		return InputModified, true
	case deferred:
		return DeferredInputModified, true
	case latest.ObservedSynthesizerGeneration != s.Generation && !ignoresSideEffects(c):
		return SynthesizerModified, true
	default:
		return 0, false
	}
}

// wantRollback returns a rollback: what exists already is not created again, and nothing else is
// synthesized until it is removed.
func wantRollback(c *enov1.Composition, to string) (Wish, bool) {
	if current := c.Status.CurrentSynthesis; current != nil && (current.UUID == to || current.RolledBackTo == to) {
		return Wish{}, false
	}
	if in := c.Status.InFlightSynthesis; in != nil && in.RolledBackTo == to {
		if Running(&c.Status) {
			return Wish{}, false
		}

		return Wish{Cause: Retry, NotBefore: backoff(in), RollBackTo: to}, true
	}

	return Wish{Cause: RollBack, RollBackTo: to}, Find(&c.Status, to) != nil
}

// backoff is when what failed is tried again: after a time that grows with every
// attempt and with what the last one cost.
func backoff(s *enov1.Synthesis) time.Time {
	cost := shortest
	if s.Initialized != nil {
		cost = max(cost, s.Canceled.Sub(s.Initialized.Time))
	}
	// Compared before it is a Duration, which would overflow.
	wait := min(1.5*float64(cost)*float64(max(s.Attempts, 1)), float64(longest))

	return s.Canceled.Add(time.Duration(wait))
}

// Latest is the synthesis that was begun last.
func Latest(st *enov1.CompositionStatus) *enov1.Synthesis {
	if st.InFlightSynthesis != nil {
		return st.InFlightSynthesis
	}

	return st.CurrentSynthesis
}

// Running reports whether a synthesis is in flight and was not canceled.
func Running(st *enov1.CompositionStatus) bool {
	return st.InFlightSynthesis != nil && st.InFlightSynthesis.Canceled == nil
}

// Find returns the synthesis of a uuid whose manifests are still there.
func Find(st *enov1.CompositionStatus, uuid string) *enov1.Synthesis {
	for _, s := range promoted(st) {
		if s.UUID == uuid {
			return s
		}
	}

	return nil
}

// Knows reports whether a slice belongs to a synthesis in the status, promoted or in
// flight. A synthesis may have taken over the slices of an earlier one.
func Knows(st *enov1.CompositionStatus, s *enov1.ResourceSlice) bool {
	named := func(ref *enov1.ResourceSliceRef) bool { return ref.Name == s.Name }
	for _, synthesis := range promoted(st) {
		if synthesis.UUID == s.Spec.SynthesisUUID || slices.ContainsFunc(synthesis.ResourceSlices, named) {
			return true
		}
	}

	return st.InFlightSynthesis != nil && st.InFlightSynthesis.UUID == s.Spec.SynthesisUUID
}

// promoted returns the syntheses whose slices are kept, newest first.
func promoted(st *enov1.CompositionStatus) []*enov1.Synthesis {
	var all []*enov1.Synthesis
	for _, s := range []*enov1.Synthesis{st.CurrentSynthesis, st.PreviousSynthesis} {
		if s != nil {
			all = append(all, s)
		}
	}
	for i := range st.History {
		all = append(all, &st.History[i])
	}

	return all
}
