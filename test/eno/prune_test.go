package eno_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// rejected is a manifest that the API server does not accept.
func rejected(name string) string { return configMap(name, "1") + "immutable: perhaps\n" }

// TestPrunedLast has a synthesis that replaces an object by one that the API server
// rejects: the old one stays until every manifest has been applied.
func TestPrunedLast(t *testing.T) {
	e := newEnv(t)
	ordered := []string{enov1.AnnotationReadinessGroup, "-300"}
	e.compose("app", nil, configMap("old", "1"), configMap("first", "1", enov1.AnnotationPrune, enov1.PruneFirst),
		configMap("ordered", "1", ordered...), configMap("never", "1", enov1.AnnotationPrune, enov1.PruneNever))
	e.ready("app")
	if e.config("first").Annotations[enov1.AnnotationPrune] != "" {
		t.Error("the setting reached the object")
	}
	e.change("app", configMap("late", "1", enov1.AnnotationReadinessGroup, "5"), rejected("new"))
	e.status("app", enov1.StatusReconciling, "/new: ")
	e.absent("first", "ordered")
	e.restart()
	e.status("app", enov1.StatusReconciling, "/new: ")
	e.exist("old")

	// The object is deleted when the last group is applied, which need not be ready.
	e.change("app", configMap("late", "1", enov1.AnnotationReadinessGroup, "5", enov1.AnnotationReadiness, "self.data.a == '2'"), configMap("new", "1"))
	e.absent("old")
	e.exist("new", "late", "never")
	e.status("app", enov1.StatusNotReady, "")
}

// TestPrunedFirstByComposition resolves an apply that waits for the old object.
func TestPrunedFirstByComposition(t *testing.T) {
	e := newEnv(t)
	e.compose("app", nil, configMap("old", "1"), configMap("kept", "1"))
	e.ready("app")
	e.change("app", configMap("kept", "1"), rejected("new"))
	e.status("app", enov1.StatusReconciling, "/new: ")
	e.exist("old")
	e.edit("app", annotated(enov1.AnnotationPrune, enov1.PruneFirst))
	e.absent("old")
}

// TestNoItems has a program that prints a list without items: the synthesis fails.
func TestNoItems(t *testing.T) {
	e := newEnv(t)
	e.compose("app", nil, configMap("one", "1"), configMap("two", "1"))
	e.ready("app")
	e.program("app", `{"apiVersion":"config.kubernetes.io/v1","kind":"ResourceList"}`)
	e.status("app", enov1.StatusSynthesisBackoff, "it has no items")
	e.exist("one", "two")
}

// blocked waits for the condition PruneBlocked, and returns its digest.
func (e *env) blocked(name, text string) string {
	e.Helper()
	digest := ""
	e.await(name, "does not delete its objects", func(c *enov1.Composition) error {
		cond := meta.FindStatusCondition(c.Status.Conditions, enov1.ConditionPruneBlocked)
		if cond == nil || !strings.Contains(cond.Message, text) {
			return fmt.Errorf("the condition is %+v", cond)
		}
		digest = strings.Trim(cond.Message[strings.LastIndex(cond.Message, " ")+1:], `"`)

		return nil
	})

	return digest
}

// unblocked waits until there is no condition PruneBlocked.
func (e *env) unblocked(name string) {
	e.Helper()
	e.await(name, "may delete its objects", func(c *enov1.Composition) error {
		if cond := meta.FindStatusCondition(c.Status.Conditions, enov1.ConditionPruneBlocked); cond != nil {
			return errors.New(cond.Message)
		}

		return nil
	})
}

// TestEmptySynthesis has a program that suddenly prints no manifests: nothing is deleted
// before another client confirms it.
func TestEmptySynthesis(t *testing.T) {
	e := newEnv(t)
	e.compose("app", nil, configMap("one", "1"), configMap("two", "1"))
	e.ready("app")
	e.change("app")
	digest := e.blocked("app", "would delete 2 objects: ConfigMap "+e.namespace+"/one, ConfigMap "+e.namespace+"/two;")
	e.status("app", enov1.StatusReconciling, "PruneBlocked")
	e.restart()
	if again := e.blocked("app", "2 objects"); again != digest {
		t.Errorf("the digest was %s and is %s", digest, again)
	}
	e.exist("one", "two")

	// Manifests that are printed again end it.
	e.change("app", configMap("one", "2"), configMap("two", "2"))
	e.unblocked("app")
	e.value("two", "2")
	e.ready("app")

	e.change("app")
	e.edit("app", annotated(enov1.AnnotationConfirmPrune, "wrong"))
	e.edit("app", annotated(enov1.AnnotationConfirmPrune, e.blocked("app", "2 objects")))
	e.absent("one", "two")
	e.unblocked("app")
	e.ready("app")

	// The confirmation was for that synthesis, not for a later one that drops the same objects.
	e.change("app", configMap("one", "3"), configMap("two", "3"))
	e.value("two", "3")
	e.ready("app")
	e.change("app")
	e.blocked("app", "2 objects")
	e.exist("one", "two")
}

// TestEmptyOnRequest has syntheses without manifests that another client asked for, or that
// delete a single object, and one of a composition that is deleted.
func TestEmptyOnRequest(t *testing.T) {
	e := newEnv(t)
	e.compose("single", nil, configMap("single", "1"))
	e.compose("edited", nil, configMap("edited-1", "1"), configMap("edited-2", "1"))
	e.compose("deleted", nil, configMap("deleted-1", "1"), configMap("deleted-2", "1"))
	for _, name := range []string{"single", "edited", "deleted"} {
		e.ready(name)
	}
	e.change("single")
	e.absent("single")

	e.emptyIf("edited", configMap("edited-1", "1"), configMap("edited-2", "1"))
	e.edit("edited", variable("EMPTY", "true"))
	e.absent("edited-1", "edited-2")
	e.unblocked("edited")

	e.change("deleted")
	e.blocked("deleted", "2 objects")
	e.remove("deleted")
	e.gone("deleted")
	e.absent("deleted-1", "deleted-2")
}

// TestPruneShare has a program that suddenly prints a small part of its manifests. They
// are applied, and the objects of the rest are not deleted before a user confirms it.
func TestPruneShare(t *testing.T) {
	e := newEnv(t)
	guard := "--prune-guard=50%"
	e.restartWith(guard)
	all := func(names ...string) (list []string) {
		for _, name := range names {
			list = append(list, configMap(name, "1"))
		}

		return list
	}
	e.compose("app", nil, all("a", "b", "c", "d")...)
	e.ready("app")
	e.change("app", all("a", "new")...)
	digest := e.blocked("app", "would delete 3 of 4 objects, and --prune-guard allows 50%: ConfigMap "+e.namespace+"/b, ")
	e.value("new", "1")
	e.status("app", enov1.StatusReconciling, "PruneBlocked")
	e.restart(guard)
	if again := e.blocked("app", "3 of 4"); again != digest {
		t.Errorf("the digest was %s and is %s", digest, again)
	}
	cluster.Eventually(e, "the metric counts the composition", func() error {
		if n, err := manager.Value("eno_compositions_prune_blocked"); err != nil || n != 1 {
			return fmt.Errorf("it counts %v, %w", n, errors.Join(err))
		}

		return nil
	})
	e.exist("b", "c", "d")

	// Half of them may be deleted. Those that still wait since the synthesis before count.
	e.change("app", all("a", "new", "b")...)
	e.absent("c", "d")
	e.unblocked("app")
	e.ready("app")

	e.change("app", all("b")...)
	e.edit("app", annotated(enov1.AnnotationConfirmPrune, e.blocked("app", "2 of 3")))
	e.absent("a", "new")
	e.unblocked("app")
	e.ready("app")
}
