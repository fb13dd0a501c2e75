package synthesis

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// DefaultHistoryLimit is how many syntheses before the previous one are kept by default.
const DefaultHistoryLimit = 5

// Begin returns the status with a new synthesis in flight.
func Begin(s Start, uuid string, now time.Time) enov1.CompositionStatus {
	c := s.Composition
	st := *c.Status.DeepCopy()
	n := &enov1.Synthesis{
		UUID:                          uuid,
		ObservedCompositionGeneration: c.Generation,
		Initialized:                   at(now),
		Attempts:                      1,
		Deferred:                      s.Wish.Cause.deferred(),
		Forced:                        s.Wish.Cause == Forced,
		RolledBackTo:                  s.Wish.RollBackTo,
	}
	n.FailedBefore = n.Deferred && failedBefore(c)
	if s.Synthesizer != nil {
		n.ObservedSynthesizerGeneration = s.Synthesizer.Generation
	}
	if n.RolledBackTo == "" {
		n.InputRevisions = st.InputRevisions
	}
	if s.Wish.Cause == Retry && st.InFlightSynthesis != nil {
		n.Attempts = st.InFlightSynthesis.Attempts + 1
		// A rollout that fails continues as slowly as it began.
		n.Deferred = st.InFlightSynthesis.Deferred
		n.FailedBefore = st.InFlightSynthesis.FailedBefore
		n.Forced = st.InFlightSynthesis.Forced
	}
	st.InFlightSynthesis = n

	return *st.DeepCopy()
}

// Done is what came of a synthesis.
type Done struct {
	UUID string
	// BasedOn is the uuid of the synthesis that was the current one when tombstones
	// were made; empty if there was none.
	BasedOn string
	// Slices that were written, with their digests.
	Slices []*enov1.ResourceSliceRef
	// Unchanged is set if the output is that of the current synthesis, whose slices are
	// then taken over. See Unchanged.
	Unchanged bool
	Results   []enov1.Result
	// Inputs are those that were read.
	Inputs []enov1.InputRevisions
	// HistoryLimit is how many syntheses before the previous one are kept.
	HistoryLimit int
}

// Unchanged reports whether a synthesis takes over the slices of the current one instead
// of writing its own: if it made the same manifests in the same order, and all slices of
// the current one exist. One that was asked for, by force or by a rollback, is
// delivered in full.
func Unchanged(st *enov1.CompositionStatus, fresh []string, current []*enov1.ResourceSlice) bool {
	if st.CurrentSynthesis == nil || st.InFlightSynthesis.Forced || st.InFlightSynthesis.RolledBackTo != "" {
		return false
	}

	return !isLost(st.CurrentSynthesis, current) && slices.Equal(fresh, Copied(current))
}

// Wanted reports whether the result of a synthesis is still wanted: it was neither canceled nor
// superseded.
func Wanted(st *enov1.CompositionStatus, uuid string) bool {
	return Running(st) && st.InFlightSynthesis.UUID == uuid
}

// Promote returns the status with the synthesis in flight as the current one. It rejects one that
// is not wanted any more, or whose tombstones are not those of the synthesis that it replaces. One
// that changes nothing replaces the current one without a history entry, since a rollback to it
// would be useless: only its uuid, generations, inputs and results are new.
func Promote(st *enov1.CompositionStatus, d Done, now time.Time) (enov1.CompositionStatus, bool) {
	current := ""
	if st.CurrentSynthesis != nil {
		current = st.CurrentSynthesis.UUID
	}
	if !Wanted(st, d.UUID) || current != d.BasedOn {
		return *st, false
	}
	next := *st.DeepCopy()
	n := next.InFlightSynthesis
	next.InFlightSynthesis = nil
	n.Synthesized, n.Results = at(now), d.Results
	if n.RolledBackTo == "" {
		n.InputRevisions = d.Inputs
	}
	if d.Unchanged && next.CurrentSynthesis != nil {
		was := next.CurrentSynthesis
		n.ResourceSlices, n.Reconciled, n.Ready = was.ResourceSlices, was.Reconciled, was.Ready
		next.CurrentSynthesis = n

		return next, true
	}
	n.ResourceSlices = d.Slices
	if next.PreviousSynthesis != nil {
		next.History = append([]enov1.Synthesis{*next.PreviousSynthesis}, next.History...)
	}
	next.PreviousSynthesis, next.CurrentSynthesis = next.CurrentSynthesis, n
	trim(&next, d.HistoryLimit)

	return next, true
}

// trim drops the oldest syntheses of the history.
func trim(st *enov1.CompositionStatus, limit int) {
	if len(st.History) > limit {
		st.History = st.History[:limit:limit]
	}
	if len(st.History) == 0 {
		st.History = nil
	}
}

// Fail returns the status with the synthesis in flight canceled, and the reason.
func Fail(st *enov1.CompositionStatus, uuid string, results []enov1.Result, now time.Time) (enov1.CompositionStatus, bool) {
	if !Wanted(st, uuid) {
		return *st, false
	}
	next := *st.DeepCopy()
	next.InFlightSynthesis.Canceled, next.InFlightSynthesis.Results = at(now), results

	return next, true
}

// An End is what became of a synthesis.
type End int

// Ends of a synthesis, by the status of its composition.
const (
	// Open means that it is in flight.
	Open End = iota
	// Promoted means that it is, or was, the current one.
	Promoted
	// GivenUp means that it failed, or timed out.
	GivenUp
	// Dropped means that another took its place, or that it was not wanted any more.
	Dropped
)

// EndOf returns the end of a synthesis. For one that is not in the status yet it returns Dropped.
func EndOf(c *enov1.Composition, uuid string) End {
	st := &c.Status
	in := st.InFlightSynthesis
	to := c.Annotations[enov1.AnnotationRollback]
	switch {
	case Find(st, uuid) != nil:
		return Promoted
	case in == nil || in.UUID != uuid:
		return Dropped
	case in.Canceled == nil:
		return Open
	case !in.Failed() && (c.DeletionTimestamp != nil || to != "" && in.RolledBackTo != to):
		return Dropped
	default:
		return GivenUp
	}
}

// Garbage returns the slices of a composition that are not needed any more: those of no synthesis
// that is kept or in flight.
func Garbage(st *enov1.CompositionStatus, all []*enov1.ResourceSlice) []*enov1.ResourceSlice {
	kept := map[string]bool{}
	for _, s := range promoted(st) {
		for _, ref := range s.ResourceSlices {
			kept[ref.Name] = true
		}
	}
	var garbage []*enov1.ResourceSlice
	for _, s := range all {
		if !kept[s.Name] && !Wanted(st, s.Spec.SynthesisUUID) {
			garbage = append(garbage, s)
		}
	}

	return garbage
}

// at is a time as it is stored, so that what is written compares equal to what
// is read.
func at(t time.Time) *metav1.Time { return new(metav1.NewTime(t).Rfc3339Copy()) }
