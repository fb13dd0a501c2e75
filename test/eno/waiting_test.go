package eno_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// service is a manifest of a Service with a node port.
func service(name string, port int) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {type: NodePort, ports: [{name: a, port: 80, nodePort: %d}]}\n", name, port)
}

// condition waits until a condition of the composition app is true, with a text in its
// message.
func (e *env) condition(kind, text string) string {
	e.Helper()
	message := ""
	e.await("app", "has the condition "+kind, func(c *enov1.Composition) error {
		cond := meta.FindStatusCondition(c.Status.Conditions, kind)
		if cond == nil || !strings.Contains(cond.Message, text) {
			return fmt.Errorf("the condition is %+v", cond)
		}
		message = cond.Message

		return nil
	})

	return message
}

// unconditional waits until the composition app does not have a condition.
func (e *env) unconditional(kind string) {
	e.Helper()
	e.await("app", "does not have the condition "+kind, func(c *enov1.Composition) error {
		if cond := meta.FindStatusCondition(c.Status.Conditions, kind); cond != nil {
			return errors.New(cond.Message)
		}

		return nil
	})
}

// arbor runs a command about a composition in the namespace of the test, and returns what
// it prints.
func (e *env) arbor(code int, args ...string) string {
	e.Helper()
	out, errOut, got := server.Arbor(e, append(args, "-n", e.namespace)...)
	if got != code {
		e.Fatalf("arbor %v: exit code %d, want %d\n%s%s", args, got, code, out, errOut)
	}

	return out + errOut
}

// TestPruneWaiting has a Service that needs the node port of the one that it replaces,
// until a user has the old one deleted.
func TestPruneWaiting(t *testing.T) {
	e := newEnv(t)
	e.compose("app", nil, service("old", 31234), configMap("kept", "1"), configMap("dropped", "1"))
	e.ready("app")
	e.change("app", service("new", 31234), configMap("kept", "2"))
	message := e.condition(enov1.ConditionPruneWaiting, "Service "+e.namespace+"/new cannot be applied (")
	for _, want := range []string{"already allocated", "deleted last: Service " + e.namespace + "/old. ", "arbor delivery prune app -n " + e.namespace + " --first Service/" + e.namespace + "/old"} {
		if !strings.Contains(message, want) {
			t.Errorf("the condition does not contain %q:\n%s", want, message)
		}
	}
	t.Log(message)
	e.value("kept", "2")
	e.restart()
	e.condition(enov1.ConditionPruneWaiting, message)
	if out := e.arbor(0, "delivery", "app"); !strings.Contains(out, message) {
		t.Errorf("arbor delivery does not show %q:\n%s", message, out)
	}
	e.exist("dropped")
	if out := e.arbor(1, "delivery", "prune", "app", "--first", "Service/new"); !strings.Contains(out, "is a manifest of the current synthesis") {
		t.Errorf("got %s", out)
	}

	t.Log(e.arbor(0, "delivery", "prune", "app", "--first", "Service/old"))
	e.ready("app")
	e.unconditional(enov1.ConditionPruneWaiting)
	e.absent("dropped")
	for name, want := range map[string]bool{"old": false, "new": true} {
		err := e.Get(e.Context(), client.ObjectKey{Namespace: e.namespace, Name: name}, &corev1.Service{})
		if got := err == nil; got != want || err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("Service %s exists: %t, want %t: %v", name, got, want, err)
		}
	}
}

// TestPruneFirstOnly deletes one of several objects that wait for a confirmation, and only
// for this synthesis.
func TestPruneFirstOnly(t *testing.T) {
	e := newEnv(t)
	e.compose("app", nil, configMap("one", "1"), configMap("two", "1"), configMap("three", "1"))
	e.ready("app")
	e.change("app")
	e.blocked("app", "3 objects")
	e.arbor(0, "delivery", "prune", "app", "--first", "configmap/two")
	e.absent("two")
	e.blocked("app", "3 objects")
	e.exist("one", "three")

	// The next synthesis has another uuid.
	e.change("app", configMap("one", "2"), configMap("two", "2"), configMap("three", "2"))
	e.ready("app")
	e.change("app")
	e.blocked("app", "3 objects")
	e.exist("one", "two", "three")
}

// TestSuspend has delivery write nothing for a composition, across a restart, until it is
// resumed.
func TestSuspend(t *testing.T) {
	e := newEnv(t)
	e.compose("app", nil, configMap("one", "1"), configMap("two", "1"), configMap("three", "1"))
	e.ready("app")
	t.Log(e.arbor(0, "delivery", "suspend", "app", "--reason", "moving the database"))
	text := e.condition(enov1.ConditionSuspended, ": moving the database")
	e.status("app", enov1.StatusReady, text)
	e.event("Suspended", ": moving the database")

	// Nothing is corrected, applied or pruned. A composition that is not suspended is.
	drift := func(name string) {
		o := e.config(name)
		o.Data["a"] = "drift"
		must(t, e.Update(e.Context(), o, client.FieldOwner("another")))
	}
	drift("one")
	e.change("app", configMap("one", "2"), configMap("two", "2"), configMap("new", "2"))
	e.restart()
	e.compose("live", nil, configMap("live", "1"))
	e.ready("live")
	e.status("app", enov1.StatusReconciling, text)
	if out := e.arbor(0, "delivery", "app"); !strings.Contains(out, text) {
		t.Errorf("arbor delivery does not show %q:\n%s", text, out)
	}
	for name, want := range map[string]string{"one": "drift", "two": "1", "three": "1"} {
		if o := e.config(name); o == nil || o.Data["a"] != want {
			t.Errorf("%s is %v, want %s", name, o, want)
		}
	}
	if e.config("new") != nil {
		t.Error("a manifest was applied")
	}

	t.Log(e.arbor(0, "delivery", "resume", "app"))
	e.value("one", "2")
	e.value("new", "2")
	e.absent("three")
	e.ready("app")
	e.unconditional(enov1.ConditionSuspended)
	e.event("Resumed", "delivered again")

	// Deletion does not wait.
	e.arbor(0, "delivery", "suspend", "app", "--reason", "again")
	e.condition(enov1.ConditionSuspended, ": again")
	e.remove("app")
	e.gone("app")
	e.absent("one", "two", "new")
}
