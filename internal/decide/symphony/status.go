package symphony

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// Reasons of the condition.
const (
	ReasonReady    = "Ready"
	ReasonNotReady = "CompositionsNotReady"
	ReasonDeleting = "Deleting"
	// ReasonRefused means that the API server rejects a composition.
	ReasonRefused = "CompositionRefused"
)

// Reasons of the condition if something is wrong with the spec.
const (
	ReasonMissingSynthesizer   = "MissingSynthesizer"
	ReasonDuplicateSynthesizer = "DuplicateSynthesizer"
	ReasonUnknownDependency    = "UnknownDependency"
	ReasonCircularDependency   = enov1.ReasonCircularDependency
)

const (
	// named is how many of several things are named.
	named = 3
	// maxMessage is the maximum length of the message about each, in characters.
	maxMessage = 600
)

// refused is the status of a Symphony with an invalid spec.
func refused(s *enov1.Symphony, problems []problem, now time.Time) enov1.SymphonyStatus {
	all := make([]string, 0, len(problems))
	for _, p := range problems {
		all = append(all, p.message)
	}

	return say(s, enov1.SymphonyStatus{}, metav1.ConditionFalse, problems[0].reason, few(all)+"; nothing is changed until that is mended", now)
}

// ending is the status of a Symphony that is being deleted.
func ending(v View, now time.Time) enov1.SymphonyStatus {
	all := make([]string, 0, len(v.Compositions))
	for _, c := range v.Compositions {
		all = append(all, fmt.Sprintf("Composition %s/%s", c.Namespace, c.Name))
	}
	text := "no composition is left"
	if len(all) > 0 {
		text = "these are not gone yet: " + few(all)
	}

	return say(v.Symphony, enov1.SymphonyStatus{}, metav1.ConditionFalse, ReasonDeleting, text, now)
}

// Refuse adds to a status that a write was rejected, and why. The progress of the other
// compositions stays true.
func Refuse(s *enov1.Symphony, st enov1.SymphonyStatus, why string, now time.Time) enov1.SymphonyStatus {
	return say(s, st, metav1.ConditionFalse, ReasonRefused, shorten(why), now)
}

// status is how far all variations that count have come together.
func (p *plan) status(s *enov1.Symphony, now time.Time) enov1.SymphonyStatus {
	var (
		synthesized, reconciled, ready latest
		blocking                       []string
		count                          int
	)
	for i := range p.parts {
		t := &p.parts[i]
		if t.variation.Optional {
			continue
		}
		count++
		current := t.current()
		synthesized.add(current.Synthesized)
		reconciled.add(current.Reconciled)
		ready.add(current.Ready)
		if current.Ready == nil {
			blocking = append(blocking, t.blocked())
		}
	}
	st := enov1.SymphonyStatus{Synthesized: synthesized.time(), Reconciled: reconciled.time(), Ready: ready.time()}
	if len(blocking) > 0 {
		return say(s, st, metav1.ConditionFalse, ReasonNotReady, few(blocking)+p.keeping(), now)
	}

	return say(s, st, metav1.ConditionTrue, ReasonReady, fmt.Sprintf("all %d compositions that count are ready", count)+p.keeping(), now)
}

// current is the synthesis that counts: of the composition as it is, and that one
// as it should be. It is empty if there is none.
func (t *part) current() *enov1.Synthesis {
	if t.upToDate() {
		if c := t.have.Status.CurrentSynthesis; c != nil && c.ObservedCompositionGeneration == t.have.Generation {
			return c
		}
	}

	return &enov1.Synthesis{}
}

// blocked returns what keeps a variation from being ready, as its composition reports it.
func (t *part) blocked() string {
	if t.have == nil {
		return fmt.Sprintf("variation %q has no composition yet", nameOf(t.variation))
	}
	name := fmt.Sprintf("Composition %s/%s", t.have.Namespace, t.have.Name)
	if !t.upToDate() {
		return name + ": it does not match its variation yet"
	}
	for _, kind := range []string{enov1.ConditionSynthesized, enov1.ConditionReconciled, enov1.ConditionReady} {
		c := meta.FindStatusCondition(t.have.Status.Conditions, kind)
		if c == nil || c.ObservedGeneration != t.have.Generation {
			break // its conditions are about another spec
		}
		if c.Status != metav1.ConditionTrue {
			return fmt.Sprintf("%s: %s: %s", name, c.Reason, c.Message)
		}
	}

	return name + ": it has no status yet"
}

// A latest time is one that all have reached.
type latest struct {
	at      *metav1.Time
	missing bool
}

func (l *latest) add(t *metav1.Time) {
	switch {
	case t == nil:
		l.missing = true
	case l.at == nil || l.at.Before(t):
		l.at = t
	}
}

func (l *latest) time() *metav1.Time {
	if l.missing {
		return nil
	}

	return l.at.DeepCopy()
}

// say completes a status. Its texts depend on nothing but the state, so that they stay the same as
// long as it does.
func say(s *enov1.Symphony, st enov1.SymphonyStatus, status metav1.ConditionStatus, reason, message string, now time.Time) enov1.SymphonyStatus {
	st.ObservedGeneration = s.Generation
	st.Conditions = s.Status.DeepCopy().Conditions
	meta.SetStatusCondition(&st.Conditions, metav1.Condition{
		Type: enov1.ConditionSymphonyReady, Status: status, Reason: reason, Message: message,
		ObservedGeneration: s.Generation, LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
	})

	return st
}

// few names the first of several things, and how many more there are.
func few(all []string) string {
	first := make([]string, 0, named)
	for _, text := range all[:min(len(all), named)] {
		first = append(first, shorten(text))
	}
	text := strings.Join(first, "; ")
	if more := len(all) - named; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}

	return text
}

func shorten(text string) string {
	runes := []rune(text)
	if len(runes) <= maxMessage {
		return text
	}

	return string(runes[:maxMessage]) + "…"
}
