package fields_test

import (
	"fmt"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/arbor-control/arbor/engine/fields"
)

// oneVersion converts nothing.
type oneVersion struct{}

func (oneVersion) Convert(o *typed.TypedValue, _ fieldpath.APIVersion) (*typed.TypedValue, error) {
	return o, nil
}
func (oneVersion) IsMissingVersionError(error) bool { return false }

// apply does with an object what the server does when eno applies: it is the
// server's own code.
func apply(t *testing.T, live, wanted map[string]any, es fields.Entries) (map[string]any, error) {
	t.Helper()
	managed := fieldpath.ManagedFields{}
	for _, e := range es {
		managed[e.Identity().String()] = fieldpath.NewVersionedSet(e.Fields, "v1", e.Operation == fields.Apply)
	}
	before, err := objectType.FromUnstructured(live, typed.AllowDuplicates)
	if err != nil {
		t.Fatal(err)
	}
	config, err := objectType.FromUnstructured(wanted)
	if err != nil {
		t.Fatal(err)
	}
	updater := (&merge.UpdaterBuilder{Converter: oneVersion{}, ReturnInputOnNoop: true}).BuildUpdater()
	me := fields.Identity{Manager: "eno", Operation: fields.Apply}.String()
	after, _, err := updater.Apply(before, config, "v1", managed, me, true)
	if err != nil {
		return nil, err
	}

	return after.AsValue().Unstructured().(map[string]any), nil
}

// scalars are all strings and numbers in an object, but those that are in it
// more than once.
func scalars(v any) map[string]bool {
	all := map[string]bool{}
	var add func(any)
	add = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, child := range v {
				add(child)
			}
		case []any:
			for _, child := range v {
				add(child)
			}
		case nil, bool:
		default:
			all[fmt.Sprint(v)] = true
		}
	}
	add(v)
	delete(all, "TCP")
	delete(all, "UDP")

	return all
}

// leavesNameless reports whether an item stays without any of its keys. Not even the server's merge
// can handle that.
func leavesNameless(all []fields.Removal) bool {
	nameless := false
	for _, r := range all {
		if r.Removed == nil {
			continue
		}
		left := map[string]int{}
		r.Removed.Iterate(func(p fieldpath.Path) {
			name, item := p[len(p)-1].FieldName, p[len(p)-2].Key
			if name == nil || item == nil {
				return
			}
			at := p[:len(p)-1].String()
			if left[at] == 0 {
				left[at] = len(*item)
			}
			for _, f := range *item {
				if f.Name == *name {
					left[at]--
				}
			}
			nameless = nameless || left[at] == 0
		})
	}

	return nameless
}

// compare compares the prediction with the result, and returns how often each fate occurred.
func compare(t *testing.T, live, after map[string]any, all []fields.Removal) map[fields.Fate]int {
	t.Helper()
	met := map[fields.Fate]int{}
	values := map[string]*fields.Node{}
	tree := fields.New(live, nil, fieldSet(live))
	for n := range tree.Root().All() {
		values[n.Path().String()] = n
	}
	there, explained := scalars(after), map[string]bool{}
	expect := func(r fields.Removal, path fieldpath.Path, stays bool) {
		for v := range scalars(values[path.String()].Value()) {
			if there[v] != stays {
				t.Errorf("%s: %q is there: %t", r, v, there[v])
			}
			explained[v] = true
		}
	}
	for _, r := range all {
		met[r.Fate]++
		switch r.Fate {
		case fields.Partial:
			r.Removed.Iterate(func(p fieldpath.Path) { expect(r, p, false) })
			r.Stays.Iterate(func(p fieldpath.Path) {
				if !p.Equals(r.Path) {
					expect(r, p, true)
				}
			})
		default:
			expect(r, r.Path, r.Fate == fields.Kept)
		}
	}
	for v := range scalars(live) {
		if !there[v] && !explained[v] {
			t.Errorf("%q was removed, and that was not predicted", v)
		}
	}

	return met
}

// How many random objects are drawn.
var rounds = 600

// TestRemovalsAgreeWithServer has the server's own code apply something, and
// looks for every value of the object in what comes out.
func TestRemovalsAgreeWithServer(t *testing.T) {
	refused := 0
	met := map[fields.Fate]int{}
	for round := range rounds {
		w := newWorld(uint64(round))
		live := w.object(7)
		wanted := w.wanted(live)
		es := w.entries(live).Merge()
		var hints []*fieldpath.Set
		if w.chance(5) {
			hints = append(hints, fieldSet(live))
		}
		removals := fields.New(live, es, hints...).Removals("eno", nil, fieldSet(wanted))
		after, err := apply(t, live, wanted, es)
		switch {
		case err == nil:
			for fate, n := range compare(t, live, after, removals) {
				met[fate] += n
			}
		case leavesNameless(removals):
			refused++
		default:
			t.Errorf("the server returns %v", err)
		}
		if t.Failed() {
			t.Fatalf("round %d: %s\nentries %s\nwanted %s", round, mustJSON(t, live), mustJSON(t, es), mustJSON(t, wanted))
		}
	}
	if refused < rounds/60 {
		t.Errorf("%d applies were rejected, want at least %d", refused, rounds/60)
	}
	for _, fate := range []fields.Fate{fields.Removed, fields.Partial, fields.Kept, fields.Swept} {
		if met[fate] < rounds/60 {
			t.Errorf("%s was met %d times, want at least %d", fate, met[fate], rounds/60)
		}
	}
}
