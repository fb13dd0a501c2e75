package eno_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// fixed is a manifest of an immutable ConfigMap with annotations, which are pairs.
func fixed(name, value string, annotations ...string) string {
	return configMap(name, value, annotations...) + "immutable: true\n"
}

// stateful is a manifest of a StatefulSet that asks to be replaced.
func stateful(service, image string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, annotations: {%s: "true"}}
spec:
  serviceName: %s
  replicas: 1
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: a, image: %q}]}
`, enov1.AnnotationReplaceOnConflict, service, image)
}

// replacements is how many objects the manager has deleted to create them again.
func replacements(t *testing.T) float64 {
	t.Helper()

	return manager.Sum(t, "eno_reconciliation_replacements_total")
}

// TestReplaceOnConflict changes objects that cannot be changed. Only those that ask for it
// are deleted and created again, and only if the server accepts the replacement.
func TestReplaceOnConflict(t *testing.T) {
	e := newEnv(t)
	yes := []string{enov1.AnnotationReplaceOnConflict, "true"}
	e.compose("app", nil, fixed("asks", "1", yes...), fixed("keeps", "1"))
	e.ready("app")
	asks, keeps, before := e.config("asks").UID, e.config("keeps").UID, replacements(t)

	e.change("app", fixed("asks", "2", yes...), fixed("keeps", "2"))
	e.value("asks", "2")
	e.status("app", enov1.StatusReconciling, "field is immutable")
	e.event("Replaced", "ConfigMap "+e.namespace+"/asks is deleted and created again (propagation Background)")
	o := e.config("asks")
	if o.UID == asks {
		t.Error("it is the same object")
	}
	if _, ok := o.Annotations[enov1.AnnotationReplaceOnConflict]; ok || o.Annotations["own"] != "kept" {
		t.Errorf("the annotations are %v", o.Annotations)
	}
	if o := e.config("keeps"); o.UID != keeps || o.Data["a"] != "1" {
		t.Errorf("what does not ask for it is %v", o)
	}
	if got := replacements(t) - before; got != 1 {
		t.Errorf("%v replacements were counted", got)
	}

	// The composition asks for all of its manifests.
	e.edit("app", annotated(enov1.AnnotationReplaceOnConflict, "true"))
	e.value("keeps", "2")
	e.ready("app")
}

// TestReplaceOnce has another client create the object again as it must not be. It was
// replaced once in this synthesis, and is not replaced again, not even by another manager.
func TestReplaceOnce(t *testing.T) {
	e := newEnv(t)
	yes := []string{enov1.AnnotationReplaceOnConflict, "true"}
	e.compose("app", nil, fixed("one", "1", yes...))
	e.ready("app")
	e.change("app", fixed("one", "2", yes...))
	e.value("one", "2")
	c := e.ready("app")
	slice := &enov1.ResourceSlice{}
	must(t, e.Get(t.Context(), client.ObjectKey{Namespace: e.namespace, Name: c.Status.CurrentSynthesis.ResourceSlices[0].Name}, slice))
	if len(slice.Status.Resources) != 1 || slice.Status.Resources[0].Replaced == "" {
		t.Fatalf("the replacement is not remembered: %+v", slice.Status.Resources)
	}

	manager.Kill()
	must(t, e.Delete(t.Context(), e.config("one")))
	fake := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "one"}, Data: map[string]string{"a": "3"}, Immutable: new(true)}
	must(t, e.Create(t.Context(), fake, client.FieldOwner("eno")))
	must(t, startManager())
	e.status("app", enov1.StatusReconciling, "was replaced in this synthesis already")
	if got := e.config("one"); got.UID != fake.UID {
		t.Error("it was replaced again")
	}

	// Another synthesis may.
	e.change("app", fixed("one", "4", yes...))
	e.value("one", "4")
	e.ready("app")
}

// TestReplacementRejected has a replacement that the server would not accept, an object that
// delivery did not create, and a kind that is never deleted. None of them is deleted.
func TestReplacementRejected(t *testing.T) {
	e := newEnv(t)
	yes := []string{enov1.AnnotationReplaceOnConflict, "true"}
	e.compose("app", nil, stateful("db", "a:1"))
	e.ready("app")
	set := &appsv1.StatefulSet{}
	at := client.ObjectKey{Namespace: e.namespace, Name: "db"}
	must(t, e.Get(t.Context(), at, set))
	uid := set.UID
	e.change("app", stateful("other", ""))
	e.status("app", enov1.StatusReconciling, "it is not deleted and created again, because that would fail, too")
	must(t, e.Get(t.Context(), at, set))
	if set.UID != uid || set.DeletionTimestamp != nil {
		t.Error("the StatefulSet was deleted for a replacement that the server rejects")
	}

	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "foreign"}, Data: map[string]string{"a": "1"}, Immutable: new(true)}
	must(t, e.Create(t.Context(), foreign, client.FieldOwner("another")))
	e.compose("foreign", nil, fixed("foreign", "2", yes...))
	e.status("foreign", enov1.StatusReconciling, "was not delivered by eno")
	if e.config("foreign").UID != foreign.UID {
		t.Error("an object of another client was deleted")
	}

	claim := func(mode string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, annotations: {%s: \"true\"}}\nspec: {accessModes: [%s], resources: {requests: {storage: 1Gi}}}\n", enov1.AnnotationReplaceOnConflict, mode)
	}
	e.compose("claim", nil, claim("ReadWriteOnce"))
	e.ready("claim")
	e.change("claim", claim("ReadWriteMany"))
	e.status("claim", enov1.StatusReconciling, "is not used for a PersistentVolumeClaim")
}

// TestReplaceStatefulSet changes a field of a StatefulSet that cannot be changed. Its pods
// are not deleted with it. It is created again when its finalizer is removed, also by a
// manager that was started in between.
func TestReplaceStatefulSet(t *testing.T) {
	e := newEnv(t)
	e.compose("app", nil, stateful("db", "a:1"))
	e.ready("app")
	at := client.ObjectKey{Namespace: e.namespace, Name: "db"}
	set := &appsv1.StatefulSet{}
	must(t, e.Get(t.Context(), at, set))
	uid := set.UID
	hold := func(finalizers string) {
		must(t, e.Patch(t.Context(), set, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`)), client.FieldOwner("another")))
	}
	hold(`["test.example.com/hold"]`)
	pod := &corev1.Pod{}
	cluster.Eventually(t, "the StatefulSet has its pod", func() error {
		return e.Get(t.Context(), client.ObjectKey{Namespace: e.namespace, Name: "db-0"}, pod)
	})

	e.change("app", stateful("other", "a:1"))
	e.event("Replaced", "StatefulSet "+e.namespace+"/db is deleted and created again (propagation Orphan)")
	e.status("app", enov1.StatusReconciling, "is created again when it is gone")
	must(t, e.Get(t.Context(), at, set))
	if set.UID != uid || set.DeletionTimestamp == nil || !strings.Contains(strings.Join(set.Finalizers, " "), "hold") {
		t.Fatalf("the StatefulSet is not being deleted: %+v", set.ObjectMeta)
	}
	e.restart()
	e.status("app", enov1.StatusReconciling, "is created again when it is gone")
	hold("null")
	cluster.Eventually(t, "the StatefulSet is another one", func() error {
		o := &appsv1.StatefulSet{}
		if err := e.Get(t.Context(), at, o); err != nil {
			return err
		}
		if o.UID == uid || o.Spec.ServiceName != "other" {
			return errors.New("it is not")
		}

		return nil
	})
	e.ready("app")
	cluster.Eventually(t, "the new StatefulSet has adopted the pod", func() error {
		got, now := &corev1.Pod{}, &appsv1.StatefulSet{}
		must(t, e.Get(t.Context(), at, now))
		if err := e.Get(t.Context(), client.ObjectKeyFromObject(pod), got); err != nil || got.UID != pod.UID || got.DeletionTimestamp != nil {
			t.Fatalf("the pod was deleted: %v", err)
		}
		if !metav1.IsControlledBy(got, now) {
			return fmt.Errorf("it belongs to %v", got.OwnerReferences)
		}

		return nil
	})
}
