package eno_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

var errUnobserved = errors.New("the current synthesis is an earlier one")

// variable has the program of a composition run with a variable.
func variable(name, value string) func(*enov1.Composition) {
	return func(c *enov1.Composition) { c.Spec.SynthesisEnv = []enov1.EnvVar{{Name: name, Value: value}} }
}

// observed waits until a composition is synthesized as it is.
func (e *env) observed(name string) *enov1.Composition {
	e.Helper()

	return e.await(name, "is synthesized as it is", func(c *enov1.Composition) error {
		if s := c.Status.CurrentSynthesis; s == nil || s.ObservedCompositionGeneration != c.Generation {
			return errUnobserved
		}

		return nil
	})
}

// emptyIf has the Synthesizer of a composition print nothing if the variable EMPTY is set.
func (e *env) emptyIf(name string, manifests ...string) {
	e.Helper()
	p := e.program(name, e.output(manifests...))
	p.Spec.Command = []string{"sh", "-c", `cat > /dev/null; if [ "$EMPTY" ]; then printf %s "$1"; else printf %s "$0"; fi`, e.output(manifests...), e.output()}
	must(e, e.Update(e.Context(), p))
	e.synthesized(name, p)
}

// TestEditWhileBlocked edits a composition whose objects wait for a confirmation, in ways
// that do not change its output, and forces a synthesis: the user did not ask for the
// synthesis that dropped the objects, and nothing is deleted.
func TestEditWhileBlocked(t *testing.T) {
	e := newEnv(t)
	e.compose("app", nil, configMap("one", "1"), configMap("two", "1"))
	e.ready("app")
	e.change("app")
	digest := e.blocked("app", "2 objects")
	still := func(what string) {
		t.Helper()
		// A composition that comes later is delivered, so the edit was seen.
		e.compose(what, nil, configMap(what, "1"))
		e.ready(what)
		if again := e.blocked("app", "2 objects"); again != digest {
			t.Errorf("%s: the digest was %s and is %s", what, digest, again)
		}
		e.exist("one", "two")
	}
	e.edit("app", variable("A", "B"))
	e.observed("app")
	still("edited")
	e.edit("app", func(c *enov1.Composition) { c.Labels = map[string]string{"team": "a"} })
	still("labeled")
	current := e.observed("app").Status.CurrentSynthesis.UUID
	e.edit("app", annotated(enov1.AnnotationForceResynthesis, current))
	e.await("app", "is forced", func(c *enov1.Composition) error {
		if c.Status.CurrentSynthesis.UUID == current {
			return errUnobserved
		}

		return nil
	})
	still("forced")
	e.restart()
	still("restarted")

	e.edit("app", annotated(enov1.AnnotationConfirmPrune, digest))
	e.absent("one", "two")
	e.unblocked("app")
}

// TestGuardAfterEdit edits a composition without effect, and then has its program print
// nothing: the edit was not a request for that.
func TestGuardAfterEdit(t *testing.T) {
	e := newEnv(t)
	e.compose("app", nil, configMap("one", "1"), configMap("two", "1"), configMap("three", "1"))
	e.ready("app")
	e.change("app", configMap("one", "1"), configMap("two", "1")) // so that there is a previous synthesis
	e.absent("three")
	e.edit("app", variable("A", "B"))
	e.observed("app")
	e.change("app")
	e.blocked("app", "2 objects")
	e.exist("one", "two")
}

// TestLostSliceIsNoRequest deletes the slice of a composition whose program would print
// nothing now. The synthesis that repairs it must not delete the objects.
func TestLostSliceIsNoRequest(t *testing.T) {
	e := newEnv(t)
	e.compose("app", func(c *enov1.Composition) {
		// A change of the program alone does not cause a synthesis.
		c.Annotations = map[string]string{enov1.AnnotationIgnoreSideEffects: "true"}
	}, configMap("one", "1"), configMap("two", "1"))
	c := e.ready("app")
	e.program("app", e.output())
	lost := c.Status.CurrentSynthesis.ResourceSlices[0].Name
	must(t, e.Delete(t.Context(), &enov1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: lost}}))
	e.await("app", "is synthesized again", func(now *enov1.Composition) error {
		if now.Status.CurrentSynthesis.UUID == c.Status.CurrentSynthesis.UUID {
			return errUnobserved
		}

		return nil
	})
	e.blocked("app", "2 objects")
	e.exist("one", "two")
}
