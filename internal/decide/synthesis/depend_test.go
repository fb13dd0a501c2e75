package synthesis_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/synthesis"
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
			if st := synthesis.Dependencies(tc.all[0], lookup(tc.all)); st != nil {
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
	if st := synthesis.Dependents(a, []*enov1.Composition{b}, lookup([]*enov1.Composition{a, b})); st == nil || st.BlockedBy[0].Reason != enov1.ReasonDependentNotDeleted {
		t.Errorf("a goes before b, which needs it: %+v", st)
	}
	b.Finalizers = nil
	if st := synthesis.Dependents(a, []*enov1.Composition{b}, lookup([]*enov1.Composition{a, b})); st != nil {
		t.Errorf("b has nothing left, and a waits for it: %+v", st)
	}
	a, b = named("a", on("b")), named("b", on("a"))
	if st := synthesis.Dependents(a, []*enov1.Composition{b}, lookup([]*enov1.Composition{a, b})); st != nil {
		t.Errorf("two in a circle wait for each other for ever: %+v", st)
	}
}
