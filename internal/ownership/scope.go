package ownership

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/arbor-control/arbor/engine/fields"
)

// ScopeAnnotation on an object has the scopes of it that are moved, instead of the
// default of its kind. See [fields.ParseScopes].
const ScopeAnnotation = "eno.azure.io/migrate-ownership"

var (
	ofTemplate    = fields.MustParseScope("spec.template.spec.initContainers")
	ofJobTemplate = fields.MustParseScope("spec.jobTemplate.spec.template.spec.initContainers")

	defaults = map[schema.GroupKind]fields.Scope{
		{Group: "apps", Kind: "Deployment"}:  ofTemplate,
		{Group: "apps", Kind: "StatefulSet"}: ofTemplate,
		{Group: "apps", Kind: "DaemonSet"}:   ofTemplate,
		{Group: "batch", Kind: "Job"}:        ofTemplate,
		{Group: "batch", Kind: "CronJob"}:    ofJobTemplate,
	}
)

// DefaultScopes are the scopes of an object unless a request names some: those of its annotation,
// or the init containers of a workload. There are none for other kinds.
func DefaultScopes(object *unstructured.Unstructured) ([]fields.Scope, error) {
	all, err := fields.ParseScopes(object.GetAnnotations()[ScopeAnnotation])
	if err != nil {
		return nil, fmt.Errorf("cannot use annotation %s of %s: %w", ScopeAnnotation, describe(object), err)
	}
	if s, ok := defaults[object.GroupVersionKind().GroupKind()]; ok && len(all) == 0 {
		all = []fields.Scope{s}
	}

	return all, nil
}

// scopes are those of a request, or the default ones: by the annotation of what
// is desired, by that of the live object, by the kind.
func (r Request) scopes(live *unstructured.Unstructured) ([]fields.Scope, error) {
	if len(r.Scopes) > 0 {
		return r.Scopes, nil
	}
	from := live
	if r.Desired != nil && r.Desired.GetAnnotations()[ScopeAnnotation] != "" {
		from = r.Desired
	}

	return DefaultScopes(from)
}

func describe(o *unstructured.Unstructured) string {
	if ns := o.GetNamespace(); ns != "" {
		return fmt.Sprintf("%s %s/%s", o.GetKind(), ns, o.GetName())
	}

	return fmt.Sprintf("%s %s", o.GetKind(), o.GetName())
}

// insert adds a name to a sorted list, unless it is there.
func insert(names []string, name string) []string {
	if at, found := slices.BinarySearch(names, name); !found {
		return slices.Insert(names, at, name)
	}

	return names
}
