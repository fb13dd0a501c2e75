package eno_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// versions are the resourceVersions of the current slices and of ConfigMaps.
func (e *env) versions(c *enov1.Composition, names ...string) map[string]string {
	e.Helper()
	all := map[string]string{}
	for _, ref := range c.Status.CurrentSynthesis.ResourceSlices {
		s := &enov1.ResourceSlice{}
		must(e, e.Get(e.Context(), client.ObjectKey{Namespace: e.namespace, Name: ref.Name}, s))
		all["slice "+s.Name] = s.ResourceVersion
	}
	for _, name := range names {
		all[name] = e.config(name).ResourceVersion
	}

	return all
}

// TestUnchangedOutput changes what a synthesis depends on without changing its output.
// The observed generations and inputs follow; slices, history and objects stay.
func TestUnchangedOutput(t *testing.T) {
	e := newEnv(t)
	input := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "in"}, Data: map[string]string{"noise": "1"}}
	must(t, e.Create(t.Context(), input))
	e.compose("app", nil, configMap("one", "1"), configMap("two", "1"))
	first := e.ready("app")
	before := e.versions(first, "one", "two")
	same := func(what string, observed func(*enov1.Synthesis) error) {
		t.Helper()
		c := e.await("app", "has observed "+what, func(c *enov1.Composition) error {
			if c.Status.CurrentSynthesis.Ready == nil {
				t.Errorf("%s: the composition is not ready any more", what)
			}

			return observed(c.Status.CurrentSynthesis)
		})
		if c.Status.CurrentSynthesis.UUID == first.Status.CurrentSynthesis.UUID {
			t.Errorf("%s: the current synthesis is still the first one", what)
		}
		if c.Status.PreviousSynthesis != nil || len(c.Status.History) > 0 {
			t.Errorf("%s: the history has %+v and %+v", what, c.Status.PreviousSynthesis, c.Status.History)
		}
		if diff := cmp.Diff(before, e.versions(c, "one", "two")); diff != "" {
			t.Errorf("%s: slices or objects were written:\n%s", what, diff)
		}
	}

	program := e.program("app", e.output(configMap("one", "1"), configMap("two", "1")))
	program.Spec.Refs = []enov1.Ref{{Key: "in", Resource: enov1.ResourceRef{Version: "v1", Kind: "ConfigMap", Namespace: e.namespace, Name: "in"}}}
	must(t, e.Update(t.Context(), program))
	same("the generation of the Synthesizer", func(s *enov1.Synthesis) error {
		if s.ObservedSynthesizerGeneration != program.Generation {
			return fmt.Errorf("generation %d of the Synthesizer is not observed", program.Generation)
		}

		return nil
	})
	input.Data["noise"] = "2"
	must(t, e.Update(t.Context(), input))
	same("the input", func(s *enov1.Synthesis) error {
		if len(s.InputRevisions) != 1 || s.InputRevisions[0].ResourceVersion != input.ResourceVersion {
			return fmt.Errorf("version %s of the input is not observed", input.ResourceVersion)
		}

		return nil
	})
	e.edit("app", func(c *enov1.Composition) { c.Spec.SynthesisEnv = []enov1.EnvVar{{Name: "NOISE", Value: "3"}} })
	same("the generation of the Composition", func(s *enov1.Synthesis) error {
		if s.ObservedCompositionGeneration != 2 {
			return errors.New("generation 2 of the Composition is not observed")
		}

		return nil
	})

	// Force delivers in full.
	current := e.ready("app").Status.CurrentSynthesis
	e.edit("app", func(c *enov1.Composition) {
		c.Annotations = map[string]string{enov1.AnnotationForceResynthesis: current.UUID}
	})
	e.await("app", "is forced", func(c *enov1.Composition) error {
		s := c.Status
		if s.PreviousSynthesis == nil || s.PreviousSynthesis.UUID != current.UUID || s.CurrentSynthesis.ResourceSlices[0].Name == current.ResourceSlices[0].Name {
			return errors.New("there is no new synthesis with slices of its own")
		}

		return nil
	})

	// What was taken over is pruned and deleted as usual.
	e.change("app", configMap("one", "1"))
	e.absent("two")
	e.ready("app")
	e.remove("app")
	e.gone("app")
	if e.config("one") != nil {
		t.Error("the composition is gone, and its object is left behind")
	}
}
