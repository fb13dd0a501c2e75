package compositions

import (
	"fmt"
	"slices"
	"strings"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show"
)

// ExplanationsView is what arbor compositions explain prints for programs.
type ExplanationsView struct {
	Compositions []ExplanationView `json:"compositions"`
}

// An ExplanationView is why one composition is not ready.
type ExplanationView struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	State     string `json:"state"`
	Ready     bool   `json:"ready"`
	// Blockers are what it waits for. Errors come first.
	Blockers []BlockerView `json:"blockers"`
	// Waiting is how many resources wait for one of the blockers.
	Waiting int `json:"waiting"`
}

// A BlockerView is one thing that keeps a composition from being ready.
type BlockerView struct {
	// Object is absent if it is the composition itself.
	Object   *identity.Ref `json:"object,omitempty"`
	Severity show.Severity `json:"severity"`
	Message  string        `json:"message"`
	// Action is what a user can do.
	Action string `json:"action,omitempty"`
}

// Explain returns why compositions are not ready.
func (v DeliveryView) Explain() ExplanationsView {
	out := ExplanationsView{Compositions: []ExplanationView{}}
	for _, c := range v.Compositions {
		out.Compositions = append(out.Compositions, c.explain())
	}

	return out
}

// IsReady reports whether all compositions are ready.
func (v ExplanationsView) IsReady() bool {
	for _, c := range v.Compositions {
		if !c.Ready {
			return false
		}
	}

	return true
}

func (c CompositionView) explain() ExplanationView {
	e := ExplanationView{Namespace: c.Namespace, Name: c.Name, State: c.State, Ready: c.IsReady(), Blockers: []BlockerView{}}
	if e.Ready {
		return e
	}

	var errors, others []BlockerView

	add := func(b BlockerView) {
		if b.Severity == show.SeverityError {
			errors = append(errors, b)
		} else {
			others = append(others, b)
		}
	}

	for _, s := range []*SynthesisView{c.InFlight, c.Current} {
		e.Waiting += s.blockers(c, add)
	}

	for _, n := range c.Notes {
		add(BlockerView{Severity: n.Severity, Message: n.Message, Action: c.noteAction(n)})
	}

	if e.Blockers = slices.Concat(errors, others); len(e.Blockers) == 0 {
		e.Blockers = []BlockerView{{Severity: show.SeverityWarning, Message: c.progress(), Action: fmt.Sprintf("wait; if it takes long, check Arbor itself: arbor doctor, or its events: kubectl describe composition %s -n %s", c.Name, c.Namespace)}}
	}

	return e
}

// blockers adds the resources that block, and returns how many wait for them.
func (s *SynthesisView) blockers(c CompositionView, add func(BlockerView)) (waiting int) {
	if s == nil {
		return 0
	}

	for _, name := range s.MissingSlices {
		ref := identity.Ref{APIVersion: enov1.GroupVersion.String(), Kind: enov1.ResourceSliceKind, Namespace: c.Namespace, Name: name}
		add(BlockerView{Object: &ref, Severity: show.SeverityError, Message: "does not exist: the manifests in it are unknown", Action: "synthesize it again: change the Composition or its inputs"})
	}

	for _, r := range s.Resources {
		switch {
		case r.State.Well():
		case r.WaitsFor != nil:
			waiting++
		default:
			add(r.blocker(c))
		}
	}

	return waiting
}

func (r ResourceView) blocker(c CompositionView) BlockerView {
	b := BlockerView{Object: &r.Object, Severity: show.SeverityWarning, Message: r.State.Text()}

	switch r.State {
	case ResourceError:
		b.Severity, b.Message = show.SeverityError, r.Error
		b.Action = fmt.Sprintf("correct the manifest in synthesizer %s or its inputs; compare with arbor compositions plan %s -n %s", WithoutEmpty(c.Synthesizer), c.Name, c.Namespace)
	case ResourceNotReady:
		b.Action = "see why it is not ready: kubectl describe " + argument(r.Object)
	case ResourceDeleting:
		b.Action = "see which finalizers are left: kubectl get " + argument(r.Object) + " -o jsonpath={.metadata.finalizers}"
	default:
		b.Message = "has not been applied yet"
	}

	return b
}

// argument names an object for kubectl.
func argument(ref identity.Ref) string {
	kind := strings.ToLower(ref.Kind)
	if group, _, both := strings.Cut(ref.APIVersion, "/"); both {
		kind += "." + group
	}

	text := kind + "/" + ref.Name
	if ref.Namespace != "" {
		text += " -n " + ref.Namespace
	}

	return text
}

// noteAction is what to do about a note. Most messages contain it.
func (c CompositionView) noteAction(n show.NoteView) string {
	if n.Severity == show.SeverityError && strings.HasPrefix(n.Message, "synthesizer: ") {
		return fmt.Sprintf("correct synthesizer %s or the inputs of the Composition; try it with arbor compositions render", WithoutEmpty(c.Synthesizer))
	}

	return ""
}

// progress is what a composition is doing for which nothing else is known.
func (c CompositionView) progress() string {
	switch c.State {
	case enov1.StatusPendingSynthesis:
		return "its synthesis has not started"
	case enov1.StatusSynthesizing:
		return "its synthesizer runs"
	case enov1.StatusDeleting:
		return "it is being deleted"
	default:
		return "it is " + c.State
	}
}
