package fields_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/arbor-control/arbor/engine/fields"
)

// A load is an object with its entries, and how many bytes both have as JSON.
type load struct {
	name    string
	live    map[string]any
	entries fields.Entries
	bytes   int
}

// newLoad makes a Deployment. Each manager holds each second field.
func newLoad(t testing.TB, name string, managers, containers, env int) load {
	t.Helper()
	var all []any
	sets := make([]map[string]any, managers)
	for m := range sets {
		sets[m] = map[string]any{}
	}
	for c := range containers {
		var vars []any
		held := make([]map[string]any, managers)
		for m := range held {
			held[m] = map[string]any{}
		}
		for e := range env {
			v := fmt.Sprintf("VARIABLE_%d", e)
			vars = append(vars, map[string]any{"name": v, "value": "some value that says something"})
			for m := range held {
				if (e+m)%2 == 0 {
					held[m][fmt.Sprintf(`k:{"name":%q}`, v)] = map[string]any{".": map[string]any{}, "f:name": map[string]any{}, "f:value": map[string]any{}}
				}
			}
		}
		container := fmt.Sprintf("container-%d", c)
		all = append(all, map[string]any{"name": container, "image": "registry.example.com/some/image:1.2.3", "command": []any{"run", "it"}, "env": vars})
		for m := range held {
			sets[m][fmt.Sprintf(`k:{"name":%q}`, container)] = map[string]any{
				".": map[string]any{}, "f:name": map[string]any{}, "f:image": map[string]any{}, "f:command": map[string]any{}, "f:env": held[m],
			}
		}
	}
	l := load{name: name, live: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"replicas": 3, "template": map[string]any{"spec": map[string]any{"initContainers": all}}},
	}}
	for m, held := range sets {
		raw, err := json.Marshal(map[string]any{"f:spec": map[string]any{"f:template": map[string]any{"f:spec": map[string]any{"f:initContainers": held}}}})
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := fields.ParseFields(raw)
		if err != nil {
			t.Fatal(err)
		}
		e := fields.Entry{Manager: fmt.Sprintf("manager-%d", m), Operation: fields.Update, APIVersion: "apps/v1", Fields: parsed}
		if m == 0 {
			e.Manager, e.Operation = "eno", fields.Apply
		}
		l.entries = append(l.entries, e)
	}
	l.entries = l.entries.Merge()
	l.bytes = len(mustJSON(t, l.live)) + len(mustJSON(t, l.entries))

	return l
}

func loads(t testing.TB) []load {
	t.Helper()

	return []load{
		newLoad(t, "small", 2, 2, 5),
		newLoad(t, "10managers", 10, 5, 10),
		newLoad(t, "50containers", 3, 50, 20),
		newLoad(t, "1MiB", 10, 50, 60),
	}
}

// benchmark also reports the time for a byte, which should be the same for all
// loads.
func benchmark(b *testing.B, run func(l load)) {
	b.Helper()
	for _, l := range loads(b) {
		b.Run(l.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(l.bytes))
			for b.Loop() {
				run(l)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(l.bytes), "ns/B")
		})
	}
}

func BenchmarkTree(b *testing.B) {
	benchmark(b, func(l load) { fields.New(l.live, l.entries) })
}

func BenchmarkReadList(b *testing.B) {
	lists := map[string]any{}
	for _, l := range loads(b) {
		var list any
		if err := json.Unmarshal([]byte(mustJSON(b, l.entries)), &list); err != nil {
			b.Fatal(err)
		}
		lists[l.name] = list
	}
	benchmark(b, func(l load) {
		if _, err := fields.ReadList(lists[l.name]); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkCheckOwnership(b *testing.B) {
	scope := fields.MustParseScope(initContainers)
	trees := map[string]*fields.Tree{}
	for _, l := range loads(b) {
		trees[l.name] = fields.New(l.live, l.entries)
	}
	benchmark(b, func(l load) { trees[l.name].CheckOwnership(scope, "eno") })
}

func BenchmarkRemovals(b *testing.B) {
	trees := map[string]*fields.Tree{}
	for _, l := range loads(b) {
		trees[l.name] = fields.New(l.live, l.entries)
	}
	benchmark(b, func(l load) { trees[l.name].Removals("eno", nil, nil) })
}

func BenchmarkNewPlan(b *testing.B) {
	benchmark(b, func(l load) {
		p, err := fields.NewPlan(l.live, l.entries, fields.Request{To: "eno", Scope: fields.MustParseScope(initContainers)})
		if err != nil || !p.Changed() {
			b.Fatal(err)
		}
	})
}

func BenchmarkUndo(b *testing.B) {
	plans := map[string]*fields.Plan{}
	for _, l := range loads(b) {
		p, err := fields.NewPlan(l.live, l.entries, fields.Request{To: "eno", Scope: fields.MustParseScope(initContainers)})
		if err != nil {
			b.Fatal(err)
		}
		plans[l.name] = p
	}
	benchmark(b, func(l load) {
		if u, err := fields.Undo(l.live, plans[l.name].Entries, plans[l.name].Record()); err != nil || !u.Changed() {
			b.Fatal(err)
		}
	})
}

// TestCostIsLinear compares what is allocated for a byte, which unlike time is
// the same on every machine.
func TestCostIsLinear(t *testing.T) {
	for name, run := range map[string]func(load){
		"tree": func(l load) { fields.New(l.live, l.entries) },
		"plan": func(l load) {
			if _, err := fields.NewPlan(l.live, l.entries, fields.Request{To: "eno", Scope: fields.MustParseScope(initContainers)}); err != nil {
				t.Fatal(err)
			}
		},
		"removals": func(l load) { fields.New(l.live, l.entries).Removals("eno", nil, nil) },
	} {
		small := 0.0
		for _, l := range []load{newLoad(t, "small", 2, 2, 5), newLoad(t, "managers", 20, 2, 5), newLoad(t, "containers", 2, 40, 5), newLoad(t, "variables", 2, 2, 100)} {
			each := testing.AllocsPerRun(1, func() { run(l) }) / float64(l.bytes)
			if small == 0 {
				small = each
			}
			if each > 2*small {
				t.Errorf("%s of %s: %.4f allocations for a byte, and %.4f in a small object: want no more than twice as many", name, l.name, each, small)
			}
		}
	}
}
