package ownership

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/arbor-control/arbor/engine/fields"
)

// ScopeAnnotation on an object says which scope of it is moved, instead of the
// default of its kind.
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

// DefaultScope is what is moved of an object if nobody says otherwise: the init
// containers of a workload, or what its annotation says. There is none for other
// kinds.
func DefaultScope(object *unstructured.Unstructured) (_ fields.Scope, ok bool, _ error) {
	if text := object.GetAnnotations()[ScopeAnnotation]; text != "" {
		s, err := fields.ParseScope(text)
		if err != nil {
			return fields.Scope{}, false, fmt.Errorf("cannot use annotation %s of %s: %w", ScopeAnnotation, describe(object), err)
		}

		return s, true, nil
	}
	s, ok := defaults[object.GroupVersionKind().GroupKind()]

	return s, ok, nil
}

// scopes are those of a request, or the default one: by the annotation of what
// is desired, by that of the live object, by the kind.
func (r Request) scopes(live *unstructured.Unstructured) ([]fields.Scope, error) {
	if len(r.Scopes) > 0 {
		return r.Scopes, nil
	}
	from := live
	if r.Desired != nil && r.Desired.GetAnnotations()[ScopeAnnotation] != "" {
		from = r.Desired
	}
	s, ok, err := DefaultScope(from)
	if err != nil || !ok {
		return nil, err
	}

	return []fields.Scope{s}, nil
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
