package fields_test

import (
	"slices"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/arbor-control/arbor/engine/fields"
)

// TestTreesAgreeWithTwin compares every field of random objects.
func TestTreesAgreeWithTwin(t *testing.T) {
	states := map[fields.State]int{}
	ghosts := 0
	for round := range rounds {
		w := newWorld(uint64(round))
		live := w.object(7)
		es := w.entries(live).Merge()
		tree, twin := fields.New(live, es, fieldSet(live)), newTwin(live, es)

		type view struct {
			Holders []fields.Identity
			State   fields.State
		}
		want, got := map[string]view{}, map[string]view{}
		for path := range twin.live {
			want[path] = view{Holders: twin.holders(path), State: twin.state(path)}
			states[want[path].State]++
		}
		for n := range tree.Root().All() {
			switch path := line(n.Path()); {
			case n == tree.Root():
			case n.Live:
				holders := tree.Identities(n.Holders)
				slices.SortFunc(holders, fields.Identity.Compare)
				got[path] = view{Holders: slices.Clip(append([]fields.Identity(nil), holders...)), State: n.State}
			case twin.live[path]:
				t.Errorf("%s is live", path)
			default:
				ghosts++
			}
		}
		diff(t, "-twin, +tree", want, got)
		if t.Failed() {
			t.Fatalf("round %d: %s\nentries %s", round, mustJSON(t, live), mustJSON(t, es))
		}
	}
	for _, s := range []fields.State{fields.Unowned, fields.Sole, fields.CoOwned, fields.Split} {
		if states[s] < rounds {
			t.Errorf("%s was met %d times, want at least %d", s, states[s], rounds)
		}
	}
	if ghosts < rounds/2 {
		t.Errorf("%d ghosts were met, want at least %d", ghosts, rounds/2)
	}
}

// TestOwnershipAgreesWithTwin asks for every scope.
func TestOwnershipAgreesWithTwin(t *testing.T) {
	for round := range rounds / 2 {
		w := newWorld(uint64(round))
		live := w.object(7)
		es := w.entries(live).Merge()
		tree, twin := fields.New(live, es, fieldSet(live)), newTwin(live, es)
		for _, s := range twinScopes {
			for _, manager := range []string{"eno", "helm", "nobody"} {
				exists, fully, others := twin.check(s, manager)
				got := tree.CheckOwnership(fields.MustParseScope(s.text), manager)
				diff(t, s.text+" for "+manager, []any{exists, fully, others}, []any{got.ScopeExists, got.FullyOwned, got.OtherManagers})
			}
		}
		if t.Failed() {
			t.Fatalf("round %d: %s\nentries %s", round, mustJSON(t, live), mustJSON(t, es))
		}
	}
}

// union returns every path that any entry holds.
func union(es fields.Entries) *fieldpath.Set {
	all := &fieldpath.Set{}
	for _, e := range es {
		all = all.Union(e.Fields)
	}

	return all
}

// TestPlansAgreeWithTwin also checks what is true of every plan.
func TestPlansAgreeWithTwin(t *testing.T) {
	changed := map[fields.Mode]int{}
	for round := range rounds * 2 {
		w := newWorld(uint64(round))
		live := w.object(7)
		es := w.entries(live)
		s := twinScopes[w.IntN(len(twinScopes))]
		r := fields.Request{To: "eno", Scope: fields.MustParseScope(s.text), Mode: fields.Needed, Known: fieldSet(live)}
		if w.chance(3) {
			r.Mode = fields.Whole
		}
		if w.chance(6) {
			r.Next = fieldSet(w.wanted(live))
		}
		if w.chance(3) {
			r.Previous = fieldSet(w.wanted(live))
		}
		given := mustJSON(t, []any{live, es})
		p, err := fields.NewPlan(live, es, r)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, "nothing that was given is written to", given, mustJSON(t, []any{live, es}))

		want := newTwin(live, es).plan(s, r.To, r.Mode == fields.Whole, linesOf(r.Previous), linesOf(r.Next))
		got := map[fields.Identity]lines{}
		for _, e := range p.Entries {
			got[e.Identity()] = linesOf(e.Fields)
		}
		diff(t, "-twin, +plan", want, got)
		checkPlan(t, live, es, r, p)
		if t.Failed() {
			t.Fatalf("round %d: %s of %s from %s\nentries %s", round, r.Mode, s.text, mustJSON(t, live), mustJSON(t, es))
		}
		if p.Changed() {
			changed[r.Mode]++
		}
	}
	for _, m := range []fields.Mode{fields.Needed, fields.Whole} {
		if changed[m] < rounds/5 {
			t.Errorf("%d plans of mode %s changed anything, want at least %d", changed[m], m, rounds/5)
		}
	}
}

// checkPlan is what is true of every plan.
func checkPlan(t *testing.T, live map[string]any, es fields.Entries, r fields.Request, p *fields.Plan) {
	t.Helper()
	if err := p.Entries.Check(); err != nil {
		t.Errorf("the server would not take the entries: %v", err)
	}
	before := union(es.Merge())
	for _, m := range p.Moves {
		if m.From == (fields.Identity{}) {
			before = before.Union(m.Fields)
		}
	}
	if !before.Equals(union(p.Entries)) {
		t.Error("something is owned that was not, or the other way round")
	}
	if p.Changed() != (len(p.Moves) > 0) {
		t.Errorf("the plan reports changed: %t, and has %d moves", p.Changed(), len(p.Moves))
	}
	for _, m := range p.Moves {
		m.Fields.Iterate(func(path fieldpath.Path) {
			lifted := len(path) == 2 || path[1].String() == ".owners" || len(path) == 4 && path[3].String() == ".command"
			if !r.Scope.Matches(path) && !lifted {
				t.Errorf("%s is not in the scope", fields.FormatPath(path))
			}
		})
	}
	again, err := fields.NewPlan(live, p.Entries, r)
	if err != nil || again.Changed() {
		t.Errorf("the second run has %d moves, error %v", len(again.Moves), err)
	}
	given := mustJSON(t, []any{live, es, p.Record(), p.Entries})
	undo, err := fields.Undo(live, p.Entries, p.Record())
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "nothing that was given is written to", given, mustJSON(t, []any{live, es, p.Record(), p.Entries}))
	if !fields.Equal(undo.Entries, es) || len(undo.Notes) > 0 {
		t.Errorf("undone, it is not what it was; %v", texts(undo.Notes))
		diff(t, "-before, +undone", show(es.Merge()), show(undo.Entries))
	}
	if undo.Changed() != p.Changed() {
		t.Errorf("the plan reports changed: %t, and undoing it %t", p.Changed(), undo.Changed())
	}
}

// TestPlansMakeRoom checks that, after a plan for all of spec, an apply removes everything there
// that it no longer names, also with the server's own merge code.
func TestPlansMakeRoom(t *testing.T) {
	mended := 0
	for round := range rounds {
		w := newWorld(uint64(round))
		live := w.object(7)
		wanted := w.wanted(live)
		es := w.entries(live).Merge()
		for i := range es {
			es[i].APIVersion, es[i].Subresource = "v1", ""
		}
		next := fieldSet(wanted)
		p, err := fields.NewPlan(live, es, fields.Request{To: "eno", Scope: fields.MustParseScope("spec"), Next: next, Known: fieldSet(live)})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range fields.New(live, es, fieldSet(live)).Removals("eno", nil, next) {
			if r.Path[0].String() == ".spec" && (r.Fate == fields.Kept || r.Fate == fields.Partial) {
				mended++
			}
		}
		removals := fields.New(live, p.Entries, fieldSet(live)).Removals("eno", nil, next)
		for _, r := range removals {
			if r.Path[0].String() == ".spec" && r.Fate != fields.Removed && r.Fate != fields.Swept {
				t.Errorf("after the plan: %s", r)
			}
		}
		after, err := apply(t, live, wanted, p.Entries)
		if err != nil {
			t.Errorf("the server returns %v", err)
		} else {
			compare(t, live, after, removals)
		}
		if t.Failed() {
			t.Fatalf("round %d: %s\nentries %s\nwanted %s", round, mustJSON(t, live), mustJSON(t, es), mustJSON(t, wanted))
		}
	}
	if mended < rounds {
		t.Errorf("%d removals were fixed, want at least %d", mended, rounds)
	}
}
