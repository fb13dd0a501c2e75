// Package crds holds the CustomResourceDefinitions that are generated from the
// types in api. The manager installs them and `arbor lint` validates against
// them, so both always use the same schema.
package crds

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var files embed.FS

// All returns every CRD, sorted by name. Callers get their own copies.
func All() []*apiextensionsv1.CustomResourceDefinition {
	all := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(parsed()))
	for _, crd := range parsed() {
		all = append(all, crd.DeepCopy())
	}

	return all
}

// ByKind returns the CRD of one kind.
func ByKind(group, kind string) (*apiextensionsv1.CustomResourceDefinition, bool) {
	i := slices.IndexFunc(parsed(), func(c *apiextensionsv1.CustomResourceDefinition) bool {
		return c.Spec.Group == group && c.Spec.Names.Kind == kind
	})
	if i < 0 {
		return nil, false
	}

	return parsed()[i].DeepCopy(), true
}

// parsed parses the embedded files once. They are compiled into this binary and
// a test parses them all, so a file that cannot be parsed is a bug.
var parsed = sync.OnceValue(func() []*apiextensionsv1.CustomResourceDefinition {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		panic(err)
	}
	all := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(names))
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			panic(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			panic(fmt.Sprintf("cannot read %s: %v", name, err))
		}
		all = append(all, crd)
	}

	return all
})
