package eno_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// definition of a namespaced kind in two versions.
const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.eno.example.com}
spec:
  group: eno.example.com
  scope: Namespaced
  names: {kind: %[2]s, plural: %[1]ss, singular: %[1]s}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v1alpha1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// get looks for an object of a version of a kind.
func (e *env) get(version, kind, name string) error {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("eno.example.com/" + version)
	o.SetKind(kind)

	return e.Get(e.Context(), client.ObjectKey{Namespace: e.namespace, Name: name}, o)
}

// TestUnservedVersion has an API version that is not served any more when the objects of
// a composition are deleted. They exist in another version.
func TestUnservedVersion(t *testing.T) {
	for name, restart := range map[string]bool{"Plant": false, "Flower": true} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			crd := &unstructured.Unstructured{}
			must(t, yaml.Unmarshal(fmt.Appendf(nil, definition, strings.ToLower(name), name), &crd.Object))
			must(t, e.Create(t.Context(), crd))
			t.Cleanup(func() { _ = e.Delete(t.Context(), crd) })
			e.compose("app", nil, fmt.Sprintf("{apiVersion: eno.example.com/v1alpha1, kind: %s, metadata: {name: one}, spec: {a: b}}", name))
			e.ready("app")

			e.serve(crd, name, false)
			if err := e.get("v1", name, "one"); err != nil {
				t.Fatalf("the object does not exist in the other version: %v", err)
			}
			if restart {
				e.restart()
			}
			e.remove("app")
			e.gone("app")
			if err := e.get("v1", name, "one"); !apierrors.IsNotFound(err) {
				t.Errorf("the composition is gone, and its object is left behind: %v", err)
			}
		})
	}
}

// serve has v1alpha1 of a kind served, or not, and waits until it is so.
func (e *env) serve(crd *unstructured.Unstructured, kind string, served bool) {
	e.Helper()
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	must(e, err)
	must(e, unstructured.SetNestedField(versions[1].(map[string]any), served, "served"))
	must(e, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
	must(e, e.Apply(e.Context(), client.ApplyConfigurationFromUnstructured(stripped(crd)), client.FieldOwner("other"), client.ForceOwnership))
	fresh, err := server.NewClient(nil)
	must(e, err)
	cluster.Eventually(e, fmt.Sprintf("v1alpha1 is served: %t", served), func() error {
		o := &unstructured.UnstructuredList{}
		o.SetAPIVersion("eno.example.com/v1alpha1")
		o.SetKind(kind + "List")
		if err := fresh.List(e.Context(), o); (err == nil) != served {
			return fmt.Errorf("it is not so: %w", errors.Join(err))
		}

		return nil
	})
}

// TestUnservedVersionIsReported has a version that is not served for a while. The composition
// reports that, although its object exists, and is corrected when the version is served again.
func TestUnservedVersionIsReported(t *testing.T) {
	e := newEnv(t)
	crd := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal(fmt.Appendf(nil, definition, "moss", "Moss"), &crd.Object))
	must(t, e.Create(t.Context(), crd))
	t.Cleanup(func() { _ = e.Delete(t.Context(), crd) })
	e.compose("app", nil, "{apiVersion: eno.example.com/v1alpha1, kind: Moss, metadata: {name: one}, spec: {a: b}}")
	e.ready("app")
	e.serve(crd, "Moss", false)
	e.status("app", enov1.StatusReconciling, "does not serve Moss.eno.example.com in version v1alpha1")
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "eno.example.com/v1", "kind": "Moss"}}
	o.SetNamespace(e.namespace)
	o.SetName("one")
	must(t, e.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"a":"changed"}}`)), client.FieldOwner("another")))
	e.serve(crd, "Moss", true)
	e.ready("app")
	cluster.Eventually(t, "the object is corrected", func() error {
		if err := e.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		if a, _, _ := unstructured.NestedString(o.Object, "spec", "a"); a != "b" {
			return fmt.Errorf("spec.a is %q", a)
		}

		return nil
	})
}

// stripped is an object without what only a server writes.
func stripped(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	delete(o.Object, "status")

	return o
}

// TestCascadeOrphan deletes a composition with --cascade=orphan: the garbage collector
// removes the owner references of its slices, which are deleted all the same.
func TestCascadeOrphan(t *testing.T) {
	e := newEnv(t)
	e.compose("app", nil, configMap("one", "1"))
	e.ready("app")
	e.change("app", configMap("one", "2"))
	e.ready("app")
	orphan := metav1.DeletePropagationOrphan
	must(t, e.Delete(t.Context(), &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "app"}}, &client.DeleteOptions{PropagationPolicy: &orphan}))
	e.gone("app")
	e.absent("one")
}

// TestClusterScopedWithNamespace moves the manifest of a cluster-scoped object to another
// namespace, as charts do: it is the same object, and is not deleted.
func TestClusterScopedWithNamespace(t *testing.T) {
	e := newEnv(t)
	in := func(namespace string) string {
		return strings.Replace(fmt.Sprintf(definition, "stone", "Stone"), "metadata: {", "metadata: {namespace: "+namespace+", ", 1)
	}
	e.compose("app", nil, in("a"), configMap("beside", "1"))
	e.ready("app")
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	must(t, e.Get(t.Context(), client.ObjectKey{Name: "stones.eno.example.com"}, crd))
	first := crd.GetUID()
	e.change("app", in("b"), configMap("beside", "2"))
	e.value("beside", "2")
	e.ready("app")
	must(t, e.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
	if crd.GetUID() != first || crd.GetDeletionTimestamp() != nil {
		t.Errorf("the object was deleted: %s, then %s", first, crd.GetUID())
	}
	e.remove("app")
	e.gone("app")
	cluster.Eventually(t, "it is deleted with the composition", func() error {
		if err := e.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it exists: %w", err)
		}

		return nil
	})
}

// TestUnreadable has a composition that cannot be read, because a slice was deleted while no
// manager ran and a rollback keeps it from being synthesized: others delete their objects.
func TestUnreadable(t *testing.T) {
	e := newEnv(t)
	e.compose("broken", nil, configMap("broken", "1"))
	e.compose("app", nil, configMap("one", "1"), configMap("two", "1"))
	e.ready("app")
	c := e.ready("broken")
	e.edit("broken", annotated(enov1.AnnotationRollback, c.Status.CurrentSynthesis.UUID))
	slice := &enov1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: c.Status.CurrentSynthesis.ResourceSlices[0].Name}}
	manager.Kill()
	must(t, e.Patch(t.Context(), slice, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	must(t, client.IgnoreNotFound(e.Delete(t.Context(), slice)))
	must(t, startManager())
	e.change("app", configMap("one", "1"))
	e.absent("two")
	e.event("Unreadable", slice.Name)
	e.remove("app")
	e.gone("app")
	e.absent("one")
	e.exist("broken")
	// It can be deleted itself.
	e.remove("broken")
	e.gone("broken")
}
