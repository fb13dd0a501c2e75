package invariant

import (
	"encoding/json"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/identity"
)

// A patch is as much of a Patch as an invariant needs.
type patch struct {
	Patch struct {
		Kind string            `json:"kind"`
		Ops  []json.RawMessage `json:"ops"`
	} `json:"patch"`
}

// targetOf is the object that a manifest is about: itself, or the target of a Patch.
func targetOf(manifest string) Object {
	id := identity.Read(manifest).Target()

	return Object{id.Kind, id.Namespace, id.Name}
}

// patched asks that a Patch would change nothing any more. One that deletes its target is
// up to HookOnce.
func (c *checker) patched(of Object, manifest string, objects map[Object]*unstructured.Unstructured) {
	var p patch
	if err := json.Unmarshal([]byte(manifest), &p); err != nil {
		c.addf(Converged, of, "has a Patch that cannot be read: %v", err)

		return
	}
	target := targetOf(manifest)
	live := objects[target]
	ops, err := json.Marshal(p.Patch.Ops)
	if live == nil || err != nil || strings.Contains(string(ops), "/metadata/deletionTimestamp") {
		return
	}
	before, err := json.Marshal(live.Object)
	if err != nil {
		return
	}
	decoded, err := jsonpatch.DecodePatch(ops)
	if err != nil {
		c.addf(Converged, of, "has a Patch of %s that cannot be read: %v", target, err)

		return
	}
	if after, err := decoded.Apply(before); err != nil || !jsonpatch.Equal(before, after) {
		c.addf(Converged, of, "has a Patch of %s that is not carried out", target)
	}
}

// undirected is a manifest without what only delivery reads, and without fields that
// overrides decide about.
func undirected(manifest map[string]any) map[string]any {
	text, _, _ := unstructured.NestedString(manifest, "metadata", "annotations", enov1.AnnotationOverrides)
	var overrides []struct {
		Path string `json:"path"`
	}
	if json.Unmarshal([]byte(text), &overrides) == nil {
		for _, o := range overrides {
			unstructured.RemoveNestedField(manifest, strings.Split(strings.TrimPrefix(o.Path, "self."), ".")...)
		}
	}
	unstructured.RemoveNestedField(manifest, "metadata", "annotations")

	return manifest
}

// owners asks that delivery owns what it applies once, by Apply: fields that it also owns
// by Update would stay when a manifest drops them.
func (c *checker) owners() {
	for i := range c.Objects {
		applies, updates := 0, 0
		for _, entry := range c.Objects[i].GetManagedFields() {
			switch {
			case entry.Manager != delivery.Manager || entry.Subresource != "":
			case entry.Operation == metav1.ManagedFieldsOperationApply:
				applies++
			default:
				updates++
			}
		}
		if applies > 1 || applies == 1 && updates > 0 {
			c.addf(OneOwner, Object{c.Objects[i].GetKind(), c.Objects[i].GetNamespace(), c.Objects[i].GetName()},
				"has %d entries of %s by Apply and %d by Update in its managed fields", applies, delivery.Manager, updates)
		}
	}
}

// shared asks that no two compositions deliver one object.
func (c *checker) shared() {
	by := map[Object]string{}
	for _, one := range c.Compositions {
		if one.Status.CurrentSynthesis == nil {
			continue
		}
		for _, m := range c.manifests(&one) {
			o := targetOf(m.Manifest)
			if m.Deleted || identity.Read(m.Manifest).IsPatch() {
				continue
			}
			if other := by[o]; other != "" {
				c.addf(OneOwner, o, "is delivered by %s and by %s", other, one.Name)
			}
			by[o] = one.Name
		}
	}
}
