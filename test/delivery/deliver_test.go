package delivery_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// TestDeliver is the whole life of a composition.
func TestDeliver(t *testing.T) {
	w := newWorld(t)
	w.perSlice = 2
	m := start(t)

	w.synthesize(configMap("one", "1", "eno.azure.io/reconcile-interval", "1h"), configMap("two", "2"), configMap("three", "3"))
	w.ready()
	one := w.config("one")
	if a := one.GetAnnotations(); len(a) != 1 || a["mine"] != "stays" {
		t.Errorf("annotations: %v", a)
	}
	two := w.config("two")

	w.synthesize(configMap("one", "changed"), configMap("two", "2"), configMap("four", "4"))
	w.ready()
	if got := w.value("one", "a"); got != "changed" {
		t.Errorf("it was not changed: %q", got)
	}
	if now := w.config("two"); now.GetResourceVersion() != two.GetResourceVersion() || now.GetUID() != two.GetUID() {
		t.Error("an unchanged object was written")
	}
	if w.config("three") != nil {
		t.Error("a dropped object still exists")
	}
	if s := w.state("ConfigMap", "three"); !s.Deleted || !s.Reconciled {
		t.Errorf("the tombstone: %s", describe(s))
	}

	w.remove()
	w.deleted()
	for _, name := range []string{"one", "two", "four"} {
		if w.config(name) != nil {
			t.Errorf("%s has outlived its composition", name)
		}
	}
	if got := m.Sum(t, "eno_reconciliation_actions_total{action=\"delete\"}"); got != 4 {
		t.Errorf("%v deletions were counted", got)
	}
	if got := m.Sum(t, "eno_reconciliation_actions_total{action=\"apply\"}"); got != 5 {
		t.Errorf("%v applies were counted, want one for each change", got)
	}
}

// TestRestart has another process go on: what is ready stays so, and what is not
// there is made.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	first := start(t)
	w.synthesize(configMap("one", "1"), configMap("two", "2"))
	w.ready()
	before := w.states()
	first.Kill()
	must(t, w.c.Delete(t.Context(), w.config("two")))
	w.merge(w.config("one"), `{data: {a: stolen}}`)
	start(t)
	w.eventually("two", "a", "2")
	w.eventually("one", "a", "1")
	if now := w.state("ConfigMap", "one"); !now.Ready.Equal(before["ConfigMap "+w.ns+"/one"].Ready) {
		t.Error("it was ready before, and is ready since another time now")
	}
}

// TestReadiness has groups wait for each other, in an order that the manifests do
// not have.
func TestReadiness(t *testing.T) {
	w := newWorld(t)
	start(t, "--remote-kubeconfig="+server.Kubeconfig) // the same cluster, by another way
	group := func(n int) []string { return []string{enov1.AnnotationReadinessGroup, strconv.Itoa(n)} }
	first := append(group(1), enov1.AnnotationReadiness, "self.data.go == 'yes'")
	w.synthesize(configMap("third", "3", group(7)...), configMap("second", "2", group(2)...), configMap("first", "1", first...))
	cluster.Eventually(t, "the first is there", func() error {
		if s := w.state("ConfigMap", "first"); !s.Reconciled {
			return errors.New(describe(s))
		}

		return nil
	})
	if s := w.state("ConfigMap", "first"); s.Ready != nil || w.config("second") != nil || w.config("third") != nil {
		t.Errorf("the rest did not wait: %s", describe(s))
	}
	w.merge(w.config("first"), `{data: {"go": "yes"}}`)
	w.ready()
	second, third := w.config("second"), w.config("third")
	if second == nil || third == nil || third.GetCreationTimestamp().Time.Before(second.GetCreationTimestamp().Time) {
		t.Error("the third was made before the second")
	}
	// An object that is ready stays ready.
	w.merge(w.config("first"), `{data: {"go": "no"}}`)
	w.synthesize(configMap("first", "1", group(1)...), configMap("third", "3", group(7)...))
	w.ready()
}

const (
	definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: trees.delivered.example.com, annotations: {eno.azure.io/readiness-group: "5"}}
spec:
  group: delivered.example.com
  names: {kind: Tree, plural: trees, singular: tree, listKind: TreeList}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`
	tree = `
apiVersion: delivered.example.com/v1
kind: Tree
metadata: {name: oak}
spec: {height: 4}
`
)

// TestCRDWithObject has a CRD and an object of it in one synthesis, with the
// CRD in a later group than the object.
func TestCRDWithObject(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.synthesize(tree, definition)
	w.ready()
	if w.get("delivered.example.com/v1", "Tree", "oak") == nil {
		t.Error("the object is not there")
	}
	w.merge(w.get("delivered.example.com/v1", "Tree", "oak"), `{spec: {height: 5}}`)
	cluster.Eventually(t, "drift of a custom resource is corrected", func() error {
		if h, _, _ := unstructured.NestedInt64(w.get("delivered.example.com/v1", "Tree", "oak").Object, "spec", "height"); h != 4 {
			return fmt.Errorf("it is %d high", h)
		}

		return nil
	})
	w.remove()
	w.deleted()
}

// TestRejectedManifests has manifests that cannot be delivered, next to one that can.
func TestRejectedManifests(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.synthesize(
		configMap("good", "1"),
		configMap("Bad_Name", "1"),
		configMap("typo", "1", enov1.AnnotationDeletionGroup, "soon"),
		strings.Replace(configMap("nowhere", "1"), "  name: nowhere", "  name: nowhere\n  namespace: not-there", 1),
		`{apiVersion: not.there/v1, kind: Thing, metadata: {name: thing, annotations: {eno.azure.io/readiness-group: "-100"}}}`,
		configMap("open", "1", enov1.AnnotationFailOpen, "true", enov1.AnnotationReadinessGroup, "-200")+"immutable: perhaps\n",
		configMap("next", "1", enov1.AnnotationReadinessGroup, "-150"),
		configMap("after", "1", enov1.AnnotationReadinessGroup, "0"),
	)
	w.eventually("good", "a", "1")
	w.fails("ConfigMap", "Bad_Name", "Invalid value")
	w.eventually("typo", "a", "1") // a stored setting that is invalid is ignored
	w.fails("Thing", "thing", "no matches for kind")
	w.fails("ConfigMap", "open", "immutable")
	w.eventually("next", "a", "1")
	cluster.Eventually(t, "the errors of open are passed over, and a namespace is not there", func() error {
		if s := w.state("ConfigMap", "open"); !s.Reconciled || s.Ready == nil {
			return fmt.Errorf("open: %s", describe(s))
		}
		if s := w.states()["ConfigMap not-there/nowhere"]; s.ReconciliationError == nil || !strings.Contains(*s.ReconciliationError, "not found") {
			return fmt.Errorf("nowhere: %s", describe(s))
		}

		return nil
	})
	if w.config("after") != nil {
		t.Error("the next group did not wait for the one with errors")
	}
	cluster.Eventually(t, "an event reports what is stuck", func() error {
		list := &corev1.EventList{}
		must(t, w.c.List(t.Context(), list, client.InNamespace(w.ns)))
		for _, e := range list.Items {
			if e.InvolvedObject.Kind == enov1.CompositionKind && strings.Contains(e.Message, "Bad_Name") {
				return nil
			}
		}

		return fmt.Errorf("there are %d events", len(list.Items))
	})
	w.remove()
	w.deleted()
}

// TestNamespace has the namespace of an object go and come back.
func TestNamespace(t *testing.T) {
	w := newWorld(t)
	start(t)
	inside := w.ns + "-inside"
	object := strings.Replace(configMap("one", "1"), "  name: one", "  name: one\n  finalizers: [example.com/hold]\n  namespace: "+inside, 1)
	space := "{apiVersion: v1, kind: Namespace, metadata: {name: " + inside + "}}"
	w.synthesize(object, space, configMap("beside", "1"))
	w.ready()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: inside}}
	must(t, w.c.Delete(t.Context(), ns))
	cluster.Eventually(t, "it is reported that the object is being deleted", func() error {
		s := w.states()["ConfigMap "+inside+"/one"]
		if s.ReconciliationError == nil || !strings.Contains(*s.ReconciliationError, "is deleting it") {
			return errors.New(describe(s))
		}

		return nil
	})
	// Another synthesis does not wait for it.
	w.synthesize(object, space, configMap("beside", "2"))
	w.eventually("beside", "a", "2")
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: inside, Name: "one"}}
	must(t, w.c.Patch(t.Context(), held, client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"finalizers": null}}`))))
	w.ready()
}
