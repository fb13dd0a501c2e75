package synthesis

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/engine/tree"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// A Lookup finds a composition, or nil.
type Lookup func(namespace, name string) *enov1.Composition

// Dependencies returns the compositions that one waits for before it is synthesized, in the order
// in which it names them; nil if there are none. Of a composition that the rules hide it reports
// only that it is not ready, whether or not it exists.
func Dependencies(c *enov1.Composition, find Lookup, rules tenancy.Rules) *enov1.DependencyStatus {
	var by []enov1.BlockedBy
	circular := false
	for _, d := range c.Spec.DependsOn {
		namespace := namespaceOf(d, c)
		reason := enov1.ReasonDependencyNotReady
		on := find(namespace, d.Name)
		hidden := rules.Hides(c.Namespace, namespace)
		switch {
		case on == nil && !hidden:
			reason = enov1.ReasonDependencyNotFound
		case !hidden && reaches(on, c, visible(find, c.Namespace, rules)):
			reason, circular = enov1.ReasonCircularDependency, true
		case isReady(on):
			continue
		}
		by = append(by, enov1.BlockedBy{Name: d.Name, Namespace: namespace, Reason: reason})
	}
	if len(by) == 0 {
		return nil
	}
	st := &enov1.DependencyStatus{Blocked: true, Reason: enov1.StatusWaitingOnDependencies, BlockedBy: by}
	if circular {
		st.Reason = enov1.ReasonCircularDependency
	}

	return st
}

// isReady reports whether a composition, nil if it does not exist, is ready for its dependents.
func isReady(c *enov1.Composition) bool {
	return c != nil && c.Status.CurrentSynthesis != nil && c.Status.CurrentSynthesis.Ready != nil && c.DeletionTimestamp == nil
}

// visible finds only what is not hidden from a namespace.
func visible(find Lookup, from string, rules tenancy.Rules) Lookup {
	return func(namespace, name string) *enov1.Composition {
		if rules.Hides(from, namespace) {
			return nil
		}

		return find(namespace, name)
	}
}

// Dependents returns the compositions that one waits for before it is deleted: those that depend on
// it and still exist, as far as the rules allow them to delay it. Those of a cycle would wait for
// each other, so they do not wait. Hidden ones are shown as one without a name.
func Dependents(c *enov1.Composition, dependents []*enov1.Composition, find Lookup, rules tenancy.Rules) *enov1.DependencyStatus {
	var by []enov1.BlockedBy
	hidden := false
	for _, d := range dependents {
		switch {
		case !rules.WaitsFor(c, d.Namespace) || !slices.Contains(d.Finalizers, enov1.Finalizer) || reaches(c, d, find):
		case rules.Hides(c.Namespace, d.Namespace):
			hidden = true
		default:
			by = append(by, enov1.BlockedBy{Name: d.Name, Namespace: d.Namespace, Reason: enov1.ReasonDependentNotDeleted})
		}
	}
	slices.SortFunc(by, func(a, b enov1.BlockedBy) int {
		return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
	})
	if hidden {
		by = append(by, enov1.BlockedBy{Reason: enov1.ReasonDependentNotDeleted})
	}
	if len(by) == 0 {
		return nil
	}

	return &enov1.DependencyStatus{Blocked: true, Reason: enov1.StatusWaitingOnDependents, BlockedBy: by}
}

// reaches reports whether a composition depends on another, directly or through others, or
// is that one itself.
func reaches(from, to *enov1.Composition, find Lookup) bool {
	start, end := keyOf(from), keyOf(to)
	read := map[types.NamespacedName]*enov1.Composition{start: from}
	for k := range tree.Reachable([]types.NamespacedName{start}, func(k types.NamespacedName) []types.NamespacedName {
		var on []types.NamespacedName
		for _, d := range read[k].Spec.DependsOn {
			if c := find(namespaceOf(d, read[k]), d.Name); c != nil {
				read[keyOf(c)] = c
				on = append(on, keyOf(c))
			}
		}

		return on
	}) {
		if k == end {
			return true
		}
	}

	return false
}

func keyOf(c *enov1.Composition) types.NamespacedName {
	return types.NamespacedName{Namespace: c.Namespace, Name: c.Name}
}

// DependsOn says whether a composition names another one.
func DependsOn(c *enov1.Composition, namespace, name string) bool {
	return slices.ContainsFunc(c.Spec.DependsOn, func(d enov1.CompositionDependency) bool {
		return d.Name == name && namespaceOf(d, c) == namespace
	})
}

func namespaceOf(d enov1.CompositionDependency, c *enov1.Composition) string {
	if d.Namespace == "" {
		return c.Namespace
	}

	return d.Namespace
}
