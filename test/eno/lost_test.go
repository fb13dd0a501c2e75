package eno_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// hooked are a hook, which a Patch deletes first, and a ConfigMap after it.
func hooked() []string {
	return []string{patchOf("hook", "1", deletes), configMap("hook", "1", enov1.AnnotationReadinessGroup, "2"), configMap("last", "1", enov1.AnnotationReadinessGroup, "3")}
}

// stuck has the Synthesizer of a composition fail, so that no synthesis repairs anything.
func (e *env) stuck(name string) {
	e.Helper()
	e.program(name, "broken")
	e.status(name, enov1.StatusSynthesisBackoff, "cannot read the output")
}

// slicesOf are the slices of the current synthesis of a composition.
func (e *env) slicesOf(name string) []*enov1.ResourceSlice {
	e.Helper()
	c := &enov1.Composition{}
	must(e, e.Get(e.Context(), client.ObjectKey{Namespace: e.namespace, Name: name}, c))
	var all []*enov1.ResourceSlice
	for _, ref := range c.Status.CurrentSynthesis.ResourceSlices {
		all = append(all, &enov1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: ref.Name}})
	}

	return all
}

// lose removes the finalizers of the slices of a composition, and deletes them.
func (e *env) lose(name string) {
	e.Helper()
	for _, s := range e.slicesOf(name) {
		cluster.Eventually(e, "slice "+s.Name+" exists", func() error { return e.Get(e.Context(), client.ObjectKeyFromObject(s), s) })
		must(e, e.Patch(e.Context(), s, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
		must(e, e.Delete(e.Context(), s, client.Preconditions{UID: &s.UID}))
	}
}

// TestLostSlice has a user remove the slices of a composition in spite of their finalizer, before
// another synthesis or the deletion of the composition drops their objects.
func TestLostSlice(t *testing.T) {
	for name, drop := range map[string]func(*env){
		"Pruned": func(e *env) {
			e.program("app", e.output(configMap("one", "2")))
			e.value("one", "2")
			e.absent("two")
			e.ready("app")
			e.exist("one")
		},
		"Deleted": func(e *env) {
			e.remove("app")
			e.gone("app")
			e.absent("one", "two")
		},
		"DeletedBefore": func(e *env) {
			e.compose("waits", dependsOn("app"), configMap("three", "1")) // it holds the deletion up
			e.remove("app")
			e.status("app", enov1.StatusWaitingOnDependents, "")
			e.lose("app")
			e.remove("waits")
			e.gone("app")
			e.absent("one", "two")
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.compose("app", nil, configMap("one", "1"), configMap("two", "1"))
			e.ready("app")
			e.stuck("app")
			e.lose("app")
			drop(e)
		})
	}
}

// TestLostSliceUnknown loses a slice while no manager runs: its objects are not known any more. The
// composition reports it, and is not stuck.
func TestLostSliceUnknown(t *testing.T) {
	e := newEnv(t)
	e.compose("app", nil, configMap("one", "1"))
	e.compose("other", nil, configMap("two", "1"))
	e.ready("app")
	e.ready("other")
	manager.Kill()
	e.lose("app")
	e.lose("other")
	e.remove("other")
	must(t, startManager())
	e.event("SliceLost", "may be left behind")
	e.gone("other")
	e.ready("app") // synthesized again
	e.remove("app")
	e.gone("app")
	e.absent("one")
}

// TestLostSliceKeepsHooks has slices that are lost, or lose their status: what was done in the
// synthesis is not done again, and the composition becomes ready by itself.
func TestLostSliceKeepsHooks(t *testing.T) {
	status := func(e *env, patch string) {
		for _, s := range e.slicesOf("app") {
			must(e, e.Status().Patch(e.Context(), s, client.RawPatch(types.JSONPatchType, []byte(patch))))
		}
	}
	const cleared = `[{"op":"replace","path":"/status","value":{}}]`
	for name, harm := range map[string]func(*env){
		"Lost":    func(e *env) { e.lose("app") },
		"Cleared": func(e *env) { status(e, cleared) },
		"Overwritten": func(e *env) {
			status(e, `[{"op":"replace","path":"/status/resources/0","value":{}},{"op":"replace","path":"/status/resources/2","value":{"deleted":true}}]`)
		},
		"Shortened": func(e *env) { status(e, `[{"op":"remove","path":"/status/resources/0"}]`) },
		"WhileDown": func(e *env) {
			manager.Kill()
			status(e, cleared)
			must(e, startManager())
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.foreign("hook")
			e.compose("app", nil, hooked()...)
			e.ready("app")
			first := e.config("hook").UID
			harm(e)
			e.complete("app")
			e.ready("app")
			e.settled("last")
			if now := e.config("hook"); now == nil || now.UID != first {
				t.Errorf("the hook was deleted again: %s, then %v", first, now)
			}
			e.remove("app")
			e.gone("app")
			e.absent("last")
		})
	}
}

// complete waits until every slice of a composition exists and has the state of each manifest.
func (e *env) complete(name string) {
	e.Helper()
	cluster.Eventually(e, "the slices of "+name+" are complete", func() error {
		for _, s := range e.slicesOf(name) {
			err := e.Get(e.Context(), client.ObjectKeyFromObject(s), s)
			if apierrors.IsNotFound(err) || err == nil && len(s.Status.Resources) != len(s.Spec.Resources) {
				return fmt.Errorf("slice %s has %d of %d states: %w", s.Name, len(s.Status.Resources), len(s.Spec.Resources), errors.Join(err))
			}
			must(e, err)
			for i, state := range s.Status.Resources {
				if !state.Reconciled || state.Deleted != (i == 0) {
					return fmt.Errorf("state %d of slice %s is %+v", i, s.Name, state)
				}
			}
		}

		return nil
	})
}
