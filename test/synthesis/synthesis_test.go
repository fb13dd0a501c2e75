package synthesis_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// simplified waits for the word that a composition is told by.
func (s *stage) simplified(name, status, text string) *enov1.Composition {
	s.t.Helper()

	return s.await(name, name+" is "+status, func(c *enov1.Composition) error {
		if st := c.Status.Simplified; st == nil || st.Status != status || !strings.Contains(st.Error, text) {
			return fmt.Errorf("it is not %s %q", status, text)
		}

		return nil
	})
}

// A composition from its first synthesis to its end.
func TestComposition(t *testing.T) {
	server.StartManager(t, managerArgs...)
	s := newStage(t)
	s.synthesizer(paint)
	s.composition("c")
	s.simplified("c", enov1.StatusMissingInputs, `input "in": ConfigMap `+s.namespace+`/in does not exist`)
	s.input("red")
	red := s.painted("c", "red")

	s.deliver(red, func(enov1.Manifest) enov1.ResourceState {
		return enov1.ResourceState{ReconciliationError: new("no quota")}
	})
	c := s.simplified("c", enov1.StatusReconciling, "ConfigMap "+s.namespace+"/out: no quota")
	if r := meta.FindStatusCondition(c.Status.Conditions, "Reconciled"); r.Status != metav1.ConditionFalse || r.Message != "ConfigMap "+s.namespace+"/out: no quota" {
		t.Errorf("the condition is %+v", r)
	}
	s.deliver(red, fine)
	s.simplified("c", enov1.StatusReady, "")

	s.input("blue")
	blue := s.painted("c", "blue")
	if blue.Status.PreviousSynthesis == nil || blue.Status.PreviousSynthesis.UUID != red.Status.CurrentSynthesis.UUID {
		t.Errorf("the previous synthesis is %+v", blue.Status.PreviousSynthesis)
	}

	s.rollBack(blue, red.Status.CurrentSynthesis.UUID)
	back := s.painted("c", "red")
	if current := back.Status.CurrentSynthesis; current.RolledBackTo != red.Status.CurrentSynthesis.UUID || current.UUID == current.RolledBackTo {
		t.Errorf("the current synthesis is %+v", current)
	}
	s.input("green") // is not followed
	s.await("c", "it reports that it is rolled back", func(c *enov1.Composition) error {
		cond := meta.FindStatusCondition(c.Status.Conditions, "Synthesized")
		in := c.Status.InputRevisions
		if cond.Reason != "RolledBack" || len(in) != 1 || in[0].ResourceVersion == blue.Status.InputRevisions[0].ResourceVersion {
			return fmt.Errorf("it reports %s", cond.Reason)
		}
		if c.Status.CurrentSynthesis.UUID != back.Status.CurrentSynthesis.UUID {
			t.Errorf("something was synthesized: %+v", c.Status.CurrentSynthesis)
		}

		return nil
	})
	s.rollBack(blue, "")
	c = s.painted("c", "green")
	if n := len(c.Status.History); n != 2 {
		t.Errorf("the history has %d syntheses", n)
	}
	s.rollBack(c, "unknown")
	s.await("c", "it reports that it knows no such synthesis", func(c *enov1.Composition) error {
		if cond := meta.FindStatusCondition(c.Status.Conditions, "Synthesized"); cond.Reason != "RollbackUnknown" {
			return fmt.Errorf("it reports %s", cond.Reason)
		}

		return nil
	})
	s.rollBack(c, "")
	s.tidy()

	must(t, s.Delete(t.Context(), c))
	c = s.simplified("c", enov1.StatusDeleting, "")
	s.deliver(c, func(enov1.Manifest) enov1.ResourceState { return enov1.ResourceState{Deleted: true} })
	s.gone("c")
}

func fine(enov1.Manifest) enov1.ResourceState {
	return enov1.ResourceState{Reconciled: true, Ready: new(metav1.Now())}
}

// gone waits until a composition and its slices are gone.
func (s *stage) gone(name string) {
	s.t.Helper()
	cluster.Eventually(s.t, name+" is gone", func() error {
		c := &enov1.Composition{}
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, c); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %+v; %w", c.Status.Simplified, errors.Join(err))
		}

		return nil
	})
	s.tidy()
}

// A synthesis that fails reports why, and is retried until it succeeds.
func TestFailures(t *testing.T) {
	m := server.StartManager(t, append(slices.Clone(managerArgs), "--synthesis-timeout=2s")...)
	cases := map[string]struct{ reason, script, want string }{
		"Fails":   {"The end of its output is reported.", `echo no such chart >&2; exit 3`, "exit status 3; its output ends with: no such chart"},
		"Garbage": {"Its output is reported.", `echo Hello`, `it begins with "Hello"`},
		"Nothing": {"Empty output is not a list.", `true`, "the output: it is empty"},
		"Large":   {"There is a limit.", `head -c 11534336 /dev/zero`, "larger than 10 MiB"},
		"Endless": {"There is another.", `exec sleep 3600`, "sh did not end in time and was killed"},
		"Result":  {"The program reports it.", `echo '{"results":[{"message":"bad value","severity":"error"}],"items":[]}'`, "bad value"},
		"Item":    {"An item is bad.", `echo '{"items":[{"apiVersion":"v1","kind":"ConfigMap"}]}'`, "items[0]: metadata.name is missing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			synthesizer := s.synthesizer(tc.script)
			s.input("red")
			s.composition("c")
			s.simplified("c", enov1.StatusSynthesisBackoff, tc.want)
			s.await("c", "it is tried again", func(c *enov1.Composition) error {
				if in := c.Status.InFlightSynthesis; in == nil || in.Attempts < 2 || in.Canceled == nil {
					return fmt.Errorf("%s is not tried again", tc.reason)
				}

				return nil
			})
			synthesizer.Spec.Command[2] = paint
			must(t, s.Update(t.Context(), synthesizer))
			s.painted("c", "red")
			s.tidy()
		})
	}
	cluster.Eventually(t, "failures are counted", func() error {
		if n := m.Sum(t, `eno_synthesis_result_total{result="failure"}`); n < float64(2*len(cases)) {
			return fmt.Errorf("%v failures were counted", n)
		}

		return nil
	})
}

// Dropped objects are deleted, and stay in the slices until then.
func TestTombstones(t *testing.T) {
	server.StartManager(t, managerArgs...)
	s := newStage(t)
	s.synthesizer(strings.Replace(paint, `"items":[`, `"items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c-x"},"data":{"all":"kept"}},`, 1))
	s.input("red")
	s.composition("c")
	s.painted("c", "red")

	synthesizer := &enov1.Synthesizer{}
	must(t, s.Get(t.Context(), client.ObjectKey{Name: s.namespace}, synthesizer))
	synthesizer.Spec.Command[2] = paint
	must(t, s.Update(t.Context(), synthesizer))
	// It is whole, settings of its deletion included: the cache has less of it.
	tombstone := enov1.Manifest{Manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c-x"},"data":{"all":"kept"}}`, Deleted: true}
	has := func(want bool) func(c *enov1.Composition) error {
		return func(c *enov1.Composition) error {
			all, err := s.manifests(c.Status.CurrentSynthesis)
			if err != nil {
				return err
			}
			if slices.Contains(all, tombstone) != want {
				return fmt.Errorf("the manifests are %+v", all)
			}

			return nil
		}
	}
	s.await("c", "the dropped object is a tombstone", func(c *enov1.Composition) error {
		tombstone.DroppedBy = c.Status.CurrentSynthesis.UUID // later syntheses keep it

		return has(true)(c)
	})

	s.input("blue")
	c := s.painted("c", "blue")
	must(t, has(true)(c)) // no client deleted it yet

	s.deliver(c, func(m enov1.Manifest) enov1.ResourceState {
		if m.Deleted {
			return enov1.ResourceState{Deleted: true}
		}

		return fine(m)
	})
	s.simplified("c", enov1.StatusReady, "")
	s.input("green")
	c = s.painted("c", "green")
	must(t, has(false)(c))
}

// A slice that another client takes away is created again.
func TestLostSlice(t *testing.T) {
	server.StartManager(t, managerArgs...)
	s := newStage(t)
	s.synthesizer(paint)
	s.input("red")
	s.composition("c")
	c := s.painted("c", "red")
	slice := &enov1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: c.Status.CurrentSynthesis.ResourceSlices[0].Name}}
	must(t, s.Patch(t.Context(), slice, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
	must(t, s.Delete(t.Context(), slice))
	s.await("c", "it is synthesized again", func(now *enov1.Composition) error {
		if now.Status.CurrentSynthesis.UUID == c.Status.CurrentSynthesis.UUID {
			return errors.New("the current synthesis is still the old one")
		}

		return nil
	})
	s.painted("c", "red")
}

// Others come first, and go last.
func TestDependencies(t *testing.T) {
	server.StartManager(t, managerArgs...)
	s := newStage(t)
	s.synthesizer(paint)
	s.input("red")
	second := &enov1.Composition{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "second"},
		Spec: enov1.CompositionSpec{
			Synthesizer: enov1.SynthesizerRef{Name: s.namespace}, DependsOn: []enov1.CompositionDependency{{Name: "first"}},
			Bindings: []enov1.Binding{{Key: "in", Resource: enov1.ResourceBinding{Namespace: s.namespace, Name: "in"}}},
		},
	}
	must(t, s.Create(t.Context(), second))
	s.simplified("second", enov1.StatusWaitingOnDependencies, enov1.ReasonDependencyNotFound)
	first := s.composition("first")
	s.deliver(s.painted("first", "red"), fine)
	s.deliver(s.painted("second", "red"), fine)

	must(t, s.Delete(t.Context(), first))
	if c := s.simplified("first", enov1.StatusWaitingOnDependents, ""); c.DeletionStarted() {
		t.Errorf("delivery may delete the objects of first while second exists: %+v", c.Status.CurrentSynthesis)
	}
	deleted := func(enov1.Manifest) enov1.ResourceState { return enov1.ResourceState{Deleted: true} }
	must(t, s.Delete(t.Context(), second))
	for _, name := range []string{"second", "first"} {
		s.deliver(s.await(name, "the objects of "+name+" may be deleted", func(c *enov1.Composition) error {
			if !c.DeletionStarted() {
				return errors.New("delivery was not reported")
			}

			return nil
		}), deleted)
		s.gone(name)
	}
}

// Nothing is run that no client allowed.
func TestRefusal(t *testing.T) {
	server.StartManager(t, "--controllers=synthesis", "--webhooks=false")
	s := newStage(t)
	s.synthesizer(paint)
	s.input("red")
	s.composition("c")
	c := s.simplified("c", enov1.StatusPendingSynthesis, "--local-synthesizers")
	if cond := meta.FindStatusCondition(c.Status.Conditions, "Synthesized"); cond.Reason != "NoExecutor" {
		t.Errorf("the condition is %+v", cond)
	}
}

// A promoted synthesis is counted and reported as that, however soon the promotion is seen.
func TestCounted(t *testing.T) {
	m := server.StartManager(t, managerArgs...)
	s := newStage(t)
	s.synthesizer(paint)
	s.input("c0")
	s.composition("c")
	const rounds = 10
	for n := range rounds {
		color := fmt.Sprintf("c%d", n)
		s.input(color)
		s.painted("c", color)
	}
	cluster.Eventually(t, "all are counted", func() error {
		begun, good := m.Sum(t, "eno_syntheses_total"), m.Sum(t, `eno_synthesis_result_total{result="success"}`)
		if begun < rounds || begun != good {
			return fmt.Errorf("%v were begun, and %v succeeded", begun, good)
		}

		return nil
	})
}
