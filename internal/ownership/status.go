package ownership

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/arbor-control/arbor/engine/fields"
)

// DefaultManager is the default of the manager that ownership is moved to.
const DefaultManager = "eno"

// A Status is the owners of a part of an object.
type Status struct {
	// FullyOwned is whether the manager applies all of it, and no other manager has any of it.
	FullyOwned bool `json:"fullyOwned"`
	// OtherManagers have some of it. They are sorted.
	OtherManagers []string `json:"otherManagers,omitempty"`
	// ScopeExists is whether the object has it.
	ScopeExists bool `json:"scopeExists"`
}

// CheckOwnership returns the owners of a scope of an object, which must have its managed fields.
// What was written through a subresource does not count: it is never moved. A manager that has some
// of it by another operation than Apply counts as another manager, as it does for the server.
func CheckOwnership(object *unstructured.Unstructured, scope, manager string) (Status, error) {
	s, err := fields.ParseScope(scope)
	if err != nil {
		return Status{}, err
	}
	entries, err := fields.Read(object.Object)
	if err != nil {
		return Status{}, fmt.Errorf("cannot read the managed fields of %s: %w", describe(object), err)
	}

	return statusOf(fields.New(object.Object, entries), s, manager), nil
}

func statusOf(tree *fields.Tree, scope fields.Scope, manager string) Status {
	owned := tree.CheckOwnership(scope, manager)
	status := Status{FullyOwned: owned.FullyOwned, OtherManagers: owned.OtherManagers, ScopeExists: owned.ScopeExists}
	if owned.OwnUpdates {
		status.OtherManagers = insert(status.OtherManagers, manager)
	}

	return status
}
