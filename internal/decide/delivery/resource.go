package delivery

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// Manager is the name that objects are applied under.
const Manager = "eno"

// settingsPrefix is what all annotations and labels begin with that are settings
// and no part of the object.
const settingsPrefix = "eno.azure.io/"

const definitionKind = "CustomResourceDefinition"

// An Identity tells objects apart, whatever version they are written in.
type Identity struct {
	Group, Kind, Namespace, Name string
	// Nth tells several Patches of one target apart.
	Nth int
}

// String is how people call the object.
func (i Identity) String() string {
	name := i.Name
	if i.Namespace != "" {
		name = i.Namespace + "/" + name
	}

	if i.Nth > 0 {
		name += fmt.Sprintf(" (%d)", i.Nth+1)
	}

	return i.Kind + " " + name
}

// A Resource is one manifest, understood.
type Resource struct {
	Identity
	Settings

	// GVK is what it is written as. That of a Patch is its target's.
	GVK schema.GroupVersionKind
	// Object is what is applied: the manifest without its settings. That of a Patch
	// only names the target.
	Object *unstructured.Unstructured
	// Tombstone : the object is to go.
	Tombstone bool
	// Ops are the operations of a Patch, as JSON; nil for everything else. Removes
	// says that they ask for the target's deletion.
	Ops     []byte
	Removes bool
	// Defines is the kind that a definition makes known.
	Defines schema.GroupKind

	// overrides change what was read from the source, and released is what they have
	// removed. Most have none.
	overrides []override
	source    *source
	// paths are those of the operations of a Patch.
	paths    []string
	released []path
}

// A Reader reads manifests. It may be used by any number of goroutines.
type Reader struct {
	// FailOpen is that of manifests that do not set it.
	FailOpen bool

	expressions, conditions *compiler
}

// NewReader returns a Reader, which remembers what it has compiled.
func NewReader() *Reader {
	return &Reader{expressions: newCompiler(), conditions: newCompiler(forOverrides()...)}
}

// Read reads a manifest. Settings that it lacks are those of the composition where
// they fall back to it. Settings with invalid values are ignored, and reported by
// [Settings.Warnings]. The error is that it is not known which object is meant.
func (r *Reader) Read(m enov1.Manifest, composition map[string]string) (*Resource, error) {
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON([]byte(m.Manifest)); err != nil {
		return nil, fmt.Errorf("cannot read the manifest: %w", err)
	}
	// Overrides change the manifest as it is written, with its settings.
	text, overridden, _ := unstructured.NestedString(o.Object, "metadata", "annotations", enov1.AnnotationOverrides)
	var from *source
	if overridden {
		from = &source{reader: r, object: o.DeepCopy(), composition: composition}
		unstructured.RemoveNestedField(from.object.Object, "metadata", "annotations", enov1.AnnotationOverrides)
	}
	found, err := r.understand(o, m.Deleted, composition)
	if err != nil {
		return nil, err
	}
	if overridden {
		var invalid []error
		found.source = from
		found.overrides, invalid = r.overrides(text)
		found.invalid = append(found.invalid, invalid...)
	}

	return found, nil
}

// Check returns what keeps a manifest from being accepted: that it is not known which
// object is meant, or settings that cannot be used.
func (r *Reader) Check(manifest string) []error {
	found, err := r.Read(enov1.Manifest{Manifest: manifest}, nil)
	if err != nil {
		return []error{err}
	}

	return found.invalid
}

// understand turns a manifest, which it takes, into a resource. The error is that
// nobody knows which object is meant.
func (r *Reader) understand(o *unstructured.Unstructured, deleted bool, composition map[string]string) (*Resource, error) {
	if o.GetName() == "" {
		return nil, fmt.Errorf("cannot read the manifest: the %s has no metadata.name", o.GetKind())
	}
	found := &Resource{
		Identity: Identity{Group: o.GroupVersionKind().Group, Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()},
		GVK:      o.GroupVersionKind(), Object: o, Tombstone: deleted,
	}
	annotations, _, err := unstructured.NestedStringMap(o.Object, "metadata", "annotations")
	if err != nil {
		return nil, fmt.Errorf("cannot read the annotations of %s: each must be a string; put values such as true and 1 in quotes: %w", found.Identity, err)
	}
	strip(o)
	if found.GVK.Group == enov1.GroupVersion.Group && found.Kind == enov1.PatchKind {
		if err := found.readPatch(); err != nil {
			return nil, err
		}
	}
	if found.Kind == definitionKind {
		found.Defines = defined(o)
	}
	found.Settings = r.settings(annotations, composition, found.GVK.Kind) // a Patch has the default groups of its target

	return found, nil
}

// strip leaves only what is applied: settings are none of the object's business,
// and what only a server can say makes it refuse the apply.
func strip(o *unstructured.Unstructured) {
	for _, at := range []string{"annotations", "labels"} {
		all, found, err := unstructured.NestedMap(o.Object, "metadata", at)
		if err != nil || !found {
			continue
		}
		maps.DeleteFunc(all, func(key string, _ any) bool {
			return strings.HasPrefix(key, settingsPrefix) || key == enov1.AnnotationPrune || key == enov1.AnnotationMigrateMode || key == enov1.AnnotationReplaceOnConflict
		})
		if len(all) == 0 {
			unstructured.RemoveNestedField(o.Object, "metadata", at)

			continue
		}
		_ = unstructured.SetNestedMap(o.Object, all, "metadata", at) // it was one
	}
	// Of a kind without a status subresource, it would be written with everything else.
	unstructured.RemoveNestedField(o.Object, "status")
	for _, name := range []string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink"} {
		unstructured.RemoveNestedField(o.Object, "metadata", name)
	}
}

// readPatch turns a Patch into what it does to which object.
func (r *Resource) readPatch() error {
	spec, _, _ := unstructured.NestedMap(r.Object.Object, "patch")
	apiVersion, _ := spec["apiVersion"].(string)
	kind, _ := spec["kind"].(string)
	group, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || kind == "" || apiVersion == "" {
		return fmt.Errorf("cannot read Patch %s: patch.apiVersion and patch.kind must say what its target is", r.Name)
	}
	ops, ok := spec["ops"].([]any)
	if spec["ops"] == nil {
		ops, ok = []any{}, true // overrides may add some
	}
	if r.Ops, err = json.Marshal(ops); err != nil || !ok {
		return fmt.Errorf("cannot read Patch %s: patch.ops must be a list of operations of a JSON patch", r.Name)
	}
	for _, op := range ops {
		fields, _ := op.(map[string]any)
		value := fields["value"]
		r.Removes = r.Removes || fields["path"] == "/metadata/deletionTimestamp" && value != nil && value != ""
		path, _ := fields["path"].(string)
		r.paths = append(r.paths, path)
	}
	r.GVK = group.WithKind(kind)
	// Patches are named after their targets, so that two of them may have one name.
	r.Kind = enov1.PatchKind + " of " + r.GVK.GroupKind().String()
	r.Object = &unstructured.Unstructured{}
	r.Object.SetGroupVersionKind(r.GVK)
	r.Object.SetNamespace(r.Namespace)
	r.Object.SetName(r.Name)

	return nil
}

// DropNamespace removes the namespace of a cluster-scoped object, which the server
// ignores. Manifests with different namespaces are about one object then.
func (r *Resource) DropNamespace() {
	r.Namespace = ""
	r.Object.SetNamespace("")
	if r.source != nil {
		r.source.object.SetNamespace("")
	}
}

// Target identifies the object that the resource is about: of a Patch, the object that
// it changes.
func (r *Resource) Target() Identity {
	return Identity{Group: r.GVK.Group, Kind: r.GVK.Kind, Namespace: r.Namespace, Name: r.Name}
}

// IsPatch says whether it changes an object that somebody else makes.
func (r *Resource) IsPatch() bool { return r.Ops != nil }

// defined is the kind that a definition defines.
func defined(o *unstructured.Unstructured) schema.GroupKind {
	group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")

	return schema.GroupKind{Group: group, Kind: kind}
}
