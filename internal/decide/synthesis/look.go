package synthesis

import (
	"fmt"
	"time"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// grace is how much longer than its timeout a synthesis is left in flight: the process that runs it
// knows better why it did not end, and is the first to report it. Times are stored in seconds.
const grace = 2 * time.Second

// An Input is what is known of one input of a composition.
type Input struct {
	Key string
	// Revision of the object, if it is there.
	Revision *enov1.InputRevisions
	// Unknown is whether its existence is not known yet.
	Unknown bool
	// Problem is why it is not there.
	Problem string
	// Forbidden is why the composition may not bind its object: it was not looked for. Ignored
	// is why another object than that of the composition is used.
	Forbidden, Ignored *tenancy.Violation
}

// A View is everything that is known about one composition.
type View struct {
	Composition *enov1.Composition
	// Synthesizer is nil if it does not exist.
	Synthesizer *enov1.Synthesizer
	// Inputs in the order of the Synthesizer's refs.
	Inputs []Input
	// Current are the slices of the current synthesis, nil for those that are lost.
	Current []*enov1.ResourceSlice
	// Rejected is why slices exist that the current synthesis names and that do not belong to it.
	// They are nil in Current.
	Rejected []string
	// Find finds compositions that this one depends on, and Dependents are those
	// that depend on this one.
	Find       Lookup
	Dependents []*enov1.Composition
	// SymphonyGone is whether it belonged to a Symphony that does not exist any more.
	SymphonyGone bool
	// Refusal is why nothing is synthesized here, if that is so.
	Refusal string
	// Timeout of a synthesis, and whether the one in flight is run here: then it is
	// ended there.
	Timeout time.Duration
	Mine    bool
	// Startup is how much longer a synthesis may take that runs in a pod: until the pod
	// is scheduled, and its images are pulled. Which of that it is, Pods knows.
	Startup time.Duration
	// HistoryLimit is how many syntheses before the previous one are kept.
	HistoryLimit int
	// Scope is the namespace that the manager is about, "" for all.
	Scope string
	// LostSince is since when slices of the current synthesis are known not to exist, zero if
	// all of them do.
	LostSince time.Time
	// Rules are those between tenants.
	Rules tenancy.Rules
}

// LostGrace is how long a lost slice may take to be restored by delivery, which remembers its
// manifests. Until then nothing is done that needs them: a synthesis would not prune what the
// slice had, and the composition would be deleted without its objects.
const LostGrace = 5 * time.Second

// AwaitsSlices returns until when lost slices may be restored, zero if that is over.
func (v View) AwaitsSlices(now time.Time) time.Time {
	if until := v.LostSince.Add(LostGrace); !v.LostSince.IsZero() && now.Before(until) {
		return until
	}

	return time.Time{}
}

// A Decision is what to do about a composition.
type Decision struct {
	Status enov1.CompositionStatus
	// Release is whether nothing of a composition that is being deleted is left.
	Release bool
	// Canceled is whether the synthesis in flight has just been canceled.
	Canceled bool
	// Next is when to requeue even if nothing happens; zero if never.
	Next time.Time
}

// Look decides about one composition.
func Look(v View, now time.Time) Decision {
	d := Decision{Status: *v.Composition.Status.DeepCopy()}
	st := &d.Status
	progress := Measure(v.Current)
	progress.Rejected = v.Rejected
	trim(st, v.HistoryLimit) // it may have been higher
	if v.Synthesizer != nil && v.Composition.DeletionTimestamp == nil {
		st.InputRevisions = revisions(v)
	}
	st.DependencyStatus = depends(v)
	d.Canceled, d.Next = cancel(v, st, now)
	if st.CurrentSynthesis != nil && v.Composition.DeletionTimestamp == nil {
		progress.aggregate(st.CurrentSynthesis, now)
	}
	startDeletion(v, st)
	d.Release = released(v, st, progress, now)
	if until := v.AwaitsSlices(now); !until.IsZero() && (d.Next.IsZero() || until.Before(d.Next)) {
		d.Next = until
	}

	// The following is about the composition with the status that it will have.
	after := *v.Composition
	after.Status = *st
	o := obstacleOf(v, &after)
	st.Simplified = simplified(v, &after, o, progress)
	writeConditions(v, &after, o, progress, now)
	reportViolations(v, &after, now)
	st.Conditions = after.Status.Conditions

	return d
}

// revisions of the inputs. What is not known yet stays as it was.
func revisions(v View) []enov1.InputRevisions {
	var all []enov1.InputRevisions
	for _, in := range v.Inputs {
		was, had := revisionOf(v.Composition.Status.InputRevisions, in.Key)
		switch {
		case in.Revision != nil:
			all = append(all, *in.Revision)
		case in.Unknown && had:
			all = append(all, was)
		}
	}

	return all
}

func depends(v View) *enov1.DependencyStatus {
	switch {
	case v.Composition.DeletionStarted():
		return nil // a dependent that appears later does not stop it
	case v.Composition.DeletionTimestamp != nil:
		return Dependents(v.Composition, v.Dependents, v.Find, v.Rules)
	}

	return Dependencies(v.Composition, v.Find, v.Rules)
}

// cancel cancels the synthesis in flight: after its timeout, when the composition is deleted, and
// for a rollback.
func cancel(v View, st *enov1.CompositionStatus, now time.Time) (canceled bool, next time.Time) {
	if !Running(st) {
		return false, time.Time{}
	}
	in := st.InFlightSynthesis
	to := v.Composition.Annotations[enov1.AnnotationRollback]
	over := time.Time{}
	if in.Initialized != nil {
		over = in.Initialized.Add(v.Timeout + grace + startup(v, in))
	}
	switch {
	case v.Composition.DeletionTimestamp != nil, to != "" && in.RolledBackTo != to:
	case !v.Mine && !now.Before(over):
	case !v.Mine, over.IsZero():
		return false, over
	default:
		// A synthesis that runs here records its own end. If it cannot, since the API server
		// rejects the write, no event reports that it does not run any more.
		return false, later(over, now.Add(grace))
	}
	in.Canceled = at(now)

	return true, time.Time{}
}

// startup is how long the pod of a synthesis may take to start. What needs no program has
// no pod.
func startup(v View, in *enov1.Synthesis) time.Duration {
	if v.Startup == 0 || v.Synthesizer == nil || in.RolledBackTo != "" {
		return 0
	}

	return v.Startup + reportGrace + slack
}

// startDeletion makes delivery delete the objects of a composition that is being deleted, once no
// other composition depends on it. See Composition.DeletionStarted.
func startDeletion(v View, st *enov1.CompositionStatus) {
	c, current := v.Composition, st.CurrentSynthesis
	if c.DeletionTimestamp == nil || current == nil || st.DependencyStatus != nil {
		return
	}
	current.ObservedCompositionGeneration = c.Generation
	current.Reconciled, current.Ready = nil, nil
}

// released reports whether the finalizer of a composition that is being deleted is removed: when
// all of its objects are deleted, or are orphaned.
func released(v View, st *enov1.CompositionStatus, p Progress, now time.Time) bool {
	c := v.Composition
	switch {
	case c.DeletionTimestamp == nil:
		return false
	case c.Abandoned():
		return true
	case !v.AwaitsSlices(now).IsZero():
		return false
	case enov1.IsOrphan(c.Annotations[enov1.AnnotationDeletionStrategy]) && p.Owed == 0:
		return true
	case v.SymphonyGone && c.Annotations[enov1.AnnotationForceDeleteWhenSymphonyGone] == "true":
		return true // the Symphony that would have reported that its objects stay does not exist
	default:
		return st.DependencyStatus == nil && p.Undeleted.Count == 0
	}
}

// anObstacle is why a composition cannot be synthesized.
type anObstacle struct {
	status, reason, message string
}

// obstacle returns what a composition lacks, by its status.
func obstacle(c *enov1.Composition, s *enov1.Synthesizer, depends *enov1.DependencyStatus, rules tenancy.Rules) *anObstacle {
	if s == nil {
		return &anObstacle{enov1.StatusMissingSynthesizer, enov1.StatusMissingSynthesizer, fmt.Sprintf("Synthesizer %q does not exist", c.Spec.Synthesizer.Name)}
	}
	if v := Forbidden(c, s, rules); v != nil {
		return violated(v)
	}
	if keys := Missing(s, c.Status.InputRevisions); len(keys) > 0 {
		return &anObstacle{enov1.StatusMissingInputs, enov1.StatusMissingInputs, "inputs are missing: " + quoted(keys)}
	}
	if text := Mismatch(c, s, c.Status.InputRevisions); text != "" {
		return &anObstacle{enov1.StatusMismatchedInputs, enov1.StatusMismatchedInputs, text}
	}
	if depends == nil {
		return nil
	}
	by := depends.BlockedBy[0]
	text := fmt.Sprintf("Composition %s/%s: %s", by.Namespace, by.Name, by.Reason)
	if n := len(depends.BlockedBy); n > 1 {
		text += fmt.Sprintf(" (and %d more)", n-1)
	}

	return &anObstacle{enov1.StatusWaitingOnDependencies, depends.Reason, text}
}

// obstacleOf is obstacle with all that is known: it can explain why an input is missing, and that a
// manager runs nothing.
func obstacleOf(v View, after *enov1.Composition) *anObstacle {
	o := obstacle(after, v.Synthesizer, after.Status.DependencyStatus, v.Rules)
	if found := forbiddenInput(v); found != nil && (o == nil || o.status == enov1.StatusMissingInputs) {
		o = violated(found)
	}
	if o != nil && o.reason == enov1.StatusMissingInputs {
		explainMissing(v, after, o)
	}
	if o == nil && v.Refusal != "" {
		if _, ok := Want(after, v.Synthesizer); ok {
			o = &anObstacle{enov1.StatusPendingSynthesis, ReasonNoExecutor, v.Refusal}
		}
	}

	return o
}

// explainMissing adds to an obstacle why the first missing input is not there, if that is known.
func explainMissing(v View, after *enov1.Composition, o *anObstacle) {
	first := Missing(v.Synthesizer, after.Status.InputRevisions)[0]
	for _, in := range v.Inputs {
		if in.Key == first && in.Problem != "" {
			o.message = fmt.Sprintf("input %q: %s", in.Key, in.Problem)
		}
	}
}
