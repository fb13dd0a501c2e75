package synthesis

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
)

// A Target is the object that an input is.
type Target struct {
	Kind schema.GroupVersionKind
	Key  types.NamespacedName
}

// Resolve says which object an input is bound to, or why to none.
func Resolve(mapper meta.RESTMapper, b decide.Bound) (Target, string) {
	if b.Name == "" {
		return Target{}, "no object is bound to it: add it to the bindings of the Composition"
	}
	var versions []string
	if b.Resource.Version != "" {
		versions = []string{b.Resource.Version}
	}
	group := schema.GroupKind{Group: b.Resource.Group, Kind: b.Resource.Kind}
	mapping, err := mapper.RESTMapping(group, versions...)
	if err != nil {
		return Target{}, fmt.Sprintf("kind %s is not served: %s", group, err)
	}
	t := Target{Kind: mapping.GroupVersionKind, Key: types.NamespacedName{Namespace: b.Namespace, Name: b.Name}}
	switch namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace; {
	case namespaced && b.Namespace == "":
		return Target{}, fmt.Sprintf("%s %s needs a namespace", b.Resource.Kind, b.Name)
	case !namespaced:
		t.Key.Namespace = ""
	}

	return t, ""
}
