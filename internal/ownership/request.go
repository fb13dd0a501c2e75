package ownership

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/kube"
)

// A Request says what is to be migrated.
type Request struct {
	// Object is known by apiVersion, kind, namespace and name; nothing else of it
	// is used. It may be nil if there is a Desired.
	Object *unstructured.Unstructured
	// Scopes are what is moved; see [DefaultScopes] for what they are if there are
	// none.
	Scopes []fields.Scope
	// Desired is what the manager is going to apply, nil if nobody knows yet. It
	// is applied after the migration, unless that is left to the caller by
	// MoveOnly. Previous is what it applied before, nil if its entry tells.
	Desired, Previous *unstructured.Unstructured
	MoveOnly          bool
	// Version is the resourceVersion of the object that Desired was made for, "" if it
	// holds for any. If the object has another one, nothing is written, and the error
	// is a conflict that [IsStale] recognizes.
	Version string
	// Mode is how much of the scopes is moved, "" for that of the Migrator.
	Mode fields.Mode
	// Retag lets entries in other versions take part; see [fields.Request].
	Retag bool
}

func (r Request) which() *unstructured.Unstructured {
	if r.Object == nil {
		return r.Desired
	}

	return r.Object
}

// discreet is an error about the object without the values of a Secret.
func (r Request) discreet(err error) error {
	for _, o := range []*unstructured.Unstructured{r.Desired, r.Previous, r.Object} {
		if o != nil {
			err = kube.Discreet(err, o.Object)
		}
	}

	return err
}

func (r Request) check() error {
	for _, s := range r.Scopes {
		if err := s.Check(); err != nil {
			return err
		}
	}

	return nil
}

// checkVersion reports whether the object is the one that Desired was made for.
func (r Request) checkVersion(live *unstructured.Unstructured) error {
	if r.Version == "" || live != nil && live.GetResourceVersion() == r.Version {
		return nil
	}

	return &staleError{describe(r.which()), r.Version}
}
