package fields_test

import (
	"encoding/json"
	"errors"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/arbor-control/arbor/engine/fields"
)

const undoLive = `{apiVersion: v1, spec: {list: [{name: a, image: i}, {name: b, image: j}], replicas: 3}}`

func undoEntries(t testing.TB) fields.Entries {
	t.Helper()

	return fields.Entries{
		applied(t, "eno", `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:image":{}}}}}`),
		applied(t, "helm", `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{"f:image":{}}},"f:replicas":{}}}`),
		updated(t, "legacy", `{"f:spec":{"f:list":{".":{},"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:image":{}}}}}`),
	}
}

func TestUndo(t *testing.T) {
	in := func(version string, e fields.Entry) fields.Entry {
		e.APIVersion = version

		return e
	}
	without := func(es fields.Entries, manager string) fields.Entries {
		var out fields.Entries
		for _, e := range es {
			if e.Manager != manager {
				out = append(out, e)
			}
		}

		return out
	}
	cases := map[string]struct {
		reason  string
		before  fields.Entries
		request fields.Request
		// since is what happened after the plan was carried out.
		since func(live map[string]any, es fields.Entries) (map[string]any, fields.Entries)
		// want are the entries; nil if they are what they were.
		want  map[string][]string
		notes []string
	}{
		"AtOnce": {reason: "if nothing happened since, all is as it was"},
		"Whole":  {reason: "however much was moved", request: fields.Request{Mode: fields.Whole, Scope: fields.Scope{}}},
		"Released": {
			reason: "or released", request: fields.Request{Effect: fields.Release},
		},
		"Retagged": {
			reason: "or retagged, with what had to be left out", request: fields.Request{Retag: true},
			before: fields.Entries{in("v0", applied(t, "eno", `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}},"f:old":{}}}`)), in("v0", updated(t, "legacy", `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{"f:image":{}}}}}`))},
		},
		"OthersChange": {
			reason: "changes of other managers elsewhere stay",
			since: func(live map[string]any, es fields.Entries) (map[string]any, fields.Entries) {
				return live, append(es, updated(t, "new", `{"f:spec":{"f:replicas":{}}}`))
			},
			want: map[string][]string{
				"eno (Apply)": {"spec.list[name=a]", "spec.list[name=a].image"}, "helm (Apply)": {"spec.replicas", "spec.list[name=a].image"},
				"legacy (Update v1)": {"spec.list", "spec.list[name=a]", "spec.list[name=a].image", "spec.list[name=a].name"}, "new (Update v1)": {"spec.replicas"},
			},
		},
		"OthersTake": {
			reason: "a field that a third manager acquired since stays with it",
			since: func(live map[string]any, es fields.Entries) (map[string]any, fields.Entries) {
				i := 0
				for es[i].Manager != "eno" {
					i++
				}
				es[i].Fields = es[i].Fields.Difference(set(t, `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{"f:image":{}}}}}`))

				return live, append(es, updated(t, "thief", `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{"f:image":{}}}}}`))
			},
			want: map[string][]string{
				"eno (Apply)": {"spec.list[name=a]"}, "helm (Apply)": {"spec.replicas"},
				"legacy (Update v1)": {"spec.list", "spec.list[name=a]", "spec.list[name=a].name"}, "thief (Update v1)": {"spec.list[name=a].image"},
			},
			notes: []string{
				"helm (Apply) cannot get spec.list[name=a].image back: thief (Update v1) has them now",
				"legacy (Update v1) cannot get spec.list[name=a].image back: thief (Update v1) has them now",
			},
		},
		"TakenBack": {
			reason: "a manager that took it back has it once",
			since: func(live map[string]any, es fields.Entries) (map[string]any, fields.Entries) {
				return live, append(es, updated(t, "legacy", `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{"f:image":{}}}}}`))
			},
		},
		"Applied": {
			reason: "if the item was removed, no manager gets it back",
			since: func(_ map[string]any, es fields.Entries) (map[string]any, fields.Entries) {
				return object(t, `{apiVersion: v1, spec: {list: [{name: b, image: j}], replicas: 3}}`), without(es, "eno")
			},
			want: map[string][]string{"helm (Apply)": {"spec.replicas"}, "legacy (Update v1)": {"spec.list"}},
			notes: []string{
				"helm (Apply) cannot get spec.list[name=a].image back: the object no longer has them",
				"legacy (Update v1) cannot get spec.list[name=a], spec.list[name=a].image, spec.list[name=a].name back: the object no longer has them",
			},
		},
		"Forgotten": {
			reason: "live fields that the applier released are returned",
			since: func(live map[string]any, es fields.Entries) (map[string]any, fields.Entries) {
				return live, without(es, "eno")
			},
			want: map[string][]string{"helm (Apply)": {"spec.replicas", "spec.list[name=a].image"}, "legacy (Update v1)": {"spec.list", "spec.list[name=a]", "spec.list[name=a].image", "spec.list[name=a].name"}},
		},
		"AppliedInOtherVersion": {
			reason: "an applier that has gone on to another version is not given paths of the old one",
			since: func(live map[string]any, es fields.Entries) (map[string]any, fields.Entries) {
				return live, append(without(es, "helm"), in("v2", applied(t, "helm", `{"f:spec":{"f:count":{}}}`)))
			},
			want: map[string][]string{
				"eno (Apply)": {"spec.list[name=a]", "spec.list[name=a].image"}, "helm (Apply) in v2": {"spec.count"},
				"legacy (Update v1)": {"spec.list", "spec.list[name=a]", "spec.list[name=a].image", "spec.list[name=a].name"},
			},
			notes: []string{"helm (Apply) keeps spec.list[name=a].image: they are in version v2, which cannot be mixed with the object's"},
		},
		"GainerInOtherVersion": {
			reason: "and if it is the one that gained, it keeps what it has",
			since: func(live map[string]any, es fields.Entries) (map[string]any, fields.Entries) {
				return live, append(without(es, "eno"), in("v2", applied(t, "eno", `{"f:spec":{"f:count":{}}}`)))
			},
			want: map[string][]string{
				"eno (Apply) in v2": {"spec.count"}, "helm (Apply)": {"spec.replicas", "spec.list[name=a].image"},
				"legacy (Update v1)": {"spec.list", "spec.list[name=a]", "spec.list[name=a].image", "spec.list[name=a].name"},
			},
			notes: []string{"eno (Apply) keeps spec.list[name=a], spec.list[name=a].image, spec.list[name=a].name: they are in version v2, which cannot be mixed with the object's"},
		},
		"RetaggedAndMore": {
			reason: "an entry that was retagged and has more now stays in the new version", request: fields.Request{Retag: true},
			before: fields.Entries{in("v0", applied(t, "eno", `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}},"f:old":{}}}`)), in("v0", updated(t, "legacy", `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{"f:image":{}}}}}`))},
			since: func(live map[string]any, es fields.Entries) (map[string]any, fields.Entries) {
				return live, append(es, applied(t, "eno", `{"f:spec":{"f:replicas":{}}}`))
			},
			want:  map[string][]string{"eno (Apply)": {"spec.replicas", "spec.list[name=a]", "spec.list[name=a].name"}, "legacy (Update v0)": {"spec.list[name=a].image"}},
			notes: []string{"eno (Apply) was in version v0 and is read in the version of the object: spec.replicas, spec.list[name=a], spec.list[name=a].name"},
		},
		"RetaggedAndLess": {
			reason: "as does one that has lost something since", request: fields.Request{Retag: true},
			before: fields.Entries{in("v0", applied(t, "eno", `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}},"f:replicas":{}}}`)), in("v0", updated(t, "legacy", `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{"f:image":{}}}}}`))},
			since: func(live map[string]any, es fields.Entries) (map[string]any, fields.Entries) {
				return live, append(without(es, "eno"), applied(t, "eno", `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:image":{}}}}}`))
			},
			want:  map[string][]string{"eno (Apply)": {"spec.list[name=a]", "spec.list[name=a].name"}, "legacy (Update v0)": {"spec.list[name=a].image"}},
			notes: []string{"eno (Apply) was in version v0 and is read in the version of the object: spec.list[name=a], spec.list[name=a].name"},
		},
		"First": {
			reason: "the first entry of an object is not taken away again: the server would forget that there ever was one", before: fields.Entries{},
			request: fields.Request{Previous: set(t, `{"f:spec":{"f:replicas":{}}}`), Scope: fields.MustParseScope("spec")},
			want:    map[string][]string{"eno (Apply)": {"spec.replicas"}},
			notes:   []string{"nothing is changed: no entry would be left, and the server would drop all ownership"},
		},
		"FirstAndOthers": {
			reason: "unless there are other entries by now", before: fields.Entries{},
			request: fields.Request{Previous: set(t, `{"f:spec":{"f:replicas":{}}}`), Scope: fields.MustParseScope("spec")},
			since: func(live map[string]any, es fields.Entries) (map[string]any, fields.Entries) {
				return live, append(es, updated(t, "new", `{"f:spec":{"f:replicas":{}}}`))
			},
			want: map[string][]string{"new (Update v1)": {"spec.replicas"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.before == nil {
				tc.before = undoEntries(t)
			}
			tc.request.To = "eno"
			if tc.request.Mode == "" && tc.request.Scope.Equal(fields.Scope{}) {
				tc.request.Scope = fields.MustParseScope("spec.list")
			}
			live := object(t, undoLive)
			p, err := fields.NewPlan(live, tc.before, tc.request)
			if err != nil || !p.Changed() {
				t.Fatalf("nothing to undo: %v, error %v", show(p.Entries), err)
			}
			var record fields.Record
			if err := json.Unmarshal([]byte(mustJSON(t, p.Record())), &record); err != nil {
				t.Fatal(err)
			}
			entries := p.Entries
			if tc.since != nil {
				live, entries = tc.since(live, append(fields.Entries(nil), p.Entries...))
			}
			got, err := fields.Undo(live, entries, record)
			if err != nil {
				t.Fatal(err)
			}
			if tc.want == nil {
				diff(t, tc.reason, show(tc.before.Merge()), show(got.Entries))
			} else {
				diff(t, tc.reason, tc.want, show(got.Entries))
			}
			diff(t, tc.reason, tc.notes, texts(got.Notes))
			again, err := fields.Undo(live, got.Entries, record)
			if err != nil || again.Changed() {
				t.Errorf("%s: a second undo has changes too, error %v:\n%v", tc.reason, err, show(again.Entries))
			}
		})
	}
}

func TestUndoMoves(t *testing.T) {
	live, before := object(t, undoLive), undoEntries(t)
	p, err := fields.NewPlan(live, before, fields.Request{To: "eno", Scope: fields.MustParseScope("spec.list")})
	if err != nil {
		t.Fatal(err)
	}
	u, err := fields.Undo(live, p.Entries, p.Record())
	if err != nil {
		t.Fatal(err)
	}
	eno := fields.Identity{Manager: "eno", Operation: fields.Apply}
	helm := fields.Identity{Manager: "helm", Operation: fields.Apply}
	legacy := fields.Identity{Manager: "legacy", Operation: fields.Update, APIVersion: "v1"}
	image, whole := set(t, `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{"f:image":{}}}}}`), set(t, `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:image":{},"f:name":{}}}}}`)
	diff(t, "moves name the source", []fields.Move{{From: helm, To: eno, Fields: image}, {From: legacy, To: eno, Fields: whole}}, p.Moves)
	diff(t, "and the entry that gets the fields back", []fields.Move{{From: eno, To: helm, Fields: image}, {From: eno, To: legacy, Fields: whole}}, u.Moves)
}

func TestUndoErrors(t *testing.T) {
	_, err := fields.Undo(nil, fields.Entries{{Manager: "x", Operation: fields.Update, Fields: fieldpath.NewSet(path("a"))}}, fields.Record{})
	if e := (fields.Defects{}); !errors.As(err, &e) {
		t.Errorf("got %v", err)
	}
	var r fields.Record
	for _, bad := range []string{`{"moves":[{"fieldsV1":3}]}`, `{"moves":[{"from":3}]}`, `{"moves":[3]}`, `{"before":[{}]}`} {
		if json.Unmarshal([]byte(bad), &r) == nil {
			t.Errorf("%s was read", bad)
		}
	}
}
