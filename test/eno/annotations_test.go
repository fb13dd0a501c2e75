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
		configMap("invalid", "1", enov1.AnnotationReadinessGroup, "first", enov1.AnnotationOverrides, "{"),
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
	e.status("app", enov1.StatusReconciling, "invalid: annotation eno.azure.io/")
	// It was delivered once, with settings that were valid then.
	must(t, e.Create(t.Context(), e.object(configMap("invalid", "1")), client.FieldOwner("eno")))

	e.remove("app")
	e.gone("app")
	e.exist("orphan")
	for _, name := range []string{"foreground", "typo", "invalid"} {
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
