package fields_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/ownership"
)

// rounds of random histories.
const rounds = 80

// A dice draws what happens to a thing.
type dice struct{ *rand.Rand }

func (d dice) pick(all ...string) string { return all[d.IntN(len(all))] }

// some draws a part of a list, in order.
func (d dice) some(all ...string) string {
	var part []string
	for _, one := range all {
		if d.IntN(2) == 0 {
			part = append(part, one)
		}
	}

	return strings.Join(part, ", ")
}

// spec draws one that the schema takes.
func (d dice) spec() string {
	item := func(id string) string {
		return fmt.Sprintf("{id: %s, size: %d%s}", id, d.IntN(2), d.pick("", ", note: one", ", note: two"))
	}
	port := func(n int) string {
		return fmt.Sprintf("{port: %d%s%s}", n, d.pick("", ", protocol: UDP"), d.pick("", ", target: x"))
	}

	return d.some(
		fmt.Sprintf("items: [%s]", d.some(item("a"), item("b"), item("c"))),
		fmt.Sprintf("ports: [%s]", d.some(port(1), port(2))),
		fmt.Sprintf("tags: [%s]", d.some("a", "b", "c")),
		fmt.Sprintf("args: [%s]", d.some("a", "b")),
		fmt.Sprintf("plain: [%s]", d.some("{name: a}", "{name: b, value: x}")),
		fmt.Sprintf("whole: {%s}", d.some("a: x", "b: x")),
		fmt.Sprintf("free: {%s}", d.some("a: x", "b: {c: 1, d: [1]}")),
		fmt.Sprintf("count: %d", d.IntN(3)),
	)
}

// scope draws one, often one that is not there.
func (d dice) scope() string {
	return d.pick("spec", "spec.items", "spec.items[id=a]", "spec.items[id=~^a|^b]", "spec.items[*].note", "spec.ports", "spec.ports[port=1]",
		"spec.tags", `spec.tags[=a]`, "spec.args", "spec.plain", "spec.whole.a", "spec.free", "spec.free.b.c", "spec.*", "metadata.labels", "metadata")
}

// history makes a thing by random calls of random managers.
func (d dice) history(w *world, name string) *unstructured.Unstructured {
	w.Helper()
	text := func() string {
		return strings.Replace(thing(d.spec()), "{name: x}", fmt.Sprintf("{name: %s, labels: {%s}}", name, d.some("a: x", "b: x")), 1)
	}
	o := w.create(d.pick(legacy, eno, "kubectl"), text())
	for range 2 + d.IntN(5) {
		manager := d.pick(eno, eno, legacy, "kubectl", "flux")
		if d.IntN(3) == 0 {
			w.merge(manager, o, fmt.Sprintf("{spec: {%s}}", d.spec()))

			continue
		}
		// Some of these leave half an item, which the server rejects.
		_, _ = w.apply(manager, w.object(text()))
	}

	return w.get(o)
}

// TestRandom migrates and undoes what random histories left.
func TestRandom(t *testing.T) {
	w := newWorld(t)
	w.things()
	moved := 0
	for round := range rounds {
		d := dice{rand.New(rand.NewPCG(uint64(round), 5))}
		before := d.history(w, fmt.Sprintf("x%d", round))
		var kept []byte
		m := ownership.New(w.c, ownership.Options{
			Mode: fields.Mode(d.pick(string(fields.Needed), string(fields.Whole))),
			Journal: ownership.JournalFunc(func(_ context.Context, r ownership.Record) (err error) {
				kept, err = json.Marshal(r)

				return err
			}),
		})
		scope := d.scope()
		result, err := m.MigrateOwnership(t.Context(), before, scope)
		if err != nil {
			t.Fatalf("round %d, %s: %v", round, scope, err)
		}
		after := w.get(before)
		if diff := cmp.Diff(content(before), content(after)); diff != "" {
			t.Errorf("round %d, %s: the object has changed: -before, +after:\n%s", round, scope, diff)
		}
		if !result.Migrated {
			w.unchanged(before)

			continue
		}
		moved++
		if again := w.migrate(m, ownership.Request{Object: before, Scopes: scopes(scope)}); again.Migrated {
			t.Errorf("round %d, %s: it was migrated twice", round, scope)
		}
		w.unchanged(after)

		var record ownership.Record
		must(t, json.Unmarshal(kept, &record))
		if _, err := ownership.New(w.c, ownership.Options{}).Undo(t.Context(), record); err != nil {
			t.Fatalf("round %d, %s: %v", round, scope, err)
		}
		undone := w.get(before)
		if !fields.Equal(w.entries(before), w.entries(undone)) {
			t.Errorf("round %d, %s: ownership is not as it was: -before, +undone:\n%s", round, scope, cmp.Diff(w.held(before), w.held(undone)))
		}
		if diff := cmp.Diff(content(before), content(undone)); diff != "" {
			t.Errorf("round %d, %s: the object has changed: -before, +undone:\n%s", round, scope, diff)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	if moved < rounds/4 {
		t.Errorf("%d of %d histories had anything to move", moved, rounds)
	}
}

// TestUndo is about records that outlive the process.
func TestUndo(t *testing.T) {
	w := newWorld(t)
	before := w.seed()
	kept := keep(t)
	w.migrate(ownership.New(w.c, ownership.Options{Journal: kept}), ownership.Request{Object: before})
	record := w.records(kept)[0]

	m := ownership.New(w.c, ownership.Options{})
	undone, err := m.Undo(t.Context(), record)
	must(t, err)
	after := w.get(before)
	if undone.Skipped != "" || !fields.Equal(w.entries(before), w.entries(after)) {
		t.Errorf("ownership is not as it was: -before, +after:\n%s", cmp.Diff(w.held(before), w.held(after)))
	}
	if undone, err = m.Undo(t.Context(), record); err != nil || undone.Skipped != ownership.Done {
		t.Errorf("the second time it reports %+v, %v", undone, err)
	}
	w.unchanged(after)

	t.Run("NothingWithoutRecord", func(t *testing.T) {
		broken := ownership.JournalFunc(func(context.Context, ownership.Record) error { return errors.New("the disk is full") })
		if _, err := ownership.New(w.c, ownership.Options{Journal: broken}).MigrateOwnership(t.Context(), before); err == nil || !strings.Contains(err.Error(), "changed nothing") {
			t.Errorf("it reports %v", err)
		}
		w.unchanged(after)
	})
	t.Run("Replaced", func(t *testing.T) {
		must(t, w.c.Delete(t.Context(), before.DeepCopy()))
		if undone, err := m.Undo(t.Context(), record); err != nil || undone.Skipped != ownership.Absent {
			t.Errorf("it reports %+v, %v", undone, err)
		}
		w.create(legacy, web)
		if _, err := m.Undo(t.Context(), record); ownership.ReasonOf(err) != ownership.Replaced {
			t.Errorf("it reports %v", err)
		}
	})
}
