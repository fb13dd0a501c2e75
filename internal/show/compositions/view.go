package compositions

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show"
)

// DeliveryView is what arbor compositions prints for programs.
type DeliveryView struct { //nolint:recvcheck // only add changes it
	// Compositions are sorted by namespace and name, those of a symphony together.
	Compositions []CompositionView `json:"compositions"`
	Summary      DeliverySummary   `json:"summary"`
	// Events are oldest first, if they are asked for.
	Events []EventView `json:"events,omitempty"`
}

// DeliverySummary counts by state.
type DeliverySummary struct {
	Compositions int            `json:"compositions"`
	States       map[string]int `json:"states"`
	// Resources are those of current syntheses, and of the ones in flight if they
	// have any.
	Resources      int                       `json:"resources"`
	ResourceStates map[ResourceStateWord]int `json:"resourceStates"`
}

// A CompositionView is one composition.
type CompositionView struct {
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	Symphony    string `json:"symphony,omitempty"`
	Synthesizer string `json:"synthesizer"`
	// State is the one of its status, or what follows from the rest of that.
	State string `json:"state"`
	// PinnedTo is the synthesis that it is rolled back to.
	PinnedTo string `json:"pinnedTo,omitempty"`
	// Suspended is since when and why it is not delivered.
	Suspended string `json:"suspended,omitempty"`
	// Health is the reason of the condition Healthy.
	Health string          `json:"health,omitempty"`
	Notes  []show.NoteView `json:"notes"`
	// LastCorrection is the last time that drift of an object was corrected.
	LastCorrection *enov1.Correction `json:"lastCorrection,omitempty"`
	// InFlight and Current have their resources. Previous ones have none.
	InFlight *SynthesisView `json:"inFlight,omitempty"`
	Current  *SynthesisView `json:"current,omitempty"`
	Previous *SynthesisView `json:"previous,omitempty"`
}

// A SynthesisView is one synthesis.
type SynthesisView struct {
	UUID         string         `json:"uuid"`
	State        SynthesisState `json:"state"`
	Begun        *metav1.Time   `json:"begun,omitempty"`
	Ready        *metav1.Time   `json:"ready,omitempty"`
	RolledBackTo string         `json:"rolledBackTo,omitempty"`
	// MissingSlices are named by the synthesis, and not there.
	MissingSlices []string       `json:"missingSlices,omitempty"`
	Resources     []ResourceView `json:"resources"`
}

// A ResourceView is one object of a synthesis.
type ResourceView struct {
	Object identity.Ref      `json:"object"`
	State  ResourceStateWord `json:"state"`
	// Tombstone says that a synthesis no longer has it.
	Tombstone bool         `json:"tombstone,omitempty"`
	Ready     *metav1.Time `json:"ready,omitempty"`
	Error     string       `json:"error,omitempty"`
	// WaitsFor is an object of an earlier readiness group that is not ready.
	WaitsFor *identity.Ref `json:"waitsFor,omitempty"`
}

// View returns the view of all Compositions.
func (d *Objects) View() DeliveryView {
	v := DeliveryView{
		Compositions: []CompositionView{},
		Summary:      DeliverySummary{States: map[string]int{}, ResourceStates: map[ResourceStateWord]int{}},
	}

	for _, c := range d.Sorted() {
		v.add(d.compositionView(c))
	}

	return v
}

func (v *DeliveryView) add(c CompositionView) {
	v.Compositions = append(v.Compositions, c)
	v.Summary.Compositions++
	v.Summary.States[c.State]++

	for _, s := range []*SynthesisView{c.InFlight, c.Current} {
		if s == nil {
			continue
		}

		for _, r := range s.Resources {
			v.Summary.Resources++
			v.Summary.ResourceStates[r.State]++
		}
	}
}

func (d *Objects) compositionView(c *enov1.Composition) CompositionView {
	v := CompositionView{
		Namespace: c.Namespace, Name: c.Name, Symphony: SymphonyOf(c), Synthesizer: c.Spec.Synthesizer.Name,
		State: CompositionState(c), PinnedTo: c.Annotations[enov1.AnnotationRollback], Notes: compositionNotes(c), LastCorrection: c.Status.LastCorrection,
		InFlight: d.synthesisView(c, c.Status.InFlightSynthesis, true),
		Current:  d.synthesisView(c, c.Status.CurrentSynthesis, true),
		Previous: d.synthesisView(c, c.Status.PreviousSynthesis, false),
	}

	if s := Suspended(c); s != nil {
		v.Suspended = s.String()
	}

	if condition := meta.FindStatusCondition(c.Status.Conditions, enov1.ConditionHealthy); condition != nil {
		v.Health = condition.Reason
	}

	return v
}

// CompositionState is what the status says in a word, or what follows from the
// rest of it if nobody has said that word yet.
func CompositionState(c *enov1.Composition) string {
	s := c.Status

	switch {
	case s.Simplified != nil && s.Simplified.Status != "":
		return s.Simplified.Status
	case c.DeletionTimestamp != nil:
		return enov1.StatusDeleting
	case s.InFlightSynthesis != nil && s.InFlightSynthesis.Canceled == nil:
		return enov1.StatusSynthesizing
	case s.CurrentSynthesis == nil:
		return enov1.StatusPendingSynthesis
	default:
		return string(synthesisState(s.CurrentSynthesis))
	}
}

func (d *Objects) synthesisView(c *enov1.Composition, s *enov1.Synthesis, resources bool) *SynthesisView {
	if s == nil {
		return nil
	}

	v := &SynthesisView{
		UUID: s.UUID, State: synthesisState(s), Begun: s.Initialized, Ready: s.Ready, RolledBackTo: s.RolledBackTo,
		Resources: []ResourceView{},
	}

	if !resources {
		return v
	}

	all, missing := d.Manifests(c, s)
	v.MissingSlices = missing

	for _, one := range all {
		v.Resources = append(v.Resources, one.view(all, c.DeletionStarted()))
	}

	return v
}

func (d Manifest) view(all []Manifest, going bool) ResourceView {
	v := ResourceView{Object: d.Ref, Tombstone: d.Tombstone, Ready: d.State.Ready, State: resourceState(d.State, d.Tombstone || going)}

	switch {
	case v.State == ResourceError:
		v.Error = *d.State.ReconciliationError
	case d.Err != nil:
		v.State, v.Error = ResourceError, d.Err.Error()
	case v.State == ResourceWaiting:
		if first := d.waitsFor(all); first != nil {
			v.WaitsFor = &first.Ref
		}
	}

	return v
}

// badConditions are those that a user should know about when they are true.
var badConditions = []string{
	enov1.ConditionPruneBlocked, enov1.ConditionPruneWaiting, enov1.ConditionDrifted,
	enov1.ConditionInputForbidden, enov1.ConditionEnvForbidden, enov1.ConditionAccessDenied,
}

// compositionNotes are what a person should know of a composition beside its
// state. What is stuck comes first.
func compositionNotes(c *enov1.Composition) []show.NoteView {
	notes := []show.NoteView{}
	say := func(severity show.Severity, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if !slices.ContainsFunc(notes, func(n show.NoteView) bool { return strings.Contains(n.Message, text) }) {
			notes = append(notes, show.NoteView{Severity: severity, Message: text})
		}
	}

	if s := Suspended(c); s != nil {
		say(show.SeverityWarning, "%s; nothing is delivered until arbor compositions resume %s -n %s", s, c.Name, c.Namespace)
	}

	noteResults(c, say)

	if s := c.Status.Simplified; s != nil && s.Error != "" {
		say(show.SeverityError, "%s", s.Error)
	}

	for _, condition := range c.Status.Conditions {
		// Most of them are good when they are true.
		good := !slices.Contains(badConditions, condition.Type)
		progressing := condition.Type == enov1.ConditionHealthy && condition.Reason == enov1.ReasonProgressing
		if progressing || good == (condition.Status == metav1.ConditionFalse) {
			say(show.SeverityWarning, "%s: %s", condition.Type, WithoutEmpty(condition.Message, condition.Reason))
		}
	}

	noteDependencies(c, say)
	noteOwnership(c, say)

	if pin := c.Annotations[enov1.AnnotationRollback]; pin != "" {
		say(show.SeverityWarning, "pinned to %s: nothing is synthesized until arbor compositions rollback %s -n %s --resume", ShortUUID(pin), c.Name, c.Namespace)
	}

	return notes
}

// WithoutEmpty is the first text that says something.
func WithoutEmpty(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}

	return "no reason given"
}

// noteResults says what the program reported as an error, last.
func noteResults(c *enov1.Composition, say func(show.Severity, string, ...any)) {
	for _, s := range []*enov1.Synthesis{c.Status.InFlightSynthesis, c.Status.CurrentSynthesis} {
		if s == nil {
			continue
		}

		for _, r := range s.Results {
			switch r.Severity {
			case enov1.SeverityError:
				say(show.SeverityError, "synthesizer: %s", r.Message)
			case enov1.SeverityWarning:
				say(show.SeverityWarning, "synthesizer: %s", r.Message)
			default:
			}
		}
	}
}

func noteDependencies(c *enov1.Composition, say func(show.Severity, string, ...any)) {
	s := c.Status.DependencyStatus
	if s == nil || !s.Blocked {
		return
	}

	for _, by := range s.BlockedBy {
		if by.Name == "" {
			say(show.SeverityWarning, "waits for compositions of other namespaces: %s", WithoutEmpty(by.Reason, s.Reason))

			continue
		}

		namespace := by.Namespace
		if namespace == "" {
			namespace = c.Namespace
		}

		say(show.SeverityWarning, "waits for composition %s/%s: %s", namespace, by.Name, WithoutEmpty(by.Reason, s.Reason))
	}

	if len(s.BlockedBy) == 0 {
		say(show.SeverityWarning, "waits for other compositions: %s", WithoutEmpty(s.Reason))
	}
}

func noteOwnership(c *enov1.Composition, say func(show.Severity, string, ...any)) {
	report := c.Status.Ownership
	if report == nil {
		return
	}

	for _, o := range report.Objects {
		ref := identity.Ref{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}

		switch o.State {
		case enov1.OwnershipFailed:
			say(show.SeverityError, "%s: ownership could not be moved: %s", ref, o.Message)
		case enov1.OwnershipSplit:
			say(show.SeverityWarning, "%s: others hold parts of it: %s", ref, o.Message)
		}
	}
}

// SymphonyText is what there is to say of a symphony.
func (d *Objects) SymphonyText(namespace, name string) string {
	s := d.Symphonies[types.NamespacedName{Namespace: namespace, Name: name}]

	switch {
	case s == nil:
		return "is not there"
	case s.DeletionTimestamp != nil:
		return "being deleted"
	case s.Status.Ready != nil:
		return "ready"
	case s.Status.Reconciled != nil:
		return "not ready"
	case s.Status.Synthesized != nil:
		return "reconciling"
	default:
		return "synthesizing"
	}
}

// IsNotHealthy reports whether objects of a composition do not work, or not yet.
func (c CompositionView) IsNotHealthy() bool {
	return slices.Contains([]string{enov1.ReasonProgressing, enov1.ReasonDegraded, enov1.ReasonFailed}, c.Health)
}

// IsStuck reports whether something of a composition failed.
func (c CompositionView) IsStuck() bool {
	stuck := slices.ContainsFunc(c.Notes, func(n show.NoteView) bool { return n.Severity == show.SeverityError })

	for _, s := range []*SynthesisView{c.InFlight, c.Current} {
		stuck = stuck || s != nil && (s.State == SynthesisFailed || len(s.MissingSlices) > 0 ||
			slices.ContainsFunc(s.Resources, func(v ResourceView) bool { return v.State == ResourceError }))
	}

	return stuck
}

// IsReady reports whether a composition is ready, and its objects work.
func (c CompositionView) IsReady() bool {
	return c.State == enov1.StatusReady && !c.IsNotHealthy() && !c.IsStuck()
}

// CountReady returns how many resources of a synthesis need nothing more.
func (s *SynthesisView) CountReady() int {
	n := 0

	for _, r := range s.Resources {
		if r.State.Well() {
			n++
		}
	}

	return n
}

// Refs are the compositions of the view.
func (v DeliveryView) Refs() []identity.Ref {
	all := make([]identity.Ref, len(v.Compositions))
	for i, c := range v.Compositions {
		all[i] = identity.Ref{APIVersion: enov1.GroupVersion.String(), Kind: enov1.CompositionKind, Namespace: c.Namespace, Name: c.Name}
	}

	return all
}
