package delivery_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// bare is a manifest of a single field, which another client can take as a whole.
func bare(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\ndata: {a: mine}\nmetadata: {name: " + name + "}\n"
}

// steal takes every field of an object, while no client looks.
func (w *world) steal(name string) {
	w.Helper()
	w.merge(w.config(name), `{data: {a: stolen}}`)
	for _, e := range w.config(name).GetManagedFields() {
		if e.Manager == eno {
			w.Fatalf("%s still has a field of %s", name, eno)
		}
	}
}

// remembered waits until the slice reports which objects were delivered.
func (w *world) remembered() {
	w.Helper()
	w.until("it is written down what was delivered", func(s enov1.ResourceState) bool { return s.UID != "" })
}

// TestStolenWhileDead has another client take every field of an object while there is no manager,
// so that nothing in it identifies its manager.
func TestStolenWhileDead(t *testing.T) {
	w := newWorld(t)
	m := start(t)
	w.synthesize(bare("drifts"), bare("dropped"), bare("remade"), bare("stays"))
	w.ready()
	w.remembered()
	m.Kill()

	// It is put right.
	w.steal("drifts")
	m = start(t)
	w.eventually("drifts", "a", "mine")
	w.ready()
	m.Kill()

	// It is deleted, also if its tombstone was carried over. What was created again by
	// another client is theirs.
	w.steal("dropped")
	must(t, w.c.Delete(t.Context(), w.config("remade")))
	theirs := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": w.ns, "name": "remade"}}}
	must(t, w.c.Create(t.Context(), theirs, client.FieldOwner(other)))
	all := w.last
	w.synthesize(bare("stays"), bare("drifts"))
	w.history()
	w.last = all
	w.synthesize(bare("stays"), bare("drifts"))
	m = start(t)
	w.until("everything is done", func(s enov1.ResourceState) bool { return s.Reconciled })
	if w.config("dropped") != nil {
		t.Error("a delivered object was left behind")
	}
	if w.config("remade") == nil {
		t.Error("an object that another client created again was deleted")
	}
	m.Kill()

	// And it is deleted with the composition.
	w.steal("stays")
	w.remove()
	start(t)
	w.deleted()
	if w.config("stays") != nil || w.config("drifts") != nil {
		t.Error("it was left behind with the composition")
	}
}

// history has the previous synthesis pass on into the history with the next one.
func (w *world) history() {
	w.Helper()
	o := w.composition()
	o.Status.History = []enov1.Synthesis{*o.Status.PreviousSynthesis}
	must(w, w.c.Status().Update(w.Context(), o))
}

// in is a manifest in the namespace of another world.
func (w *world) in(text string) string {
	return strings.Replace(text, "metadata: {", "metadata: {namespace: "+w.ns+", ", 1)
}

// TestMovedWhileDead has an object that another composition has when its own composition releases
// it, and managers that do not remember either.
func TestMovedWhileDead(t *testing.T) {
	w, heir := newWorld(t), newWorld(t)
	m := start(t)
	w.synthesize(bare("moved"), bare("kept"))
	w.ready()
	w.remembered()
	heir.synthesize(w.in(bare("moved")))
	heir.ready()
	uid := w.config("moved").GetUID()
	m.Kill()

	// Many other compositions must be read first, so that the heir is not the first of all.
	w.synthesize(bare("kept"))
	for range 10 {
		newWorld(t).synthesize(bare("filler"))
	}
	m = start(t)
	w.until("everything is done", func(s enov1.ResourceState) bool { return s.Reconciled })
	if o := w.config("moved"); o == nil || o.GetUID() != uid {
		t.Fatal("an object of another composition was deleted")
	}
	m.Kill()

	// A composition that cannot be read may want it as well.
	heir.hide()
	w.remove()
	start(t)
	w.fails("ConfigMap", "kept", "it is not deleted before it is known whether composition "+heir.name.String()+" wants it")
	if w.config("kept") == nil {
		t.Fatal("it was deleted before all was known")
	}
	heir.synthesize(w.in(bare("kept")))
	w.deleted()
	if w.config("kept") == nil {
		t.Error("an object of another composition's synthesis was deleted")
	}
	cluster.Eventually(t, "it belongs to the other", func() error {
		if s := heir.states()["ConfigMap "+w.ns+"/kept"]; !s.Reconciled {
			return errors.New(describe(s))
		}

		return nil
	})
}

// hide removes the slices of the current synthesis.
func (w *world) hide() {
	w.Helper()
	for _, ref := range w.composition().Status.CurrentSynthesis.ResourceSlices {
		s := &enov1.ResourceSlice{}
		s.Namespace, s.Name = w.ns, ref.Name
		must(w, w.c.Delete(w.Context(), s))
	}
}
