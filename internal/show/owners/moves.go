package owners

import (
	"fmt"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/identity"
)

// WishFor is the one of an object. A manifest need not say a namespace.
func WishFor(ref identity.Ref, wishes []map[string]any) (map[string]any, error) {
	for _, w := range wishes {
		r := identity.RefOf(w)
		if r.Kind == ref.Kind && r.Name == ref.Name && (r.Namespace == "" || r.Namespace == ref.Namespace) {
			if r.APIVersion != ref.APIVersion {
				return nil, fmt.Errorf("cannot compare %s: it is %s, and what is to be applied is %s", ref, ref.APIVersion, r.APIVersion)
			}

			return w, nil
		}
	}

	return nil, fmt.Errorf("cannot find %s in what is to be applied: add it to the file of --desired", ref)
}

// PlanMove plans for one object, and compares what the next apply does before
// and after.
func PlanMove(thing *Object, request fields.Request, wishes []map[string]any) (MoveView, error) {
	var wish map[string]any

	if wishes != nil {
		var err error
		if wish, err = WishFor(thing.Ref, wishes); err != nil {
			return MoveView{}, err
		}

		request.Next = thing.Tree.Desired(wish)
	}

	scopes := []fields.Scope{request.Scope}

	if request.Scope.IsZero() {
		var err error
		if scopes, err = DefaultScopes(thing, wish); err != nil {
			return MoveView{}, err
		}
	}

	plan, err := PlanScopes(thing, request, scopes)
	if err != nil {
		return MoveView{}, err
	}

	return MoveViewOf(thing, request, scopes, plan), nil
}
