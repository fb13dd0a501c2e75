package delivery_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// applies is how many applies a manager has made.
func applies(t *testing.T, m *cluster.Manager) float64 {
	t.Helper()

	return m.Sum(t, `eno_reconciliation_actions_total{action="apply"}`)
}

// requests is how many requests of any kind a manager has made.
func requests(t *testing.T, m *cluster.Manager) float64 {
	t.Helper()

	return m.Sum(t, "rest_client_requests_total")
}

// healthPause is the minimum time between two reads of an object for its health, and
// between two writes of the condition Healthy.
const healthPause = 5 * time.Second

// quiet waits until a manager has made no request for a while, and reports how long.
func quiet(t *testing.T, m *cluster.Manager, long time.Duration) {
	t.Helper()
	last, since := requests(t, m), time.Now()
	cluster.Eventually(t, fmt.Sprintf("there is no request for %s", long), func() error {
		if now := requests(t, m); now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) < long {
			return fmt.Errorf("there were %v requests, the last %s ago", last, time.Since(since))
		}

		return nil
	})
}

// TestDrift has another client change, remove and add things.
func TestDrift(t *testing.T) {
	w := newWorld(t)
	m := start(t)
	w.synthesize(configMap("one", "1"), configMap("two", "2"))
	w.ready()
	quiet(t, m, 2*time.Second)

	before := applies(t, m)
	w.merge(w.config("one"), `{data: {a: stolen}}`)
	w.eventually("one", "a", "1")
	w.merge(w.config("one"), `{data: {a: null}}`)
	w.eventually("one", "a", "1")
	must(t, w.c.Delete(t.Context(), w.config("two")))
	w.eventually("two", "a", "2")
	// Writes are counted a moment later.
	value(t, m, "eno_reconciliation_corrections_total", "3", is(3))
	quiet(t, m, healthPause+time.Second)
	if got := applies(t, m) - before; got != 3 {
		t.Errorf("there were %v applies for three changes", got)
	}
	if got := m.Sum(t, "eno_reconciliation_corrections_total"); got != 3 {
		t.Errorf("%v corrections were counted", got)
	}
	all := requests(t, m)
	w.merge(w.config("one"), `{data: {b: added}, metadata: {labels: {their: own}}}`)
	w.eventually("one", "b", "added")
	quiet(t, m, 2*time.Second)
	if got := requests(t, m) - all; got != 0 {
		t.Errorf("there were %v requests for a change that is none of ours", got)
	}
	if got := w.value("one", "b"); got != "added" {
		t.Errorf("the value that another client added is %q", got)
	}
}

// TestStatusIsNoDrift has the status of an object change again and again.
func TestStatusIsNoDrift(t *testing.T) {
	w := newWorld(t)
	m := start(t)
	w.synthesize(strings.ReplaceAll(deployment, "NAME", "web"))
	w.ready()
	quiet(t, m, healthPause+time.Second)
	all, began := requests(t, m), time.Now()
	for i := range 20 {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "web"}}
		patch := fmt.Sprintf(`{"status": {"conditions": [{"type": "Tested", "status": "True", "message": "%d"}]}}`, i)
		must(t, w.c.Status().Patch(t.Context(), d, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(other)))
	}
	took := time.Since(began)
	quiet(t, m, healthPause+time.Second)
	// The Deployment is read for its health when its status changes, at most once in five
	// seconds, and once more after the last change. Its health stays the same.
	if got, most := requests(t, m)-all, 2+int(took/healthPause); int(got) > most {
		t.Errorf("20 changes of the status in %s caused %v requests, want at most %d", took, got, most)
	}
	if got := applies(t, m); got != 1 {
		t.Errorf("changes of the status were corrected: %v applies", got)
	}
}

// TestIdle has many objects that no client touches.
func TestIdle(t *testing.T) {
	w := newWorld(t)
	m := start(t)
	var all []string
	for i := range 100 {
		all = append(all, configMap(fmt.Sprintf("c%d", i), "1"))
	}
	w.synthesize(all...)
	w.ready()
	quiet(t, m, 3*time.Second)
	t.Logf("%v requests for %d objects", requests(t, m), len(all))
	if got := applies(t, m); got != 100 {
		t.Errorf("there were %v applies", got)
	}

	// Another synthesis with the same manifests only reports it.
	const said = "eno_resource_slice_status_update_total"
	before, saying := requests(t, m), m.Sum(t, said)
	w.synthesize(all...)
	w.ready()
	quiet(t, m, time.Second)
	// How many states are written at a time depends on how fast they come.
	says := m.Sum(t, said) - saying
	if got := requests(t, m) - before - says; got > 5 || says >= 100 {
		t.Errorf("the same again took %v requests, and %v to report it", got, says)
	}
	if got := applies(t, m); got != 100 {
		t.Errorf("the same again was applied: %v", got)
	}
}

// TestContested has another client that takes back what is put right.
func TestContested(t *testing.T) {
	w := newWorld(t)
	m := start(t)
	w.synthesize(configMap("one", "1"), configMap("two", "1"))
	w.ready()
	cluster.Eventually(t, "it is left alone", func() error {
		w.merge(w.config("one"), `{data: {a: stolen}}`)
		s := w.state("ConfigMap", "one")
		if s.ReconciliationError == nil || !strings.Contains(*s.ReconciliationError, other+" keeps changing it") {
			return errors.New(describe(s))
		}

		return nil
	})
	before := applies(t, m)
	for range 20 {
		w.merge(w.config("one"), `{data: {a: "stolen again"}}`)
	}
	w.merge(w.config("two"), `{data: {a: stolen}}`)
	w.eventually("two", "a", "1")
	if got := applies(t, m) - before; got > 2 {
		t.Errorf("%v applies were made of what must be left alone", got-1)
	}
	// When they stop, it is put right.
	w.eventually("one", "a", "1")
	w.ready()
}

// TestSettings has what annotations ask for.
func TestSettings(t *testing.T) {
	w := newWorld(t)
	theirs := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"theirs": "1"},
		"metadata": map[string]any{"namespace": w.ns, "name": "theirs"},
	}}
	must(t, w.c.Create(t.Context(), theirs, client.FieldOwner(other)))
	m := start(t)
	patch := `{apiVersion: eno.azure.io/v1, kind: Patch, metadata: {name: %s}, patch: {apiVersion: v1, kind: ConfigMap, ops: [%s]}}`
	w.synthesize(
		configMap("once", "1", enov1.AnnotationDisableUpdates, "true"),
		configMap("never", "1", enov1.AnnotationDisableReconciliation, "true"),
		configMap("whole", "1", enov1.AnnotationReplace, "true"),
		configMap("often", "1", enov1.AnnotationReconcileInterval, "1s"),
		configMap("orphan", "1", enov1.AnnotationDeletionStrategy, "orphan"),
		configMap("foreground", "1", enov1.AnnotationDeletionStrategy, "foreground", enov1.AnnotationDeletionGroup, "1"),
		configMap("later", "1", enov1.AnnotationDeletionGroup, "2"),
		fmt.Sprintf(patch, "theirs", "{op: add, path: /data/patched, value: yes!}"),
		fmt.Sprintf(patch, "absent", "{op: add, path: /data/patched, value: yes!}"),
	)
	w.ready()
	w.eventually("theirs", "patched", "yes!")
	if w.config("never") != nil {
		t.Error("a disabled object was created")
	}

	// Changes by another client.
	w.merge(w.config("once"), `{data: {a: theirs}}`)
	w.merge(w.config("whole"), `{data: {a: theirs, b: theirs}}`)
	w.merge(w.config("theirs"), `{data: {patched: "no"}}`)
	w.eventually("whole", "a", "1")
	w.eventually("whole", "b", "")
	w.eventually("theirs", "patched", "yes!")
	absent := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"x": "1"}, "metadata": map[string]any{"namespace": w.ns, "name": "absent"}}}
	must(t, w.c.Create(t.Context(), absent, client.FieldOwner(other)))
	w.eventually("absent", "patched", "yes!")
	if got := w.value("once", "a"); got != "theirs" {
		t.Errorf("an object that is created once was changed: %q", got)
	}
	before := applies(t, m)
	cluster.Eventually(t, "it is checked every second", func() error {
		if got := applies(t, m) - before; got < 2 {
			return fmt.Errorf("%v times", got)
		}

		return nil
	})

	// Deletion: the foreground one is held, and those after it wait.
	w.merge(w.config("foreground"), `{metadata: {finalizers: [example.com/hold]}}`)
	w.remove()
	cluster.Eventually(t, "the first is being deleted", func() error {
		if w.config("foreground").GetDeletionTimestamp() == nil {
			return errors.New("it is not")
		}

		return nil
	})
	if w.state("ConfigMap", "foreground").Deleted || w.config("later") == nil || w.config("often") == nil {
		t.Error("a deletion group did not wait")
	}
	w.merge(w.config("foreground"), `{metadata: {finalizers: null}}`)
	w.deleted()
	for name, want := range map[string]bool{"once": false, "whole": false, "often": false, "orphan": true, "theirs": true, "later": false} {
		if got := w.config(name) != nil; got != want {
			t.Errorf("%s is there: %t", name, got)
		}
	}
}

// TestNotOurs has tombstones of objects that other clients created, or own now.
func TestNotOurs(t *testing.T) {
	w, heir := newWorld(t), newWorld(t)
	theirs := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": w.ns, "name": "theirs"}}}
	must(t, w.c.Create(t.Context(), theirs, client.FieldOwner(other)))
	start(t, "--prune-guard=off")
	w.synthesize(configMap("moved", "1"))
	w.ready()
	moved := strings.Replace(configMap("moved", "2"), "  name: moved", "  name: moved\n  namespace: "+w.ns, 1)
	heir.synthesize(moved)
	heir.ready()
	tombstone := w.manifest(configMap("theirs", "1"))
	tombstone.Deleted = true
	gone := w.manifest(configMap("moved", "1"))
	gone.Deleted = true
	w.write([]enov1.Manifest{tombstone, gone})
	w.deleted()
	if w.config("theirs") == nil {
		t.Error("an object of another client was deleted")
	}
	// Until then both wanted it, so the last word may still be on its way.
	w.eventually("moved", "a", "2")
}

// TestCompositionSettings has settings on the composition, which come late.
func TestCompositionSettings(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.synthesize(configMap("stays", "1"), configMap("goes", "1", enov1.AnnotationDeletionStrategy, "foreground"))
	w.ready()
	patch := fmt.Sprintf(`{"metadata": {"annotations": {%q: "orphan"}}}`, enov1.AnnotationDeletionStrategy)
	must(t, w.c.Patch(t.Context(), w.composition(), client.RawPatch(types.MergePatchType, []byte(patch))))
	w.remove()
	w.deleted()
	if w.config("stays") == nil || w.config("goes") != nil {
		t.Error("the composition reports that objects stay, unless they override it")
	}
}

// TestAbandoned has a composition whose Symphony is being deleted.
func TestAbandoned(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.synthesize(configMap("stays", "1"))
	w.ready()
	patch := fmt.Sprintf(`{"metadata": {"labels": {%q: "true"}}}`, enov1.LabelSymphonyDeleting)
	must(t, w.c.Patch(t.Context(), w.composition(), client.RawPatch(types.MergePatchType, []byte(patch))))
	w.remove()
	w.deleted()
	if w.config("stays") == nil {
		t.Error("it was deleted")
	}
}

// TestContestedDeleted has another client that holds every field of an object when it must be
// deleted. It was delivered all the same.
func TestContestedDeleted(t *testing.T) {
	w := newWorld(t)
	start(t)
	bare := "apiVersion: v1\nkind: ConfigMap\ndata: {a: mine}\nmetadata: {name: one}\n"
	w.synthesize(bare)
	w.ready()
	cluster.Eventually(t, "it is left alone", func() error {
		must(t, w.c.Patch(t.Context(), w.config("one"), client.RawPatch(types.MergePatchType, []byte(`{"data": {"a": "stolen"}}`)), client.FieldOwner("rival")))
		s := w.state("ConfigMap", "one")
		if s.ReconciliationError == nil || !strings.Contains(*s.ReconciliationError, "rival keeps changing it") {
			return errors.New(describe(s))
		}

		return nil
	})
	w.remove()
	w.deleted()
	if w.config("one") != nil {
		t.Error("it was left behind")
	}
}

// TestPatchOfNextSynthesis has other operations on the same object, which no other client has
// touched since.
func TestPatchOfNextSynthesis(t *testing.T) {
	w := newWorld(t)
	theirs := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"theirs": "1"},
		"metadata": map[string]any{"namespace": w.ns, "name": "theirs"},
	}}
	must(t, w.c.Create(t.Context(), theirs, client.FieldOwner(other)))
	start(t)
	const patch = `{apiVersion: eno.azure.io/v1, kind: Patch, metadata: {name: theirs}, patch: {apiVersion: v1, kind: ConfigMap, ops: [{op: add, path: /data/patched, value: %s}]}}`
	for _, value := range []string{"first", "second"} {
		w.synthesize(fmt.Sprintf(patch, value))
		w.ready()
		w.eventually("theirs", "patched", value)
	}
}

// TestPatchOfBusyObject has another client write to the target of a Patch, again and
// again, and at last to what the Patch sets. Only that is corrected.
func TestPatchOfBusyObject(t *testing.T) {
	w := newWorld(t)
	theirs := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"theirs": "0"},
		"metadata": map[string]any{"namespace": w.ns, "name": "theirs"},
	}}
	must(t, w.c.Create(t.Context(), theirs, client.FieldOwner(other)))
	m := start(t)
	patches := func() float64 { return m.Sum(t, `eno_reconciliation_actions_total{action="patch"}`) }
	w.synthesize(`{apiVersion: eno.azure.io/v1, kind: Patch, metadata: {name: theirs}, patch: {apiVersion: v1, kind: ConfigMap, ops: [{op: add, path: /data/patched, value: ours}]}}`)
	w.ready()
	for i := range 30 {
		w.merge(w.config("theirs"), fmt.Sprintf(`{data: {theirs: "%d"}}`, i+1))
	}
	quiet(t, m, time.Second)
	if got := patches(); got != 1 {
		t.Errorf("30 writes of another field caused %v patches", got-1)
	}
	w.merge(w.config("theirs"), `{data: {patched: stolen}}`)
	w.eventually("theirs", "patched", "ours")
	value(t, m, `eno_reconciliation_actions_total{action="patch"}`, "2", is(2))
	if all := w.events("Contested"); len(all) > 0 {
		t.Errorf("it is reported as contested: %+v", all)
	}
}
