package eno_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// settled changes a ConfigMap and waits until delivery has corrected it: delivery keeps
// the object.
func (e *env) settled(name string) {
	e.Helper()
	o := e.config(name)
	if o == nil {
		e.Fatalf("ConfigMap %s does not exist", name)
	}
	must(e, e.Patch(e.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"data":{"a":"drift"}}`)), client.FieldOwner("other")))
	cluster.Eventually(e, "the drift of "+name+" is corrected", func() error {
		if now := e.config(name); now == nil || now.Data["a"] == "drift" {
			return fmt.Errorf("it is %v", now)
		}

		return nil
	})
}

// latched checks whether synthesis has allowed deletion of the objects.
func latched(c *enov1.Composition) bool {
	s := c.Status.CurrentSynthesis

	return s.ObservedCompositionGeneration == c.Generation && s.Reconciled == nil && s.Ready == nil
}

// TestDependentsFirst deletes a composition that another one depends on. Its objects
// stay, and are kept correct, until the other one is gone, across a restart too.
func TestDependentsFirst(t *testing.T) {
	e := newEnv(t)
	e.compose("base", nil, configMap("base", "1"))
	// The object of app outlives the request to delete it, and app with it.
	e.compose("app", dependsOn("base"), configMap("app", "1", enov1.AnnotationDeletionStrategy, enov1.DeletionForeground)+"  finalizers: [eno.example.com/hold]\n")
	e.ready("base")
	e.ready("app")
	first := e.config("base").UID

	e.remove("base")
	if latched(e.status("base", enov1.StatusWaitingOnDependents, "")) {
		t.Error("the objects of base may be deleted while app exists")
	}
	e.settled("base")
	e.restart()
	e.settled("base")
	e.remove("app")
	cluster.Eventually(t, "the object of app is being deleted", func() error {
		if o := e.config("app"); o.DeletionTimestamp == nil {
			return fmt.Errorf("it is %v", o.ObjectMeta)
		}

		return nil
	})
	e.settled("base")
	if now := e.config("base").UID; now != first {
		t.Errorf("the object of base was deleted and recreated: %s, then %s", first, now)
	}
	must(t, e.Patch(t.Context(), e.config("app"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	e.gone("app")
	e.gone("base")
	e.absent("app", "base")
}

// TestLateDependent has a dependent appear after the deletion has started: it does not
// stop it.
func TestLateDependent(t *testing.T) {
	e := newEnv(t)
	e.compose("base", nil, configMap("base", "1", enov1.AnnotationDeletionStrategy, enov1.DeletionForeground)+"  finalizers: [eno.example.com/hold]\n")
	e.ready("base")
	e.remove("base")
	e.await("base", "deletes its objects", func(c *enov1.Composition) error {
		if !latched(c) {
			return fmt.Errorf("generation %d", c.Generation)
		}

		return nil
	})
	e.compose("late", dependsOn("base"), configMap("late", "1"))
	e.status("late", enov1.StatusWaitingOnDependencies, "")
	// An edit of the spec does not revoke it either.
	e.edit("base", func(c *enov1.Composition) { c.Spec.SynthesisEnv = []enov1.EnvVar{{Name: "A", Value: "B"}} })
	e.restart()
	c := e.status("base", enov1.StatusDeleting, "")
	if c.Status.DependencyStatus != nil {
		t.Errorf("base waits for %+v", c.Status.DependencyStatus)
	}
	must(t, e.Patch(t.Context(), e.config("base"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	e.gone("base")
	e.absent("base")
}

// TestCycleIsDeleted deletes two compositions that depend on each other: neither waits.
func TestCycleIsDeleted(t *testing.T) {
	e := newEnv(t)
	for _, name := range []string{"one", "two"} {
		e.compose(name, nil, configMap(name, "1"))
		e.ready(name)
	}
	e.edit("one", dependsOn("two"))
	e.edit("two", dependsOn("one"))
	e.status("two", enov1.StatusWaitingOnDependencies, enov1.ReasonCircularDependency)
	e.remove("one")
	e.gone("one")
	e.absent("one")
	e.exist("two")
	e.remove("two")
	e.gone("two")
	e.absent("two")
}

// TestOrphansDoNotWait deletes compositions whose objects stay: those are released
// although others depend on them.
func TestOrphansDoNotWait(t *testing.T) {
	e := newEnv(t)
	e.compose("base", annotated(enov1.AnnotationDeletionStrategy, "orphan"), configMap("base", "1"))
	e.compose("app", dependsOn("base"), configMap("app", "1"))
	e.ready("app")
	e.remove("base")
	e.gone("base")
	e.exist("base", "app")

	e.compose("member", func(c *enov1.Composition) { c.Labels = map[string]string{enov1.LabelSymphonyDeleting: "true"} }, configMap("member", "1"))
	e.compose("user", dependsOn("member"), configMap("user", "1"))
	e.ready("user")
	e.remove("member")
	e.gone("member")
	e.exist("member", "user")
}

// TestOwnStrategyWins has a manifest that reports how it is deleted, in a composition
// that leaves everything else behind.
func TestOwnStrategyWins(t *testing.T) {
	e := newEnv(t)
	e.compose("app", annotated(enov1.AnnotationDeletionStrategy, "orphan"),
		configMap("left", "1"), configMap("deleted", "1", enov1.AnnotationDeletionStrategy, enov1.DeletionForeground))
	e.ready("app")
	e.remove("app")
	e.gone("app")
	e.exist("left")
	if o := e.config("deleted"); o != nil {
		t.Errorf("the composition is gone, and its object is left behind: %v", o.ObjectMeta)
	}
}
