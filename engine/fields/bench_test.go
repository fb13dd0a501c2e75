package fields_test

import (
	"testing"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/engine/fields/fieldstest"
)

// A load is an object with its entries, and how many bytes it has as JSON.
type load struct {
	name    string
	live    map[string]any
	entries fields.Entries
	bytes   int
}

func newLoad(t testing.TB, size fieldstest.Size) load {
	t.Helper()
	l := load{name: size.Name, live: size.Deployment()}
	es, err := fields.Read(l.live)
	if err != nil {
		t.Fatal(err)
	}
	l.entries, l.bytes = es.Merge(), len(mustJSON(t, l.live))

	return l
}

func loads(t testing.TB) []load {
	t.Helper()
	all := []load{newLoad(t, fieldstest.Size{Name: "small", Managers: 2, Containers: 2, Variables: 5})}
	for _, size := range fieldstest.Sizes {
		all = append(all, newLoad(t, size))
	}

	return all
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

func BenchmarkRead(b *testing.B) {
	benchmark(b, func(l load) {
		if _, err := fields.Read(l.live); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkCheckOwnership(b *testing.B) {
	scope := fields.MustParseScope(fieldstest.Scope)
	trees := map[string]*fields.Tree{}
	for _, l := range loads(b) {
		trees[l.name] = fields.New(l.live, l.entries)
	}
	benchmark(b, func(l load) { trees[l.name].CheckOwnership(scope, fieldstest.Applier) })
}

func BenchmarkRemovals(b *testing.B) {
	trees := map[string]*fields.Tree{}
	for _, l := range loads(b) {
		trees[l.name] = fields.New(l.live, l.entries)
	}
	benchmark(b, func(l load) { trees[l.name].Removals(fieldstest.Applier, nil, nil) })
}

func BenchmarkNewPlan(b *testing.B) {
	benchmark(b, func(l load) {
		p, err := fields.NewPlan(l.live, l.entries, fields.Request{To: fieldstest.Applier, Scope: fields.MustParseScope(fieldstest.Scope)})
		if err != nil || !p.Changed() {
			b.Fatal(err)
		}
	})
}

func BenchmarkUndo(b *testing.B) {
	plans := map[string]*fields.Plan{}
	for _, l := range loads(b) {
		p, err := fields.NewPlan(l.live, l.entries, fields.Request{To: fieldstest.Applier, Scope: fields.MustParseScope(fieldstest.Scope)})
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
			if _, err := fields.NewPlan(l.live, l.entries, fields.Request{To: fieldstest.Applier, Scope: fields.MustParseScope(fieldstest.Scope)}); err != nil {
				t.Fatal(err)
			}
		},
		"removals": func(l load) { fields.New(l.live, l.entries).Removals(fieldstest.Applier, nil, nil) },
	} {
		small := 0.0
		for _, l := range []load{
			newLoad(t, fieldstest.Size{Name: "small", Managers: 2, Containers: 2, Variables: 5}),
			newLoad(t, fieldstest.Size{Name: "managers", Managers: 20, Containers: 2, Variables: 5}),
			newLoad(t, fieldstest.Size{Name: "containers", Managers: 2, Containers: 40, Variables: 5}),
			newLoad(t, fieldstest.Size{Name: "variables", Managers: 2, Containers: 2, Variables: 100}),
		} {
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

// TestLargest checks that the largest object is as large as its name claims.
func TestLargest(t *testing.T) {
	sizes := fieldstest.Sizes
	if l := newLoad(t, sizes[len(sizes)-1]); l.bytes < 1<<20 || l.bytes > 11<<20/10 {
		t.Errorf("%s has %d bytes, want a MiB", l.name, l.bytes)
	}
}
