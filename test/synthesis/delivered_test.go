package synthesis_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// delivering are the flags of a manager that runs both parts.
func delivering(cooldown string) []string {
	return []string{"--controllers=synthesis,delivery", "--webhooks=false", "--local-synthesizers", "--rollout-cooldown=" + cooldown}
}

// delivered reports whether there is a ConfigMap of this name, and its data.
func (s *stage) delivered(name string) (map[string]string, bool) {
	s.t.Helper()
	o := &corev1.ConfigMap{}
	err := s.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, o)
	must(s.t, client.IgnoreNotFound(err))

	return o.Data, err == nil
}

// TestSymphonyDelivered has a Symphony from its beginning to its end, with what it
// makes in the cluster.
func TestSymphonyDelivered(t *testing.T) {
	server.StartManager(t, delivering("0s")...)
	s := newStage(t)
	s.synthesizers("strings", "brass")
	o := s.symphony("orchestra", s.variation("strings"), s.variation("brass", "strings"))
	s.condition("orchestra", "Ready", "")
	first, second := s.member(o, "strings"), s.member(o, "brass")
	for _, c := range []*enov1.Composition{first, second} {
		if _, ok := s.delivered(c.Name); !ok {
			t.Errorf("the Symphony is ready, and ConfigMap %s is not there", c.Name)
		}
	}
	if a, b := first.Status.CurrentSynthesis, second.Status.CurrentSynthesis; b.Initialized.Before(a.Ready) {
		t.Errorf("what depends was synthesized at %s, before the other was ready at %s", b.Initialized, a.Ready)
	}

	// A variation is deleted with its objects.
	s.respec("orchestra", func(spec *enov1.SymphonySpec) { spec.Variations = spec.Variations[:1] })
	cluster.Eventually(t, "the objects of the variation are gone", func() error {
		if _, ok := s.delivered(second.Name); ok {
			return fmt.Errorf("%s is there", second.Name)
		}

		return client.IgnoreNotFound(s.Get(t.Context(), client.ObjectKeyFromObject(second), &enov1.Composition{}))
	})
	s.condition("orchestra", "Ready", "")

	// A Symphony is deleted without them.
	must(t, s.Delete(t.Context(), o))
	cluster.Eventually(t, "the Symphony and its compositions are gone", func() error {
		list, symphonies := &enov1.CompositionList{}, &enov1.SymphonyList{}
		must(t, s.List(t.Context(), list, client.InNamespace(s.namespace)))
		must(t, s.List(t.Context(), symphonies, client.InNamespace(s.namespace)))
		if n := len(list.Items) + len(symphonies.Items); n > 0 {
			return fmt.Errorf("there are %d", n)
		}

		return nil
	})
	if _, ok := s.delivered(first.Name); !ok {
		t.Error("objects of a Symphony that is deleted must stay")
	}
}

// TestRolloutDelivered changes a Synthesizer of three compositions, which follow one
// after the other, with time between them.
func TestRolloutDelivered(t *testing.T) {
	const cooldown = 3 * time.Second
	server.StartManager(t, delivering(cooldown.String())...)
	s := newStage(t)
	names := []string{"a", "b", "c"}
	script := strings.ReplaceAll(echo, "$WORD", "one")
	program := &enov1.Synthesizer{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Spec: enov1.SynthesizerSpec{Command: []string{"sh", "-c", script}, Image: "none"}}
	must(t, s.Create(t.Context(), program))
	says := func(word string) func(*enov1.Composition) error {
		return func(c *enov1.Composition) error {
			// The composition was read before the object, and may be that of the word before.
			current := c.Status.CurrentSynthesis
			if data, _ := s.delivered(c.Name); data["word"] != word || current == nil || current.ObservedSynthesizerGeneration != program.Generation {
				return fmt.Errorf("%s says %q", c.Name, data["word"])
			}

			return nil
		}
	}
	for _, name := range names {
		c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Spec: enov1.CompositionSpec{Synthesizer: enov1.SynthesizerRef{Name: s.namespace}}}
		must(t, s.Create(t.Context(), c))
	}
	for _, name := range names {
		s.await(name, name+" is delivered", says("one"))
	}
	program.Spec.Command[2] = strings.ReplaceAll(echo, "$WORD", "two")
	must(t, s.Update(t.Context(), program))
	var begun []time.Time
	for _, name := range names {
		begun = append(begun, s.await(name, name+" has followed", says("two")).Status.CurrentSynthesis.Initialized.Time)
	}
	slices.SortFunc(begun, time.Time.Compare)
	for i := range begun[1:] {
		// Times are written in whole seconds.
		if between := begun[i+1].Sub(begun[i]); between < cooldown-time.Second {
			t.Errorf("two of a rollout were begun within %s: %v", between, begun)
		}
	}
}

// TestMismatchedDelivered has two inputs that belong together, of which one is late.
func TestMismatchedDelivered(t *testing.T) {
	server.StartManager(t, delivering("0s")...)
	s := newStage(t)
	program := &enov1.Synthesizer{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Spec: enov1.SynthesizerSpec{
		Command: []string{"sh", "-c", strings.Replace(echo, "cat > /dev/null", `WORD=$(grep -o '"word":"[a-z]*"' | tr -d '":\n')`, 1)}, Image: "none",
		Refs: []enov1.Ref{
			{Key: "left", Resource: enov1.ResourceRef{Version: "v1", Kind: "ConfigMap", Namespace: s.namespace, Name: "left"}},
			{Key: "right", Resource: enov1.ResourceRef{Version: "v1", Kind: "ConfigMap", Namespace: s.namespace, Name: "right"}},
		},
	}}
	must(t, s.Create(t.Context(), program))
	input := func(name, revision, word string) {
		o := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Annotations: map[string]string{enov1.AnnotationRevision: revision}},
			Data:       map[string]string{"word": word},
		}
		if err := s.Update(t.Context(), o); err != nil {
			must(t, s.Create(t.Context(), o))
		}
	}
	input("left", "1", "old")
	input("right", "1", "old")
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "app"}, Spec: enov1.CompositionSpec{Synthesizer: enov1.SynthesizerRef{Name: s.namespace}}}
	must(t, s.Create(t.Context(), c))
	says := func(word string) func(*enov1.Composition) error {
		return func(*enov1.Composition) error {
			if data, _ := s.delivered("app"); data["word"] != word {
				return fmt.Errorf("it reports %q", data["word"])
			}

			return nil
		}
	}
	s.await("app", "the first is delivered", says("wordoldwordold"))
	input("left", "2", "new")
	s.await("app", "it waits for the other", func(c *enov1.Composition) error {
		if c.Status.Simplified == nil || c.Status.Simplified.Status != enov1.StatusMismatchedInputs {
			return fmt.Errorf("it is %+v", c.Status.Simplified)
		}

		return says("wordoldwordold")(c)
	})
	input("right", "2", "new")
	s.await("app", "both are followed, and never one alone", says("wordnewwordnew"))
	for i, before := range s.await("app", "it is there", says("wordnewwordnew")).Status.History {
		t.Errorf("there was a synthesis in between: %d, %s", i, before.UUID)
	}
}
