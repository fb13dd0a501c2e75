package synthesis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// A Bound is an input of a Synthesizer, and the object that it is bound to. It
// has no name if it is not bound.
type Bound struct {
	enov1.Ref

	Namespace, Name string
	// Chosen is the binding if the Composition chose the object, nil if the Synthesizer did.
	Chosen *tenancy.Binding
	// Forbidden is why the Composition may not choose the object. It is then not read.
	Forbidden *tenancy.Violation
	// Ignored is why the binding of the Composition is not used: the input is pinned.
	Ignored *tenancy.Violation
}

// Bind returns what the inputs of a composition are bound to. A binding of the composition
// overrides one of the Synthesizer, unless that is pinned.
func Bind(c *enov1.Composition, s *enov1.Synthesizer, rules tenancy.Rules) []Bound {
	all := make([]Bound, 0, len(s.Spec.Refs))
	for _, ref := range s.Spec.Refs {
		all = append(all, bind(c, s, ref, rules))
	}

	return all
}

func bind(c *enov1.Composition, s *enov1.Synthesizer, ref enov1.Ref, rules tenancy.Rules) Bound {
	b := Bound{Ref: ref, Namespace: ref.Resource.Namespace, Name: ref.Resource.Name}
	i := slices.IndexFunc(c.Spec.Bindings, func(b enov1.Binding) bool { return b.Key == ref.Key })
	if i < 0 {
		return b
	}
	to := c.Spec.Bindings[i].Resource
	if to.Namespace == b.Namespace && to.Name == b.Name {
		return b // both chose it
	}
	chosen := tenancy.Binding{Of: c.Namespace, Key: ref.Key, Kind: ref.Resource.Kind, Namespace: to.Namespace, Name: to.Name}
	if ref.Pinned {
		b.Ignored = tenancy.Pinned(chosen, s.Name)

		return b
	}
	b.Namespace, b.Name, b.Chosen, b.Forbidden = to.Namespace, to.Name, &chosen, rules.Input(chosen)

	return b
}

// Forbidden returns the first rule between tenants that keeps a composition from being
// synthesized, nil if there is none.
func Forbidden(c *enov1.Composition, s *enov1.Synthesizer, rules tenancy.Rules) *tenancy.Violation {
	if !rules.Scope.Restricts() {
		return nil
	}
	for _, ref := range s.Spec.Refs {
		if b := bind(c, s, ref, rules); b.Forbidden != nil {
			return b.Forbidden
		}
	}

	return rules.Env(c.Spec.SynthesisEnv)
}

// Revision is what is recorded of an input. Annotations that are not numbers are ignored.
func Revision(key string, o metav1.Object) enov1.InputRevisions {
	r := enov1.InputRevisions{Key: key, ResourceVersion: o.GetResourceVersion()}
	annotations := o.GetAnnotations()
	if n, err := strconv.Atoi(annotations[enov1.AnnotationRevision]); err == nil {
		r.Revision = &n
	}
	if n, err := strconv.ParseInt(annotations[enov1.AnnotationSynthesizerGeneration], 10, 64); err == nil {
		r.SynthesizerGeneration = &n
	}
	if n, err := strconv.ParseInt(annotations[enov1.AnnotationCompositionGeneration], 10, 64); err == nil {
		r.CompositionGeneration = &n
	}
	if b, err := strconv.ParseBool(annotations[enov1.AnnotationIgnoreSideEffects]); err == nil {
		r.IgnoreSideEffects = &b
	}

	return r
}

// Missing returns the keys of inputs that must be there and are not.
func Missing(s *enov1.Synthesizer, have []enov1.InputRevisions) []string {
	var keys []string
	for _, ref := range s.Spec.Refs {
		if _, ok := revisionOf(have, ref.Key); !ok && !ref.Optional {
			keys = append(keys, ref.Key)
		}
	}

	return keys
}

// Mismatch describes inputs that do not match, "" if they do. Inputs that have a revision must have
// the same one, and those that were created for a generation must not be older than it.
func Mismatch(c *enov1.Composition, s *enov1.Synthesizer, have []enov1.InputRevisions) string {
	var first *enov1.InputRevisions
	for i := range have {
		r := &have[i]
		switch {
		case r.SynthesizerGeneration != nil && *r.SynthesizerGeneration < s.Generation:
			return fmt.Sprintf("input %q is for generation %d of the Synthesizer, which has %d", r.Key, *r.SynthesizerGeneration, s.Generation)
		case r.CompositionGeneration != nil && *r.CompositionGeneration < c.Generation:
			return fmt.Sprintf("input %q is for generation %d of the Composition, which has %d", r.Key, *r.CompositionGeneration, c.Generation)
		case r.Revision == nil:
		case first == nil:
			first = r
		case *first.Revision != *r.Revision:
			return fmt.Sprintf("input %q has revision %d and input %q has %d", first.Key, *first.Revision, r.Key, *r.Revision)
		}
	}

	return ""
}

// inputsChanged reports whether inputs differ from those of a synthesis, as far as the composition
// does not ignore them, and whether any of them is not deferred.
func inputsChanged(c *enov1.Composition, s *enov1.Synthesizer, before []enov1.InputRevisions) (now, deferred bool) {
	for _, ref := range s.Spec.Refs {
		was, had := revisionOf(before, ref.Key)
		is, has := revisionOf(c.Status.InputRevisions, ref.Key)
		switch {
		case had == has && (!has || !newer(was, is)):
		case ignored(c, was, is):
		case ref.Defer:
			deferred = true
		default:
			now = true
		}
	}

	return now, deferred
}

// newer reports whether an input changed since. A synthesis can have read a later version than is
// in the status of its composition: that is not a change.
func newer(was, is enov1.InputRevisions) bool {
	if was.Revision != nil && is.Revision != nil {
		return *was.Revision != *is.Revision
	}
	a, errA := strconv.ParseUint(was.ResourceVersion, 10, 64)
	b, errB := strconv.ParseUint(is.ResourceVersion, 10, 64)
	if errA != nil || errB != nil {
		return was.ResourceVersion != is.ResourceVersion
	}

	return b > a
}

// ignored reports whether changes of an input are ignored. The annotation of the input overrides
// that of the composition.
func ignored(c *enov1.Composition, was, is enov1.InputRevisions) bool {
	for _, said := range []*bool{is.IgnoreSideEffects, was.IgnoreSideEffects} {
		if said != nil {
			return *said
		}
	}

	return ignoresSideEffects(c)
}

func ignoresSideEffects(c *enov1.Composition) bool {
	return c.Annotations[enov1.AnnotationIgnoreSideEffects] == "true"
}

func revisionOf(all []enov1.InputRevisions, key string) (enov1.InputRevisions, bool) {
	i := slices.IndexFunc(all, func(r enov1.InputRevisions) bool { return r.Key == key })
	if i < 0 {
		return enov1.InputRevisions{}, false
	}

	return all[i], true
}

// quoted lists keys for people.
func quoted(keys []string) string {
	all := make([]string, 0, len(keys))
	for _, k := range keys {
		all = append(all, strconv.Quote(k))
	}

	return strings.Join(all, ", ")
}
