package delivery

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/identity"
)

// isSetting reports whether an annotation or label is a setting and no part of the object.
func isSetting(key string) bool {
	return strings.HasPrefix(key, settingsPrefix) || slices.Contains(ownSettings, key)
}

// settingsIn are the annotations that are settings, nil if there are none.
func settingsIn(annotations map[string]string) map[string]string {
	var all map[string]string
	for key, value := range annotations {
		if !isSetting(key) {
			continue
		}
		if all == nil {
			all = map[string]string{}
		}
		all[key] = value
	}

	return all
}

// Manifest returns a manifest that is read as the same resource. object is that of the
// resource. Fields that are never applied, such as the status, are not part of it.
func (r *Resource) Manifest(object *unstructured.Unstructured) (enov1.Manifest, error) {
	m := enov1.Manifest{Deleted: r.Tombstone, Requested: r.Requested, DroppedBy: r.DroppedBy}
	if object == nil {
		return m, fmt.Errorf("cannot write the manifest of %s: its object is not known", r.Identity)
	}
	o := object.DeepCopy()
	if r.IsPatch() {
		o = &unstructured.Unstructured{Object: map[string]any{"patch": map[string]any{"apiVersion": r.GVK.GroupVersion().String(), "kind": r.GVK.Kind, "ops": json.RawMessage(r.Ops)}}}
		o.SetAPIVersion(enov1.GroupVersion.String())
		o.SetKind(enov1.PatchKind)
		o.SetNamespace(object.GetNamespace())
		o.SetName(object.GetName())
	}
	if len(r.written) > 0 {
		all := o.GetAnnotations()
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, r.written)
		o.SetAnnotations(all)
	}
	data, err := json.Marshal(o.Object)
	if err != nil {
		return m, fmt.Errorf("cannot write the manifest of %s: %w", r.Identity, err)
	}
	m.Manifest = string(data)

	return m, nil
}

// targetVersion is the group and version of the target of a Patch.
func targetVersion(apiVersion, kind string) (schema.GroupVersion, error) {
	if err := identity.CheckAPIVersion(apiVersion); err != nil {
		return schema.GroupVersion{}, fmt.Errorf("patch.%w", err)
	}
	if kind == "" || apiVersion == "" {
		return schema.GroupVersion{}, errors.New("patch.apiVersion and patch.kind must specify its target")
	}

	return schema.ParseGroupVersion(apiVersion)
}

// unreadable is why a manifest cannot be read. For an invalid apiVersion, the decoder reports that
// there is no kind.
func unreadable(manifest string, err error) error {
	var head identity.Head
	if json.Unmarshal([]byte(manifest), &head) == nil {
		if invalid := identity.CheckAPIVersion(head.APIVersion); invalid != nil {
			return fmt.Errorf("cannot read the manifest of %s: %w", head.Identity(), invalid)
		}
	}

	return fmt.Errorf("cannot read the manifest: %w", err)
}

// CheckNamespace returns an error for a resource of a namespaced kind that has no namespace:
// no server accepts it.
func (r *Resource) CheckNamespace(scopes Scopes) error {
	if r.Namespace != "" || scopes == nil {
		return nil
	}
	if namespaced, known := scopes(r.GVK); !known || !namespaced {
		return nil
	}

	return fmt.Errorf("metadata.namespace is missing: %s is a namespaced kind; have the synthesizer write metadata.namespace", r.GVK.Kind)
}
