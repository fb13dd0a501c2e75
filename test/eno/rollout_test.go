package eno_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/test/cluster"
)

// fleet creates compositions that share a Synthesizer, which prints what a script prints.
// Each has a ConfigMap of its own name.
func (e *env) fleet(script string, names ...string) {
	e.Helper()
	s := e.script(script)
	for _, name := range names {
		must(e, e.Create(e.Context(), &enov1.Composition{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name},
			Spec: enov1.CompositionSpec{
				Synthesizer:  enov1.SynthesizerRef{Name: s.Name},
				SynthesisEnv: []enov1.EnvVar{{Name: "ME", Value: name}, {Name: "NS", Value: e.namespace}},
			},
		}))
	}
	for _, name := range names {
		e.ready(name)
	}
}

// script creates or changes the Synthesizer of a fleet.
func (e *env) script(text string) *enov1.Synthesizer {
	e.Helper()
	o := &enov1.Synthesizer{ObjectMeta: metav1.ObjectMeta{Name: e.namespace + "-fleet"}}
	err := e.Get(e.Context(), client.ObjectKeyFromObject(o), o)
	must(e, client.IgnoreNotFound(err))
	o.Labels = map[string]string{"test": e.namespace}
	o.Spec = enov1.SynthesizerSpec{Image: "none", Command: []string{"sh", "-c", "cat > /dev/null; " + text}}
	if err != nil {
		must(e, e.Create(e.Context(), o))

		return o
	}
	must(e, kube.RetryOnConflict(e.Context(), func(ctx context.Context) error {
		spec := o.Spec
		if err := e.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		o.Spec = spec

		return e.Update(ctx, o)
	}))

	return o
}

// prints is a script that prints a ConfigMap with a value.
func prints(value string) string {
	return `printf '{"apiVersion":"config.kubernetes.io/v1","kind":"ResourceList","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s","namespace":"%s"},"data":{"a":"` + value + `"}}]}' "$ME" "$NS"`
}

// halted waits until the rollout of a Synthesizer is halted, in this namespace or in all, or
// is not.
func (e *env) halted(s *enov1.Synthesizer, want bool) string {
	e.Helper()
	message := ""
	cluster.Eventually(e, fmt.Sprintf("halted is %t", want), func() error {
		must(e, e.Get(e.Context(), client.ObjectKeyFromObject(s), s))
		c := meta.FindStatusCondition(s.Status.Conditions, enov1.ConditionRolloutHalted+"."+e.namespace)
		if c == nil {
			c = meta.FindStatusCondition(s.Status.Conditions, enov1.ConditionRolloutHalted)
		}
		if (c != nil) != want {
			return fmt.Errorf("the condition is %+v", c)
		}
		if c != nil {
			message = c.Message
		}

		return nil
	})

	return message
}

// reached counts the compositions of a fleet that a generation has reached.
func (e *env) reached(s *enov1.Synthesizer) int {
	e.Helper()
	list := &enov1.CompositionList{}
	must(e, e.List(e.Context(), list, client.InNamespace(e.namespace)))
	n := 0
	for i := range list.Items {
		st := list.Items[i].Status
		if st.CurrentSynthesis != nil && st.CurrentSynthesis.ObservedSynthesizerGeneration == s.Generation ||
			st.InFlightSynthesis != nil && st.InFlightSynthesis.ObservedSynthesizerGeneration == s.Generation {
			n++
		}
	}

	return n
}

var fleetNames = []string{"one", "two", "three", "four", "five", "six"}

// TestRolloutHalts rolls a program out that fails. It reaches two compositions and no more,
// also across a restart, until a user resumes it. The next generation is guarded again.
func TestRolloutHalts(t *testing.T) {
	e := newEnv(t)
	flags := []string{"--rollout-max-failures=2", "--rollout-cooldown=1s"}
	e.restartWith(flags...)
	e.fleet(prints("1"), fleetNames...)
	s := e.script("echo broken >&2; exit 3")
	message := e.halted(s, true)
	for _, text := range []string{"2 compositions failed with generation", "arbor delivery rollout resume " + s.Name} {
		if !strings.Contains(message, text) {
			t.Errorf("the message lacks %q: %s", text, message)
		}
	}
	var held []string
	cluster.Eventually(t, "compositions report that they are held", func() error {
		list := &enov1.CompositionList{}
		must(t, e.List(t.Context(), list, client.InNamespace(e.namespace)))
		held = nil
		for i := range list.Items {
			if c := meta.FindStatusCondition(list.Items[i].Status.Conditions, enov1.ConditionSynthesized); c != nil && c.Reason == "RolloutHalted" && c.Status == metav1.ConditionTrue {
				held = append(held, list.Items[i].Name)
			}
		}
		if len(held) != 4 {
			return fmt.Errorf("%q are, of 4", held)
		}

		return nil
	})
	if got := manager.Sum(t, fmt.Sprintf(`eno_synthesizer_rollout_halted{synthesizer=%q}`, s.Name)); got != 1 {
		t.Errorf("the metric is %v", got)
	}

	// Another manager does not go on, either.
	e.restart(flags...)
	e.edit(held[0], func(c *enov1.Composition) {
		c.Spec.SynthesisEnv = append(c.Spec.SynthesisEnv, enov1.EnvVar{Name: "X", Value: "y"})
	})
	e.status(held[0], enov1.StatusSynthesisBackoff, "") // what a user edits is not held
	if got := e.reached(s); got != 3 {
		t.Errorf("%d compositions have the broken generation", got)
	}
	if e.halted(s, true); s.Annotations[enov1.AnnotationResumeRollout] != "" {
		t.Errorf("the annotations are %v", s.Annotations)
	}

	out := e.arbor(0, "delivery", "rollout", s.Name)
	t.Log(out)
	var view struct {
		Rollouts []struct {
			Waiting int   `json:"waiting"`
			Halted  bool  `json:"halted"`
			Failed  []any `json:"failed"`
		} `json:"rollouts"`
	}
	must(t, json.Unmarshal([]byte(e.arbor(0, "delivery", "rollout", s.Name, "-o", "json")), &view))
	if len(view.Rollouts) != 1 || !view.Rollouts[0].Halted || len(view.Rollouts[0].Failed) != 2 || view.Rollouts[0].Waiting != 3 {
		t.Errorf("the view is %+v", view)
	}

	t.Log(e.arbor(0, "delivery", "rollout", "resume", s.Name))
	e.halted(s, false)
	cluster.Eventually(t, "all have the generation", func() error {
		if n := e.reached(s); n != len(fleetNames) {
			return fmt.Errorf("%d have it", n)
		}

		return nil
	})

	// A repaired program is another generation, which reaches all.
	s = e.script(prints("2"))
	for _, name := range fleetNames {
		e.value(name, "2")
	}
	e.halted(s, false)
	e.halted(e.script("exit 1"), true)
}

// TestRolloutRecovers rolls out what cannot be delivered, and then what can. A composition
// that failed before the rollout does not count.
func TestRolloutRecovers(t *testing.T) {
	e := newEnv(t)
	e.restartWith("--rollout-max-failures=1", "--rollout-cooldown=3s")
	e.fleet(prints("1"), "one", "two", "three")
	s := e.script(strings.ReplaceAll(prints("2"), `"metadata":{`, `"metadata":{"labels":{"a":"not valid!"},`))
	e.halted(s, true)
	if n := e.reached(s); n > 2 { // one, unless this machine is slow
		t.Errorf("%d compositions have it", n)
	}

	// The next generation repairs it, and reaches all.
	s = e.script(prints("3"))
	for _, name := range []string{"one", "two", "three"} {
		e.value(name, "3")
	}
	e.halted(s, false)

	// A composition that is broken by an edit has failed before, and halts nothing.
	e.script(`[ "$BAD" = "" ] || exit 1; ` + prints("4"))
	e.value("three", "4")
	e.value("two", "4")
	e.edit("one", func(c *enov1.Composition) {
		c.Spec.SynthesisEnv = append(c.Spec.SynthesisEnv, enov1.EnvVar{Name: "BAD", Value: "yes"})
	})
	e.status("one", enov1.StatusSynthesisBackoff, "")
	s = e.script(`[ "$BAD" = "" ] || exit 1; ` + prints("5"))
	e.value("two", "5")
	e.value("three", "5")
	e.await("one", "is tried with the generation", func(c *enov1.Composition) error {
		if in := c.Status.InFlightSynthesis; in == nil || in.ObservedSynthesizerGeneration != s.Generation || !in.FailedBefore {
			return errors.New("it is not")
		}

		return nil
	})
	e.halted(s, false)
}
