package synthesis

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// A Target is the object that an input is.
type Target struct {
	Kind schema.GroupVersionKind
	Key  types.NamespacedName
}

// A Problem is why there is no object for an input.
type Problem struct {
	Text string
	// Forbidden is set if the Composition may not bind the object.
	Forbidden *tenancy.Violation
}

// Resolve returns the object that an input is bound to, or why it is not bound.
func Resolve(mapper meta.RESTMapper, b decide.Bound, rules tenancy.Rules) (Target, *Problem) {
	if b.Forbidden != nil {
		return Target{}, &Problem{b.Forbidden.Message, b.Forbidden}
	}
	if b.Name == "" {
		return Target{}, &Problem{Text: "no object is bound to it: add it to the bindings of the Composition"}
	}
	var versions []string
	if b.Resource.Version != "" {
		versions = []string{b.Resource.Version}
	}
	group := schema.GroupKind{Group: b.Resource.Group, Kind: b.Resource.Kind}
	mapping, err := mapper.RESTMapping(group, versions...)
	if err != nil {
		return Target{}, &Problem{Text: fmt.Sprintf("kind %s is not served: %s", group, err)}
	}
	t := Target{Kind: mapping.GroupVersionKind, Key: types.NamespacedName{Namespace: b.Namespace, Name: b.Name}}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if b.Namespace == "" {
			return Target{}, &Problem{Text: fmt.Sprintf("%s %s needs a namespace", b.Resource.Kind, b.Name)}
		}

		return t, nil
	}
	t.Key.Namespace = ""
	if b.Chosen != nil {
		if v := rules.ClusterScoped(*b.Chosen); v != nil {
			return Target{}, &Problem{v.Message, v}
		}
	}

	return t, nil
}
