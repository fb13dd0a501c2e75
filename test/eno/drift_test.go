package eno_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// write changes a ConfigMap as another client does.
func (e *env) write(name, value string) {
	e.Helper()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name}}
	must(e, e.Patch(e.Context(), o, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"a":"`+value+`"}}`)), client.FieldOwner("someone")))
}

// drifted waits until the condition Drifted of app has all of some texts, or is absent.
func (e *env) drifted(texts ...string) {
	e.Helper()
	e.await("app", fmt.Sprintf("has drifted: %q", texts), func(c *enov1.Composition) error {
		cond := meta.FindStatusCondition(c.Status.Conditions, enov1.ConditionDrifted)
		if len(texts) == 0 && cond != nil {
			return errors.New("it has drifted")
		}
		for _, text := range texts {
			if cond == nil || !strings.Contains(cond.Message, text) {
				return fmt.Errorf("the condition lacks %q", text)
			}
		}

		return nil
	})
}

// TestDriftReported has a manager that reports changes of other clients until there is
// another synthesis, also across a restart.
func TestDriftReported(t *testing.T) {
	e := newEnv(t)
	e.restartWith("--drift=report")
	e.compose("app", nil, configMap("changed", "1"), configMap("deleted", "1"), configMap("kept", "1"))
	e.ready("app")
	e.write("changed", "2")
	e.event("Drifted", "changed: data.a differs, last written by someone")
	must(t, e.Delete(t.Context(), e.config("deleted")))
	both := []string{"2 objects are not as they were delivered", "changed: data.a differs", "deleted: it does not exist"}
	e.drifted(both...)

	e.restart("--drift=report")
	e.write("kept", "2")
	e.drifted(append(both[1:], "3 objects", "kept: data.a differs")...)
	if o := e.config("changed"); o.Data["a"] != "2" || e.config("deleted") != nil {
		t.Errorf("it was corrected: %v", o.Data)
	}
	e.write("kept", "1") // another client repairs it
	e.drifted(both...)

	e.change("app", configMap("changed", "3"), configMap("deleted", "1"), configMap("kept", "1"))
	e.value("changed", "3")
	e.drifted()
	e.ready("app")
	e.exist("deleted")
}

// TestDriftAtIntervals has a manager that corrects at reconcile intervals only, as Eno
// does.
func TestDriftAtIntervals(t *testing.T) {
	e := newEnv(t)
	e.restartWith("--drift=interval")
	e.compose("app", nil, configMap("often", "1", enov1.AnnotationReconcileInterval, "1s"), configMap("never", "1"))
	e.ready("app")
	e.write("never", "2")
	e.write("often", "2")
	e.value("often", "1")
	must(t, e.Delete(t.Context(), e.config("often")))
	cluster.Eventually(t, "it is created again", func() error {
		if e.config("often") == nil {
			return errors.New("it does not exist")
		}

		return nil
	})
	if o := e.config("never"); o.Data["a"] != "2" {
		t.Errorf("what has no interval was corrected: %v", o.Data)
	}
	e.change("app", configMap("often", "1"), configMap("never", "3"))
	e.value("never", "3")
}
