package synthesis_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

func TestDependencies(t *testing.T) {
	on := func(names ...string) func(*enov1.Composition) {
		return func(c *enov1.Composition) {
			for _, name := range names {
				c.Spec.DependsOn = append(c.Spec.DependsOn, enov1.CompositionDependency{Name: name})
			}
		}
	}
	ready := func(c *enov1.Composition) { c.Status.CurrentSynthesis.Ready = after(1) }
	cases := map[string]struct {
		reason string
		all    []*enov1.Composition
		want   map[string]string // reason, then that of each dependency
	}{
		"None":     {reason: "It needs nobody.", all: []*enov1.Composition{named("a")}},
		"Ready":    {reason: "All are ready.", all: []*enov1.Composition{named("a", on("b")), named("b", ready)}},
		"NotReady": {reason: "One is not.", all: []*enov1.Composition{named("a", on("b")), named("b")}, want: map[string]string{"": "WaitingOnDependencies", "b": "DependencyNotReady"}},
		"NotFound": {reason: "One does not exist.", all: []*enov1.Composition{named("a", on("b"))}, want: map[string]string{"": "WaitingOnDependencies", "b": "DependencyNotFound"}},
		"Circle":   {reason: "One waits for us, by way of another.", all: []*enov1.Composition{named("a", on("b")), named("b", on("c"), ready), named("c", on("a"))}, want: map[string]string{"": "CircularDependency", "b": "CircularDependency"}},
		"Itself":   {reason: "The smallest circle.", all: []*enov1.Composition{named("a", on("a"))}, want: map[string]string{"": "CircularDependency", "a": "CircularDependency"}},
		"Beside":   {reason: "A circle of others is theirs.", all: []*enov1.Composition{named("a", on("b")), named("b", on("c")), named("c", on("b"))}, want: map[string]string{"": "WaitingOnDependencies", "b": "DependencyNotReady"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got map[string]string
			if st := synthesis.Dependencies(tc.all[0], lookup(tc.all), tenancy.Rules{}); st != nil {
				got = map[string]string{"": st.Reason}
				for _, by := range st.BlockedBy {
					got[by.Name] = by.Reason
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}

func lookup(all []*enov1.Composition) synthesis.Lookup {
	return func(namespace, name string) *enov1.Composition {
		for _, c := range all {
			if c.Namespace == namespace && c.Name == name {
				return c
			}
		}

		return nil
	}
}

func TestDependents(t *testing.T) {
	on := func(name string) func(*enov1.Composition) {
		return func(c *enov1.Composition) { c.Spec.DependsOn = []enov1.CompositionDependency{{Name: name}} }
	}
	a, b := named("a"), named("b", on("a"))
	if st := synthesis.Dependents(a, []*enov1.Composition{b}, lookup([]*enov1.Composition{a, b}), tenancy.Rules{}); st == nil || st.BlockedBy[0].Reason != enov1.ReasonDependentNotDeleted {
		t.Errorf("a goes before b, which needs it: %+v", st)
	}
	b.Finalizers = nil
	if st := synthesis.Dependents(a, []*enov1.Composition{b}, lookup([]*enov1.Composition{a, b}), tenancy.Rules{}); st != nil {
		t.Errorf("b has nothing left, and a waits for it: %+v", st)
	}
	a, b = named("a", on("b")), named("b", on("a"))
	if st := synthesis.Dependents(a, []*enov1.Composition{b}, lookup([]*enov1.Composition{a, b}), tenancy.Rules{}); st != nil {
		t.Errorf("two in a circle wait for each other for ever: %+v", st)
	}
}

// TestHiddenDependencies has tenants who learn nothing about each other.
func TestHiddenDependencies(t *testing.T) {
	on := func(tenant, name string) func(*enov1.Composition) {
		return func(c *enov1.Composition) {
			c.Spec.DependsOn = append(c.Spec.DependsOn, enov1.CompositionDependency{Namespace: tenant, Name: name})
		}
	}
	ready := func(c *enov1.Composition) { c.Status.CurrentSynthesis.Ready = after(1) }
	m := namespace("m")
	cases := map[string]struct {
		reason           string
		all              []*enov1.Composition
		open, restricted string // the reason of the dependency on b
	}{
		"Missing":   {"Whether it exists is not shown.", []*enov1.Composition{named("a", on("m", "b"))}, enov1.ReasonDependencyNotFound, enov1.ReasonDependencyNotReady},
		"NotReady":  {"It looks the same.", []*enov1.Composition{named("a", on("m", "b")), named("b", m)}, enov1.ReasonDependencyNotReady, enov1.ReasonDependencyNotReady},
		"Ready":     {"It orders syntheses.", []*enov1.Composition{named("a", on("m", "b")), named("b", m, ready)}, "", ""},
		"Own":       {"Nothing is hidden within a namespace.", []*enov1.Composition{named("a", on("n", "b"))}, enov1.ReasonDependencyNotFound, enov1.ReasonDependencyNotFound},
		"Circle":    {"Nor is it shown what it depends on.", []*enov1.Composition{named("a", on("m", "b")), named("b", m, on("n", "a"))}, enov1.ReasonCircularDependency, enov1.ReasonDependencyNotReady},
		"Detour":    {"Also not by way of another one.", []*enov1.Composition{named("a", on("n", "b")), named("b", on("m", "c")), named("c", m, on("n", "a"))}, enov1.ReasonCircularDependency, enov1.ReasonDependencyNotReady},
		"OwnCircle": {"A circle of its own is shown.", []*enov1.Composition{named("a", on("n", "b")), named("b", on("n", "a"))}, enov1.ReasonCircularDependency, enov1.ReasonCircularDependency},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for want, rules := range map[*string]tenancy.Rules{&tc.open: {}, &tc.restricted: restricted} {
				got := ""
				if st := synthesis.Dependencies(tc.all[0], lookup(tc.all), rules); st != nil {
					got = st.BlockedBy[0].Reason
				}
				if got != *want {
					t.Errorf("%s\nrules %+v, got %q, want %q", tc.reason, rules, got, *want)
				}
			}
		})
	}
}

// TestHiddenDependents deletes a composition that compositions of other namespaces depend on.
func TestHiddenDependents(t *testing.T) {
	on := func(c *enov1.Composition) {
		c.Spec.DependsOn = []enov1.CompositionDependency{{Namespace: "n", Name: "a"}}
	}
	own, other, third := named("own", on), named("other", on, namespace("m")), named("third", on, namespace("l"))
	anonymous := enov1.BlockedBy{Reason: enov1.ReasonDependentNotDeleted}
	shown := func(tenant, name string) enov1.BlockedBy {
		return enov1.BlockedBy{Namespace: tenant, Name: name, Reason: enov1.ReasonDependentNotDeleted}
	}
	cases := map[string]struct {
		reason  string
		rules   tenancy.Rules
		allowed string
		all     []*enov1.Composition
		want    []enov1.BlockedBy
	}{
		"Cluster":   {reason: "Without restriction, it waits for all.", all: []*enov1.Composition{own, other}, want: []enov1.BlockedBy{shown("m", "other"), shown("n", "own")}},
		"Forbidden": {reason: "A tenant does not block another one.", rules: restricted, all: []*enov1.Composition{other, third}},
		"Own":       {reason: "It does block itself.", rules: restricted, all: []*enov1.Composition{own, other}, want: []enov1.BlockedBy{shown("n", "own")}},
		"Allowed":   {reason: "The target can allow it, and learns no name.", rules: restricted, allowed: "m", all: []*enov1.Composition{own, other, third}, want: []enov1.BlockedBy{shown("n", "own"), anonymous}},
		"All":       {reason: "Nor how many there are.", rules: restricted, allowed: "*", all: []*enov1.Composition{other, third}, want: []enov1.BlockedBy{anonymous}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := named("a", func(c *enov1.Composition) { c.Annotations[enov1.AnnotationDependentsFrom] = tc.allowed })
			var got []enov1.BlockedBy
			if st := synthesis.Dependents(a, tc.all, lookup(append(tc.all, a)), tc.rules); st != nil {
				got = st.BlockedBy
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}

// TestHiddenCircle deletes two compositions of different namespaces that depend on each other
// and allow it: neither waits.
func TestHiddenCircle(t *testing.T) {
	allow := func(c *enov1.Composition) { c.Annotations[enov1.AnnotationDependentsFrom] = "*" }
	a := named("a", allow, func(c *enov1.Composition) {
		c.Spec.DependsOn = []enov1.CompositionDependency{{Namespace: "m", Name: "b"}}
	})
	b := named("b", allow, namespace("m"), func(c *enov1.Composition) {
		c.Spec.DependsOn = []enov1.CompositionDependency{{Namespace: "n", Name: "a"}}
	})
	find := lookup([]*enov1.Composition{a, b})
	for _, st := range []*enov1.DependencyStatus{
		synthesis.Dependents(a, []*enov1.Composition{b}, find, restricted), synthesis.Dependents(b, []*enov1.Composition{a}, find, restricted),
	} {
		if st != nil {
			t.Errorf("two in a circle wait for each other: %+v", st)
		}
	}
}
