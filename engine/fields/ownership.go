package fields

import (
	"maps"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// An Ownership describes how much of a scope a manager owns.
type Ownership struct {
	// ScopeExists reports whether the scope is in the object. If not, there is nothing to own.
	ScopeExists bool
	// FullyOwned reports whether the manager's Apply entry has fields in the scope and no other
	// entry of the object itself has any. Fields without an owner do not count.
	FullyOwned bool
	// OtherManagers have fields in the scope, sorted by name.
	OtherManagers []string
	// OwnUpdates reports whether the manager itself has fields in the scope that it did not apply.
	// To the server that is a different manager: the fields stay when the manager applies without
	// them.
	OwnUpdates bool
	// Subresources are entries with fields in the scope that were written through a subresource.
	// They are never moved, and do not count.
	Subresources []Identity
	// Lifted are the atomic fields to which the scope was widened; see [Selection].
	Lifted []fieldpath.Path
}

// CheckOwnership returns the ownership of a scope. Fields that are never moved (see [Denied]) do
// not count in a scope that is larger.
func (t *Tree) CheckOwnership(scope Scope, manager string) Ownership {
	found := t.Select(scope)
	result := Ownership{ScopeExists: found.Exists()}
	for _, n := range found.Lifted {
		result.Lifted = append(result.Lifted, n.Path())
	}

	applied := false
	others, subresources := map[string]bool{}, map[Identity]bool{}
	for i := range owners(found.Nodes, scope.Check() == nil) {
		e := t.entries[i]
		switch {
		case e.Subresource != "":
			subresources[e.Identity()] = true
		case e.Manager != manager:
			others[e.Manager] = true
		case e.Operation == Apply:
			applied = true
		default:
			result.OwnUpdates = true
		}
	}
	result.OtherManagers = slices.Sorted(maps.Keys(others))
	result.Subresources = slices.SortedFunc(maps.Keys(subresources), Identity.Compare)
	result.FullyOwned = applied && len(others) == 0 && !result.OwnUpdates

	return result
}

// owners returns the entries that hold a live field at or below the nodes. With movable it skips
// fields that are never moved.
func owners(nodes []*Node, movable bool) map[int]bool {
	all := map[int]bool{}
	for _, n := range nodes {
		from := n.Owners
		switch {
		case !n.Live || movable && n.isDenied():
			continue
		case movable && (n.parent == nil || n.is("metadata")):
			from = n.Holders
			maps.Copy(all, owners(n.Children, movable))
		}
		for _, i := range from {
			all[i] = true
		}
	}

	return all
}
