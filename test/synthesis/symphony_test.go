package synthesis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// echo makes a ConfigMap with the name of its Synthesizer, and the word that it is reported.
const echo = `cat > /dev/null
printf '{"kind":"ResourceList","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s","namespace":"%s"},"data":{"word":"%s"}}]}' "$COMPOSITION_NAME" "$COMPOSITION_NAMESPACE" "$WORD"`

// synthesizers makes programs with these names, before which the stage puts its
// own: they are of no namespace.
func (s *stage) synthesizers(names ...string) {
	s.t.Helper()
	for _, name := range names {
		o := &enov1.Synthesizer{
			ObjectMeta: metav1.ObjectMeta{Name: s.full(name)},
			Spec:       enov1.SynthesizerSpec{Command: []string{"sh", "-c", echo}, Image: "none"},
		}
		must(s.t, s.Create(s.t.Context(), o))
		s.t.Cleanup(func() { _ = s.Delete(context.Background(), o) })
	}
}

func (s *stage) full(name string) string { return s.namespace + "-" + name }

func (s *stage) variation(name string, on ...string) enov1.Variation {
	v := enov1.Variation{Synthesizer: enov1.SynthesizerRef{Name: s.full(name)}}
	for _, d := range on {
		v.DependsOn = append(v.DependsOn, enov1.VariationDependency{Synthesizer: s.full(d)})
	}

	return v
}

func (s *stage) symphony(name string, variations ...enov1.Variation) *enov1.Symphony {
	s.t.Helper()
	o := &enov1.Symphony{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Spec: enov1.SymphonySpec{Variations: variations}}
	must(s.t, s.Create(s.t.Context(), o))

	return o
}

// respec changes the spec of a Symphony, whichever other client writes to it.
func (s *stage) respec(name string, change func(*enov1.SymphonySpec)) {
	s.t.Helper()
	cluster.Eventually(s.t, name+" is changed", func() error {
		o := &enov1.Symphony{}
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, o); err != nil {
			return err
		}
		change(&o.Spec)

		return s.Update(s.t.Context(), o)
	})
}

// hear waits until a Symphony is as it should be.
func (s *stage) hear(name, what string, condition func(*enov1.Symphony) error) *enov1.Symphony {
	s.t.Helper()
	o := &enov1.Symphony{}
	cluster.Eventually(s.t, what, func() error {
		*o = enov1.Symphony{}
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, o); err != nil {
			return err
		}
		if err := condition(o); err != nil {
			return fmt.Errorf("%w; the status is %+v", err, o.Status)
		}

		return nil
	})

	return o
}

// condition waits for what a Symphony reports of its spec as it is.
func (s *stage) condition(name, reason, text string) *enov1.Symphony {
	s.t.Helper()

	return s.hear(name, name+" says "+reason, func(o *enov1.Symphony) error {
		c := meta.FindStatusCondition(o.Status.Conditions, "SymphonyReady")
		if c == nil || c.Reason != reason || !strings.Contains(c.Message, text) || o.Status.ObservedGeneration != o.Generation || c.ObservedGeneration != o.Generation {
			return fmt.Errorf("it does not contain %s %q", reason, text)
		}
		if ready := o.Status.Ready != nil; ready != (c.Status == metav1.ConditionTrue) {
			return fmt.Errorf("it is ready: %t", ready)
		}

		return nil
	})
}

// members are the compositions of a Symphony that no client deleted, by the short
// names of their synthesizers.
func (s *stage) members(o *enov1.Symphony) (map[string]*enov1.Composition, error) {
	list := &enov1.CompositionList{}
	if err := s.List(s.t.Context(), list, client.InNamespace(s.namespace)); err != nil {
		return nil, err
	}
	all := map[string]*enov1.Composition{}
	for i := range list.Items {
		c := &list.Items[i]
		if !metav1.IsControlledBy(c, o) || c.DeletionTimestamp != nil {
			continue
		}
		name := strings.TrimPrefix(c.Spec.Synthesizer.Name, s.namespace+"-")
		if all[name] != nil {
			return nil, fmt.Errorf("%s has two compositions", name)
		}
		all[name] = c
	}

	return all, nil
}

// member waits for the composition of a variation.
func (s *stage) member(o *enov1.Symphony, name string) *enov1.Composition {
	s.t.Helper()
	var c *enov1.Composition
	cluster.Eventually(s.t, name+" has a composition", func() error {
		all, err := s.members(o)
		if err != nil {
			return err
		}
		if c = all[name]; c == nil {
			return errors.New("it has not")
		}

		return nil
	})

	return c
}

// spoken waits until the current synthesis of a composition says a word, and has
// it delivered.
func (s *stage) spoken(name, word string) {
	s.t.Helper()
	c := s.await(name, name+" says "+word, func(c *enov1.Composition) error {
		manifests, err := s.manifests(c.Status.CurrentSynthesis)
		if err != nil {
			return err
		}
		if c.Status.CurrentSynthesis.ObservedCompositionGeneration != c.Generation || !strings.Contains(manifests[0].Manifest, fmt.Sprintf(`"word":%q`, word)) {
			return fmt.Errorf("the manifests are %+v", manifests)
		}

		return nil
	})
	s.deliver(c, fine)
}

func (s *stage) silent(o *enov1.Symphony) {
	s.t.Helper()
	cluster.Eventually(s.t, o.Name+" is gone", func() error {
		if err := s.Get(s.t.Context(), client.ObjectKeyFromObject(o), &enov1.Symphony{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", errors.Join(err))
		}

		return nil
	})
}

// A Symphony from its first composition to its end.
func TestSymphony(t *testing.T) {
	server.StartManager(t, managerArgs...)
	s := newStage(t)
	s.synthesizers("a", "b", "c")
	first, second, third := s.variation("a", "b"), s.variation("b"), s.variation("c")
	third.Optional = true
	third.Synthesizer.Name = s.full("none") // it will never be ready
	first.SynthesisEnv = []enov1.EnvVar{{Name: "WORD", Value: "mine"}}
	o := s.symphony("s", first, second, third)
	s.respec("s", func(spec *enov1.SymphonySpec) { spec.SynthesisEnv = []enov1.EnvVar{{Name: "WORD", Value: "all"}} })

	b := s.member(o, "b")
	a := s.member(o, "a")
	if want := []enov1.CompositionDependency{{Name: b.Name, Namespace: s.namespace}}; !slices.Equal(a.Spec.DependsOn, want) || !strings.HasPrefix(a.Name, s.full("a")+"-") {
		t.Errorf("%s depends on %+v", a.Name, a.Spec.DependsOn)
	}
	if a.CreationTimestamp.Before(&b.CreationTimestamp) {
		t.Error("a was there before b")
	}
	s.condition("s", "CompositionsNotReady", "Composition "+s.namespace+"/"+b.Name)
	s.spoken(b.Name, "all")
	s.condition("s", "CompositionsNotReady", "Composition "+s.namespace+"/"+a.Name)
	s.spoken(a.Name, "mine")
	ready := s.condition("s", "Ready", "all 2 compositions")
	if st := ready.Status; st.Synthesized == nil || st.Reconciled == nil {
		t.Errorf("the status is %+v", st)
	}

	// A changed Symphony is not ready until its compositions are, and reports what is stuck.
	s.respec("s", func(spec *enov1.SymphonySpec) { spec.Variations[0].SynthesisEnv[0].Value = "new" })
	s.condition("s", "CompositionsNotReady", "Composition "+s.namespace+"/"+a.Name)
	c := s.await(a.Name, "it is synthesized again", func(c *enov1.Composition) error {
		if c.Generation == a.Generation || c.Status.CurrentSynthesis.ObservedCompositionGeneration != c.Generation {
			return errors.New("it is not")
		}

		return nil
	})
	s.deliver(c, func(enov1.Manifest) enov1.ResourceState {
		return enov1.ResourceState{ReconciliationError: new("no quota")}
	})
	s.condition("s", "CompositionsNotReady", a.Name+": Reconciling: ConfigMap "+s.namespace+"/"+a.Name+": no quota")
	s.spoken(a.Name, "new")
	s.condition("s", "Ready", "")
	if now := s.member(o, "b"); now.Generation != b.Generation || now.UID != b.UID {
		t.Errorf("b was changed: %+v", now.Spec)
	}

	// A variation is added, and one is removed.
	s.respec("s", func(spec *enov1.SymphonySpec) {
		spec.Variations = []enov1.Variation{s.variation("b", "c"), s.variation("c")}
	})
	s.spoken(s.member(o, "c").Name, "all")
	s.await(b.Name, "it depends on c", func(c *enov1.Composition) error { // or what is spoken is what was before
		if len(c.Spec.DependsOn) != 1 {
			return errors.New("it does not")
		}

		return nil
	})
	s.spoken(b.Name, "all")
	s.deliver(s.simplified(a.Name, enov1.StatusDeleting, ""), func(enov1.Manifest) enov1.ResourceState { return enov1.ResourceState{Deleted: true} })
	s.gone(a.Name)
	s.condition("s", "Ready", "")
	if now := s.member(o, "b"); now.UID != b.UID || now.Spec.DependsOn[0].Name != s.member(o, "c").Name {
		t.Errorf("b is %+v", now.Spec)
	}
}

// Labels and annotations come, move and go.
func TestSymphonyAnnotations(t *testing.T) {
	server.StartManager(t, managerArgs...)
	s := newStage(t)
	names := []string{"a", "b", "c"}
	var variations []enov1.Variation
	for _, name := range names {
		v := s.variation(name)
		v.Annotations, v.Labels = map[string]string{"lead": ""}, map[string]string{"voice": name}
		variations = append(variations, v)
	}
	o := s.symphony("s", variations...)
	for _, lead := range []string{"a", "c", "b", "none", "a"} {
		s.respec("s", func(spec *enov1.SymphonySpec) {
			for i, name := range names {
				spec.Variations[i].Annotations["lead"] = ""
				if name == lead {
					spec.Variations[i].Annotations["lead"] = "true"
				}
			}
		})
		cluster.Eventually(t, lead+" leads", func() error {
			all, err := s.members(o)
			if err != nil {
				return err
			}
			var have []string
			for name, c := range all {
				if _, ok := c.Annotations["lead"]; ok {
					have = append(have, name)
				}
				if c.Labels["voice"] != name {
					return fmt.Errorf("%s has the labels %v", name, c.Labels)
				}
			}
			if len(have) > 1 {
				t.Errorf("several lead: %v", have)
			}
			if leads := slices.Contains(have, lead); len(all) != len(names) || !leads && lead != "none" || leads != (len(have) > 0) {
				return fmt.Errorf("these lead: %v", have)
			}

			return nil
		})
	}
}

// An invalid Symphony reports why, and nothing is lost by it.
func TestSymphonyRejected(t *testing.T) {
	server.StartManager(t, managerArgs...)
	s := newStage(t)
	o := s.symphony("s", s.variation("a"), s.variation("b"))
	a, b := s.member(o, "a"), s.member(o, "b")
	for _, tc := range []struct {
		reason, text string
		variations   []enov1.Variation
	}{
		{"DuplicateSynthesizer", s.full("a"), []enov1.Variation{s.variation("a"), s.variation("a")}},
		{"UnknownDependency", s.full("b"), []enov1.Variation{s.variation("a", "b")}},
		{"CircularDependency", s.full("a") + " → " + s.full("c") + " → " + s.full("a"), []enov1.Variation{s.variation("a", "c"), s.variation("c", "a")}},
	} {
		s.respec("s", func(spec *enov1.SymphonySpec) { spec.Variations = tc.variations })
		s.condition("s", tc.reason, tc.text)
	}
	bad := s.variation("c")
	bad.Labels = map[string]string{"voice": "not a label!"}
	s.respec("s", func(spec *enov1.SymphonySpec) {
		spec.Variations = []enov1.Variation{s.variation("a"), s.variation("b"), bad}
	})
	o = s.condition("s", "CompositionRefused", `cannot create the composition of variation "`+s.full("c")+`": metadata.labels: Invalid value`)
	o.Annotations = map[string]string{"look": "again"}
	must(t, s.Update(t.Context(), o)) // under the version: no client writes the same twice
	s.condition("s", "CompositionRefused", "")
	s.respec("s", func(spec *enov1.SymphonySpec) {
		spec.Variations = []enov1.Variation{s.variation("a", "b"), s.variation("b")}
	})
	s.condition("s", "CompositionsNotReady", "")
	if now := s.member(o, "b"); now.UID != b.UID {
		t.Error("b was lost")
	}
	s.await(a.Name, "it depends on b", func(c *enov1.Composition) error {
		if len(c.Spec.DependsOn) != 1 || c.Spec.DependsOn[0].Name != b.Name {
			return fmt.Errorf("it depends on %+v", c.Spec.DependsOn)
		}

		return nil
	})
}

// A user deletes a composition that another one depends on: there is a new one, and neither waits
// for the other.
func TestSymphonyMemberDeleted(t *testing.T) {
	server.StartManager(t, managerArgs...)
	s := newStage(t)
	s.synthesizers("a", "b")
	o := s.symphony("s", s.variation("a"), s.variation("b", "a"))
	a := s.member(o, "a")
	s.spoken(a.Name, "")
	s.spoken(s.member(o, "b").Name, "")
	s.condition("s", "Ready", "")
	must(t, s.Delete(t.Context(), a))
	cluster.Eventually(t, "there is another one", func() error {
		all, err := s.members(o)
		if err != nil {
			return err
		}
		if c := all["a"]; c == nil || c.UID == a.UID || all["b"].Spec.DependsOn[0].Name != c.Name {
			return errors.New("there is not")
		}

		return nil
	})
	s.deliver(s.simplified(a.Name, enov1.StatusDeleting, ""), func(enov1.Manifest) enov1.ResourceState { return enov1.ResourceState{Deleted: true} })
	s.gone(a.Name)
}

// A Symphony ends, and leaves the objects where they are: no client has to report that they are
// gone.
func TestSymphonyDeleted(t *testing.T) {
	server.StartManager(t, managerArgs...)
	s := newStage(t)
	s.synthesizers("a", "b")
	o := s.symphony("s", s.variation("a"), s.variation("b", "a"), s.variation("missing"))
	a := s.member(o, "a")
	s.spoken(a.Name, "")
	b := s.member(o, "b")
	s.spoken(b.Name, "")

	// Whoever else holds a composition can see the label.
	held := s.member(o, "b")
	must(t, s.Patch(t.Context(), held, client.RawPatch("application/json-patch+json", []byte(`[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/hold"}]`))))
	must(t, s.Delete(t.Context(), o))
	s.gone(a.Name)
	s.condition("s", "Deleting", "Composition "+s.namespace+"/"+b.Name)
	c := s.await(b.Name, "it is reported", func(c *enov1.Composition) error {
		if c.Labels[enov1.LabelSymphonyDeleting] != "true" || c.DeletionTimestamp == nil || slices.Contains(c.Finalizers, enov1.Finalizer) {
			return fmt.Errorf("it is %+v", c.ObjectMeta)
		}

		return nil
	})
	must(t, s.Patch(t.Context(), c, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
	s.gone(b.Name)
	s.silent(o)
}

// A composition that asks for it is deleted without its objects when its Symphony was taken away by
// force. One that does not ask waits for them.
func TestSymphonyGone(t *testing.T) {
	m := server.LaunchManager(t, managerArgs...)
	must(t, m.Await())
	s := newStage(t)
	s.synthesizers("a", "b")
	asks := s.variation("a")
	asks.Annotations = map[string]string{enov1.AnnotationForceDeleteWhenSymphonyGone: "true"}
	o := s.symphony("s", asks, s.variation("b"))
	a, b := s.member(o, "a"), s.member(o, "b")
	s.spoken(a.Name, "")
	s.spoken(b.Name, "")
	m.Kill()
	must(t, s.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
	must(t, s.Delete(t.Context(), o))
	s.silent(o)
	// A garbage collector may have been faster.
	must(t, errors.Join(client.IgnoreNotFound(s.Delete(t.Context(), a)), client.IgnoreNotFound(s.Delete(t.Context(), b))))
	server.StartManager(t, managerArgs...)
	t.Cleanup(func() { // before this manager ends
		_ = s.Patch(context.Background(), b, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"eno.azure.io/deletion-strategy":"orphan"}}}`)))
	})
	s.gone(a.Name)
	s.deliver(s.simplified(b.Name, enov1.StatusDeleting, ""), func(enov1.Manifest) enov1.ResourceState { return enov1.ResourceState{Deleted: true} })
	s.gone(b.Name)
}

// Two managers that know nothing of each other end up with one composition for
// each variation, whatever happens during that time.
func TestSymphonyTwoManagers(t *testing.T) {
	server.StartManager(t, managerArgs...)
	server.StartManager(t, managerArgs...)
	s := newStage(t)
	r := rand.New(rand.NewPCG(1, 2))
	const symphonies, changes = 4, 6
	var all []*enov1.Symphony
	for i := range symphonies {
		all = append(all, s.symphony(fmt.Sprint("s", i), s.variation("a"), s.variation("b", "a")))
	}
	last := make([][]enov1.Variation, symphonies)
	for range changes {
		for i, o := range all {
			names := []string{"a", "b", "c", "d", "e"}
			r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			var variations []enov1.Variation
			for n, name := range names[:1+r.IntN(len(names))] {
				variations = append(variations, s.variation(name, names[:r.IntN(n+1)]...))
			}
			last[i] = variations
			s.respec(o.Name, func(spec *enov1.SymphonySpec) { spec.Variations = variations })
		}
	}
	for i, o := range all {
		s.settled(o, last[i])
	}
}

// settled waits until a Symphony has the compositions of exactly these variations.
func (s *stage) settled(o *enov1.Symphony, variations []enov1.Variation) {
	s.t.Helper()
	short := func(name string) string { return strings.TrimPrefix(name, s.namespace+"-") }
	s.hear(o.Name, o.Name+" has settled", func(*enov1.Symphony) error {
		all, err := s.members(o)
		if err != nil {
			return err
		}
		if len(all) != len(variations) {
			return fmt.Errorf("%d variations have %d compositions", len(variations), len(all))
		}
		for _, v := range variations {
			c := all[short(v.Synthesizer.Name)]
			if c == nil || len(c.Spec.DependsOn) != len(v.DependsOn) {
				return fmt.Errorf("%s is %+v", v.Synthesizer.Name, c)
			}
			for i, d := range v.DependsOn {
				if on := all[short(d.Synthesizer)]; on == nil || c.Spec.DependsOn[i].Name != on.Name {
					return fmt.Errorf("%s depends on %+v", c.Name, c.Spec.DependsOn)
				}
			}
		}

		return nil
	})
}

// Of two compositions for one variation the older one stays.
func TestSymphonyDuplicate(t *testing.T) {
	server.StartManager(t, managerArgs...)
	s := newStage(t)
	s.synthesizers("a")
	o := s.symphony("s", s.variation("a"))
	a := s.member(o, "a")
	s.spoken(a.Name, "") // so that a second has passed, or the names decide
	twin := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.full("a") + "-zzzzzz"}, Spec: *a.Spec.DeepCopy()}
	// It may be synthesized before it is deleted, and no client reports here that its objects are
	// gone.
	twin.Annotations = map[string]string{enov1.AnnotationDeletionStrategy: enov1.DeletionOrphan}
	must(t, controllerutil.SetControllerReference(o, twin, s.Scheme()))
	must(t, s.Create(t.Context(), twin))
	s.gone(twin.Name)
	if now := s.member(o, "a"); now.UID != a.UID {
		t.Error("the older one is gone")
	}
	s.condition("s", "Ready", "")
}

// The example does what its comment describes.
func TestSymphonyExample(t *testing.T) {
	server.StartManager(t, managerArgs...)
	s := newStage(t)
	file := filepath.Join(cluster.Root(), "examples", "symphony.yaml")
	if out, errs, code := server.Arbor(t, "kubectl", "apply", "-f", file); code != 0 {
		t.Fatalf("%s%s", out, errs)
	}
	s.namespace = "default"
	o := s.hear("house", "it is looked at", func(*enov1.Symphony) error { return nil })
	for _, want := range []struct{ synthesizer, text string }{{"house-floor", `"made-of":"stone"`}, {"house-walls", `"made-of":"brick","painted":"green"`}} {
		c := s.await(s.member(o, want.synthesizer).Name, want.synthesizer+" is synthesized", func(c *enov1.Composition) error {
			all, err := s.manifests(c.Status.CurrentSynthesis)
			if err != nil {
				return err
			}
			if len(all) != 1 || !strings.Contains(all[0].Manifest, want.text) {
				return fmt.Errorf("the manifests are %+v", all)
			}

			return nil
		})
		s.deliver(c, fine)
	}
	s.condition("house", "Ready", "all 2 compositions that count are ready")
	if out, errs, code := server.Arbor(t, "kubectl", "delete", "-f", file); code != 0 {
		t.Errorf("%s%s", out, errs)
	}
}
