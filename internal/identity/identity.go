package identity

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The API group and kind of a Patch. Stock synthesizers do without package api.
const (
	patchGroup = "eno.azure.io"
	patchKind  = "Patch"
)

// An Identity identifies an object, or a Patch of it. It is comparable.
type Identity struct {
	// Group and Kind are those of the object, or of the target of a Patch.
	Group, Kind string
	// Namespace is empty for a cluster-scoped object, once it is normalized.
	Namespace, Name string
	// Patch is 0 for the object itself. The Patches of an object are counted from 1.
	Patch int
}

// Scopes reports whether a kind is namespaced, and whether that is known.
type Scopes func(group, kind string) (namespaced, known bool)

// New returns the identity of an object.
func New(apiVersion, kind, namespace, name string) Identity {
	return Identity{Group: groupOf(apiVersion), Kind: kind, Namespace: namespace, Name: name}
}

// CanExist reports whether an object can have a name, or be in a namespace of that name: both are
// parts of its path. The API server rejects more than that, in ways that depend on the kind.
func CanExist(name string) bool {
	return name != "." && name != ".." && !strings.ContainsAny(name, "/%")
}

// CheckAPIVersion returns what is wrong with an apiVersion.
func CheckAPIVersion(apiVersion string) error {
	group, version, both := strings.Cut(apiVersion, "/")
	if strings.Contains(version, "/") || both && (group == "" || version == "") {
		return fmt.Errorf(`apiVersion %q is invalid: write GROUP/VERSION, such as "apps/v1", or "v1" for the core group`, apiVersion)
	}

	return nil
}

// NewPatch returns the identity of the first Patch of a target.
func NewPatch(apiVersion, kind, namespace, name string) Identity {
	id := New(apiVersion, kind, namespace, name)
	id.Patch = 1

	return id
}

// IsPatch reports whether manifests of a kind are Patches, in any version.
func IsPatch(apiVersion, kind string) bool {
	return kind == patchKind && groupOf(apiVersion) == patchGroup
}

// groupOf is the API group of an apiVersion, "" for the core group.
func groupOf(apiVersion string) string {
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return ""
	}

	return group
}

// A Head is the part of a manifest that identifies its object.
type Head struct {
	APIVersion string   `json:"apiVersion,omitempty"`
	Kind       string   `json:"kind,omitempty"`
	Metadata   Metadata `json:"metadata,omitzero"`
	// Patch is the target of a Patch.
	Patch Target `json:"patch,omitzero"`
}

// Metadata is the part of metadata that identifies an object.
type Metadata struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// A Target is the kind of object that a Patch changes.
type Target struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
}

// Identity is that of the object. Patches are not counted yet: each is the first.
func (h Head) Identity() Identity {
	if IsPatch(h.APIVersion, h.Kind) {
		return NewPatch(h.Patch.APIVersion, h.Patch.Kind, h.Metadata.Namespace, h.Metadata.Name)
	}

	return New(h.APIVersion, h.Kind, h.Metadata.Namespace, h.Metadata.Name)
}

// Read returns the identity of the object that a manifest in JSON is about. Fields that
// cannot be read are empty: manifests are checked before they are stored.
func Read(manifest string) Identity {
	var h Head
	_ = json.Unmarshal([]byte(manifest), &h) // as documented

	return h.Identity()
}

// Of returns the identity of the object that a decoded manifest is about. Fields that
// cannot be read are empty.
func Of(object map[string]any) Identity {
	metadata, _ := object["metadata"].(map[string]any)
	patch, _ := object["patch"].(map[string]any)

	return Head{
		APIVersion: text(object, "apiVersion"), Kind: text(object, "kind"),
		Metadata: Metadata{Namespace: text(metadata, "namespace"), Name: text(metadata, "name")},
		Patch:    Target{APIVersion: text(patch, "apiVersion"), Kind: text(patch, "kind")},
	}.Identity()
}

func text(in map[string]any, field string) string {
	value, _ := in[field].(string)

	return value
}

// IsPatch reports whether it is a Patch of an object, and not the object.
func (i Identity) IsPatch() bool { return i.Patch > 0 }

// Target is the object: of a Patch, the one that it changes.
func (i Identity) Target() Identity {
	i.Patch = 0

	return i
}

// ClusterScoped is the object if its kind is cluster-scoped.
func (i Identity) ClusterScoped() Identity {
	i.Namespace = ""

	return i
}

// Normalize removes the namespace of a cluster-scoped object. known is false if there is
// a namespace of which it is not known whether it counts. No scopes know nothing.
func (i Identity) Normalize(scopes Scopes) (id Identity, known bool) {
	if i.Namespace == "" {
		return i, true
	}
	if scopes == nil {
		return i, false
	}
	namespaced, known := scopes(i.Group, i.Kind)
	if known && !namespaced {
		return i.ClusterScoped(), true
	}

	return i, known
}

// Number counts a Patch: it returns the first identity of a Patch of its target that is not yet
// used. Objects are returned as they are.
func Number[T any](id Identity, others map[Identity]T) Identity {
	for id.IsPatch() {
		if _, taken := others[id]; !taken {
			break
		}
		id.Patch++
	}

	return id
}

// Kept has the objects that the manifests of a synthesis are about.
type Kept map[Identity]bool

// Add adds the object that a manifest is about: of a Patch, the target.
func (k Kept) Add(id Identity) { k[id.Target()] = true }

// LeavesTombstone reports whether a manifest of the synthesis before has to be deleted,
// because none of these is about its object. Patches are never deleted.
func (k Kept) LeavesTombstone(id Identity) bool { return !id.IsPatch() && !k[id] }

// String names the object for people, without its group.
func (i Identity) String() string {
	kind, name := i.Kind, i.Name
	if i.IsPatch() {
		kind = patchKind + " of " + i.groupKind()
	}
	if i.Namespace != "" {
		name = i.Namespace + "/" + name
	}
	if i.Patch > 1 {
		name += fmt.Sprintf(" (%d)", i.Patch)
	}
	if name == "" {
		return kind
	}

	return kind + " " + name
}

// groupKind is KIND[.GROUP].
func (i Identity) groupKind() string {
	if i.Group == "" {
		return i.Kind
	}

	return i.Kind + "." + i.Group
}
