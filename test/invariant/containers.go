package invariant

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/identity"
)

// lists are where containers of a workload are.
var lists = []string{"initContainers", "containers"}

// containers asks that eno owns nothing of a container that it does not name: that is
// one that it could neither change nor remove.
func (c *checker) containers() {
	named := map[Object]map[string]bool{}
	for _, one := range c.Compositions {
		if one.Status.CurrentSynthesis == nil {
			continue
		}
		for _, m := range c.manifests(&one) {
			ref, o := identity.Read(m.Manifest), &unstructured.Unstructured{}
			if !m.Deleted && json.Unmarshal([]byte(m.Manifest), &o.Object) == nil {
				named[Object{ref.Kind, ref.Namespace, ref.Name}] = containersOf(o)
			}
		}
	}
	for i := range c.Objects {
		o := Object{c.Objects[i].GetKind(), c.Objects[i].GetNamespace(), c.Objects[i].GetName()}
		there := containersOf(&c.Objects[i])
		for name := range owned(&c.Objects[i]) {
			if there[name] && !named[o][name] {
				c.addf(WhollyOwned, o, "has %s, which %s owns a part of and does not name", name, delivery.Manager)
			}
		}
	}
}

// containersOf a workload, as initContainers/name.
func containersOf(o *unstructured.Unstructured) map[string]bool {
	names := map[string]bool{}
	for _, list := range lists {
		items, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", list)
		for _, item := range items {
			if container, ok := item.(map[string]any); ok {
				name, _ := container["name"].(string)
				names[list+"/"+name] = true
			}
		}
	}

	return names
}

// owned are the containers that eno owns anything of.
func owned(o *unstructured.Unstructured) map[string]bool {
	names := map[string]bool{}
	for _, entry := range o.GetManagedFields() {
		if entry.Manager != delivery.Manager || entry.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		for _, list := range lists {
			items, _, _ := unstructured.NestedMap(fields, "f:spec", "f:template", "f:spec", "f:"+list)
			for key := range items {
				var id struct {
					Name string `json:"name"`
				}
				if text, ok := strings.CutPrefix(key, "k:"); ok && json.Unmarshal([]byte(text), &id) == nil {
					names[list+"/"+id.Name] = true
				}
			}
		}
	}

	return names
}
