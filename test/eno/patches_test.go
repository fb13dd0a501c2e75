package eno_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

const deletes = `{op: add, path: /metadata/deletionTimestamp, value: "2020-01-01T00:00:00Z"}`

// patchOf is a Patch of a ConfigMap in a readiness group.
func patchOf(name, group, ops string) string {
	return fmt.Sprintf("{apiVersion: eno.azure.io/v1, kind: Patch, metadata: {name: %s, annotations: {eno.azure.io/readiness-group: %q}}, patch: {apiVersion: v1, kind: ConfigMap, ops: [%s]}}", name, group, ops)
}

// foreign creates a ConfigMap as another field manager.
func (e *env) foreign(name string) types.UID {
	e.Helper()
	o := e.object(configMap(name, "0"))
	must(e, e.Create(e.Context(), o, client.FieldOwner("other")))

	return o.GetUID()
}

// value waits until ConfigMap name has a value at data.a.
func (e *env) value(name, want string) {
	e.Helper()
	cluster.Eventually(e, fmt.Sprintf("%s has %q", name, want), func() error {
		if o := e.config(name); o == nil || o.Data["a"] != want {
			return fmt.Errorf("it is %v", o)
		}

		return nil
	})
}

// TestHookRunsOnce deletes an object before it is created, as Helm's
// before-hook-creation does. That happens once in each synthesis, whatever restarts.
func TestHookRunsOnce(t *testing.T) {
	e := newEnv(t)
	first := e.foreign("hook")
	manifests := func(value string) []string {
		return []string{
			patchOf("hook", "1", deletes), configMap("hook", value, enov1.AnnotationReadinessGroup, "2"),
			configMap("last", value, enov1.AnnotationReadinessGroup, "3"),
		}
	}
	e.compose("app", annotated(enov1.AnnotationReconcileInterval, "1s"), manifests("1")...)
	e.ready("app")
	second := e.config("hook").UID
	if second == first {
		t.Error("the hook was not deleted")
	}
	e.restart()
	e.settled("last")
	e.edit("app", annotated(enov1.AnnotationReconcileInterval, "2s")) // another setting is another view
	e.settled("hook")
	e.settled("last")
	if now := e.config("hook").UID; now != second {
		t.Errorf("the hook was deleted again: %s, then %s", second, now)
	}
	e.change("app", manifests("2")...)
	e.value("last", "2")
	if now := e.config("hook").UID; now == second {
		t.Error("the next synthesis did not delete the hook")
	}
}

// TestPatchOfOwnResource has resources with Patches of them in one composition.
func TestPatchOfOwnResource(t *testing.T) {
	e := newEnv(t)
	e.compose("app", nil,
		configMap("deleted", "1", enov1.AnnotationReadinessGroup, "1"), patchOf("deleted", "2", deletes),
		patchOf("changed", "1", `{op: add, path: /data/a, value: patched}`), configMap("changed", "1", enov1.AnnotationReadinessGroup, "1"),
		patchOf("labelled", "2", `{op: add, path: /data/b, value: patched}`), configMap("labelled", "1", enov1.AnnotationReadinessGroup, "1"),
	)
	e.ready("app")
	e.absent("deleted")
	e.value("changed", "patched")
	e.settled("changed") // by the Patch
	e.value("changed", "patched")
	e.settled("labelled") // by the resource: the Patch is about another field
	if got := e.config("labelled").Data["b"]; got != "patched" {
		t.Errorf("the Patch was undone: %q", got)
	}
	e.restart()
	e.settled("labelled")
	if e.config("deleted") != nil {
		t.Error("the object that a Patch deletes was created again")
	}
	e.value("changed", "patched")
	e.ready("app")
}

// TestSeveralPatches has three Patches of one target: they run in the order of their
// groups, then of the output.
func TestSeveralPatches(t *testing.T) {
	e := newEnv(t)
	e.foreign("theirs")
	e.compose("app", nil,
		patchOf("theirs", "2", `{op: replace, path: /data/a, value: third}`),
		patchOf("theirs", "1", `{op: replace, path: /data/a, value: first}, {op: add, path: /data/b, value: kept}`),
		patchOf("theirs", "1", `{op: replace, path: /data/a, value: second}`),
	)
	e.ready("app")
	e.value("theirs", "third")
	e.settled("theirs")
	e.value("theirs", "third")
	if got := e.config("theirs").Data["b"]; got != "kept" {
		t.Errorf("the first Patch did not run: %q", got)
	}
	e.remove("app")
	e.gone("app")
	e.exist("theirs")
}

// TestPatchOnDeletion deletes a composition: a Patch deletes its target only if its operations
// delete it then.
func TestPatchOnDeletion(t *testing.T) {
	e := newEnv(t)
	e.foreign("kept")
	e.foreign("removed")
	conditional := `{apiVersion: eno.azure.io/v1, kind: Patch, patch: {apiVersion: v1, kind: ConfigMap}, metadata: {name: removed, annotations: {eno.azure.io/overrides: '[{"path": "self.patch.ops", "condition": "composition.metadata.deletionTimestamp != null", "value": [{"op": "add", "path": "/metadata/deletionTimestamp", "value": "2020-01-01T00:00:00Z"}]}]'}}}`
	e.compose("app", nil, patchOf("kept", "1", `{op: add, path: /data/b, value: patched}`), conditional)
	e.ready("app")
	e.exist("kept", "removed")
	e.remove("app")
	e.gone("app")
	e.exist("kept")
	if e.config("removed") != nil {
		t.Error("the Patch did not delete its target with the composition")
	}
}

// TestResourceBecomesPatch has a manifest that a Patch of the same object replaces: the
// object stays.
func TestResourceBecomesPatch(t *testing.T) {
	e := newEnv(t)
	e.compose("app", nil, configMap("one", "1"), configMap("two", "1"))
	e.ready("app")
	first := e.config("one").UID
	e.change("app", patchOf("one", "0", `{op: add, path: /data/a, value: patched}`))
	e.absent("two")
	e.value("one", "patched")
	e.ready("app")
	if now := e.config("one"); now == nil || now.UID != first {
		t.Errorf("the object was deleted: it is %v", now)
	}
}
