package eno_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// event waits for an event about a composition with a text in it.
func (e *env) event(reason, text string) {
	e.Helper()
	cluster.Eventually(e, "there is an event "+reason, func() error {
		list := &corev1.EventList{}
		must(e, e.List(e.Context(), list, client.InNamespace(e.namespace)))
		var seen []string
		for i := range list.Items {
			if list.Items[i].Reason == reason && strings.Contains(list.Items[i].Message, text) {
				return nil
			}
			seen = append(seen, list.Items[i].Reason+": "+list.Items[i].Message)
		}

		return fmt.Errorf("there are %q", seen)
	})
}

// TestDeletionStrategies writes strategies as Eno accepts them, and invalid settings.
// None of them keeps the composition from being deleted.
func TestDeletionStrategies(t *testing.T) {
	e := newEnv(t)
	e.compose("app", nil,
		configMap("orphan", "1", enov1.AnnotationDeletionStrategy, "Orphan"),
		configMap("foreground", "1", enov1.AnnotationDeletionStrategy, "Foreground"),
		configMap("typo", "1", enov1.AnnotationDeletionStrategy, "orphn", enov1.AnnotationReplace, "True"),
	)
	cluster.Eventually(t, "what is valid is delivered", func() error {
		for _, name := range []string{"orphan", "foreground", "typo"} {
			if e.config(name) == nil {
				return errors.New(name + " does not exist")
			}
		}

		return nil
	})
	e.event("SettingIgnored", `annotation eno.azure.io/deletion-strategy: cannot use "orphn"`)
	e.event("SettingIgnored", `annotation eno.azure.io/replace: cannot use "True": it counts as "false"`)

	e.remove("app")
	e.gone("app")
	e.exist("orphan")
	for _, name := range []string{"foreground", "typo"} {
		if e.config(name) != nil {
			t.Errorf("the composition is gone, and ConfigMap %s is left behind", name)
		}
	}
}

// TestOrphanIsPruned drops a manifest with the strategy orphan: its object is deleted,
// since the strategy is about deletion of the Composition.
func TestOrphanIsPruned(t *testing.T) {
	e := newEnv(t)
	orphan := []string{enov1.AnnotationDeletionStrategy, enov1.DeletionOrphan}
	e.compose("app", nil, configMap("one", "1", orphan...), configMap("two", "1", orphan...))
	e.ready("app")
	e.change("app", configMap("one", "1", orphan...))
	e.absent("two")
	e.ready("app")
	e.remove("app")
	e.gone("app")
	e.exist("one")
}

// TestInvalidSettings has settings that a synthesis rejects. What was delivered before
// stays, and can be deleted.
func TestInvalidSettings(t *testing.T) {
	e := newEnv(t)
	e.compose("app", nil, configMap("one", "1"))
	e.ready("app")
	for _, tc := range []struct{ annotation, value, want string }{
		{enov1.AnnotationReadinessGroup, "first", `readiness-group: cannot use "first"`},
		{enov1.AnnotationReadiness, "self.", `readiness: cannot use "self."`},
		{enov1.AnnotationOverrides, "{", `overrides: cannot use "{"`},
	} {
		e.program("app", e.output(configMap("one", "2"), configMap("two", "1", tc.annotation, tc.value)))
		e.status("app", enov1.StatusSynthesisBackoff, "items[1]: ConfigMap "+e.namespace+"/two: annotation eno.azure.io/"+tc.want)
	}
	if one := e.config("one"); one == nil || one.Data["a"] != "1" || e.config("two") != nil {
		t.Errorf("a synthesis that was rejected is delivered: %v", one)
	}
	e.remove("app")
	e.gone("app")
	e.absent("one")
}

// TestTooLarge has a manifest that no slice can hold. The error names it.
func TestTooLarge(t *testing.T) {
	e := newEnv(t)
	e.compose("app", nil, configMap("one", "1"))
	e.ready("app")
	p := e.program("app", "")
	p.Spec.Command = []string{"sh", "-c", `cat > /dev/null
printf '{"items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"large","namespace":"%s"},"data":{"a":"' "$0"
head -c 1800000 /dev/zero | tr '\0' x
printf '"}}]}'`, e.namespace}
	must(t, e.Update(t.Context(), p))
	e.status("app", enov1.StatusSynthesisBackoff, "cannot store ConfigMap "+e.namespace+"/large: its manifest takes 1757 KiB in a ResourceSlice")
	e.exist("one")
}

// TestFailOpen has a manager that passes errors over, unless a manifest wants them.
func TestFailOpen(t *testing.T) {
	e := newEnv(t)
	e.restartWith("--fail-open")
	e.compose("open", nil, rejected("open"), configMap("next", "1", enov1.AnnotationReadinessGroup, "5"))
	e.ready("open")
	e.exist("next")
	closed := strings.Replace(rejected("closed"), "annotations:", "annotations:\n    "+enov1.AnnotationFailOpen+`: "false"`, 1)
	e.compose("closed", nil, closed)
	e.status("closed", enov1.StatusReconciling, "closed: ")
}
