package harness

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// ParseObject reads a manifest and gives it a namespace and a name.
func ParseObject(text, ns, name string) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, err
	}
	err = o.UnmarshalJSON(data)
	o.SetNamespace(ns)
	o.SetName(name)

	return o, err
}
