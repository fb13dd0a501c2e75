package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// An object that cannot exist is absent: slices of earlier releases may name some, and their
// compositions must be deletable. No request is sent, for which there is no client here.
func TestReadImpossibleNames(t *testing.T) {
	for _, name := range []struct{ namespace, name string }{{"a", "b/c"}, {"a", ".."}, {"a%2fb", "c"}} {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		o.SetNamespace(name.namespace)
		o.SetName(name.name)
		live, err := (&Worker{}).get(t.Context(), &model.Item{Content: model.Content{Resource: &decide.Resource{Object: o}}}, "v1")
		if live != nil || err != nil {
			t.Errorf("%q in %q: got %v, %v", name.name, name.namespace, live, err)
		}
	}
}
