package eno_test

import (
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// variations returns a Symphony of the programs of some names.
func (e *env) variations(names ...string) []enov1.Variation {
	var all []enov1.Variation
	for _, name := range names {
		all = append(all, enov1.Variation{Synthesizer: enov1.SynthesizerRef{Name: e.namespace + "-" + name}})
	}

	return all
}

// compositions waits until the compositions of a Symphony are those of some programs, all
// of them ready.
func (e *env) compositions(names ...string) {
	e.Helper()
	cluster.Eventually(e, fmt.Sprint("the compositions are those of ", names), func() error {
		list := &enov1.CompositionList{}
		must(e, e.List(e.Context(), list, client.InNamespace(e.namespace)))
		have := map[string]bool{}
		for i := range list.Items {
			c := &list.Items[i]
			have[c.Spec.Synthesizer.Name] = c.Status.CurrentSynthesis != nil && c.Status.CurrentSynthesis.Ready != nil
		}
		for _, name := range names {
			if !have[e.namespace+"-"+name] {
				return fmt.Errorf("%s is not ready: %v", name, have)
			}
		}
		if len(have) != len(names) {
			return fmt.Errorf("there are other ones: %v", have)
		}

		return nil
	})
}

// TestRenamedSynthesizer has a variation use another Synthesizer, which prints the same
// objects: they move to the new composition and are never deleted.
func TestRenamedSynthesizer(t *testing.T) {
	e := newEnv(t)
	e.program("blue", e.output(configMap("data", "blue"), configMap("dropped", "1")))
	s := &enov1.Symphony{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "s"},
		Spec:       enov1.SymphonySpec{Variations: e.variations("blue")},
	}
	must(t, e.Create(t.Context(), s))
	e.compositions("blue")
	uid := e.config("data").UID
	respec := func(names ...string) {
		t.Helper()
		must(t, e.Get(t.Context(), client.ObjectKeyFromObject(s), s))
		change := s.DeepCopy()
		change.Spec.Variations = e.variations(names...)
		must(t, e.Patch(t.Context(), change, client.MergeFrom(s)))
	}

	// There is no such Synthesizer yet: everything stays as it is.
	respec("green")
	cluster.Eventually(t, "the Symphony reports what it waits for", func() error {
		must(t, e.Get(t.Context(), client.ObjectKeyFromObject(s), s))
		for _, c := range s.Status.Conditions {
			if c.ObservedGeneration == s.Generation && c.Status == metav1.ConditionFalse {
				return nil
			}
		}

		return errors.New("it does not")
	})
	e.exist("data", "dropped")

	e.program("green", e.output(configMap("data", "green")))
	e.compositions("green")
	e.absent("dropped")
	e.value("data", "green")
	if now := e.config("data").UID; now != uid {
		t.Errorf("the object was deleted and created again: its uid was %s and is %s", uid, now)
	}

	// A variation that is only dropped is deleted at once.
	e.program("red", e.output(configMap("red", "1")))
	respec("green", "red")
	e.compositions("green", "red")
	respec("red")
	e.compositions("red")
	e.absent("data")
	must(t, e.Patch(t.Context(), s, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	must(t, e.Delete(t.Context(), s))
}
