package show

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/arbor-control/arbor/internal/identity"
)

// Reference is an object with nothing but what it is known by.
func Reference(r identity.Ref) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(r.APIVersion)
	o.SetKind(r.Kind)
	o.SetNamespace(r.Namespace)
	o.SetName(r.Name)

	return o
}

// List is never nil, so that JSON has an empty list.
func List[T any](all []T) []T {
	if all == nil {
		return []T{}
	}

	return all
}
