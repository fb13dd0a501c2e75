package delivery

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/delivery/expression"
	"github.com/arbor-control/arbor/internal/identity"
)

// Manager is the field manager that objects are applied as by default. Names of other field
// managers of deliveries begin with [ManagerPrefix].
const (
	Manager       = "eno"
	ManagerPrefix = Manager + "-"
)

// maxManager is how long the name of a field manager may be.
const maxManager = 128

// ValidateManager reports what is wrong with the name of the field manager of a delivery. By its
// beginning, one delivery recognizes the objects of another.
func ValidateManager(name string) error {
	suffix, ok := strings.CutPrefix(name, ManagerPrefix)
	valid := name == Manager || ok && suffix != "" && len(name) <= maxManager &&
		strings.Trim(suffix, "abcdefghijklmnopqrstuvwxyz0123456789-.") == ""
	if !valid {
		return fmt.Errorf("it must be %s, or %s and lower-case letters, digits, dots and hyphens, %d characters at most, such as %sedge", Manager, ManagerPrefix, maxManager, ManagerPrefix)
	}

	return nil
}

// ownSettings are the annotations with another prefix that are settings and no part of the
// object.
var ownSettings = []string{enov1.AnnotationPrune, enov1.AnnotationMigrateMode, enov1.AnnotationReadinessMode, enov1.AnnotationReplaceOnConflict}

// settingsPrefix is what all annotations and labels begin with that are settings
// and no part of the object.
const settingsPrefix = "eno.azure.io/"

const crdKind = "CustomResourceDefinition"

// An Identity identifies the object that a manifest is about.
type Identity = identity.Identity

// A Resource is one manifest, understood.
type Resource struct {
	// Identity is normalized by the scope of the kind, if that is known. Group and Kind
	// of a Patch are those of its target.
	Identity
	Settings

	// Unscoped is true if there is a namespace of which it is not known whether it counts.
	Unscoped bool

	// GVK is what it is written as. That of a Patch is its target's.
	GVK schema.GroupVersionKind
	// Object is what is applied: the manifest without its settings. That of a Patch
	// only names the target.
	Object *unstructured.Unstructured
	// Tombstone is true if the object must be deleted.
	Tombstone bool
	// Requested is set on a tombstone if a user asked for the synthesis that dropped the
	// manifest.
	Requested bool
	// DroppedBy is the uuid of the synthesis that dropped the manifest of a tombstone, "" if
	// an earlier release stored it.
	DroppedBy string
	// Ops are the operations of a Patch, as JSON; nil for everything else. Removes is true if they
	// ask for the target's deletion.
	Ops     []byte
	Removes bool
	// Defines is the kind that a CRD defines.
	Defines schema.GroupKind

	// overrides change what was read from the source, and released is what they have
	// removed. Most have none.
	overrides []override
	source    *source
	// paths are those of the operations of a Patch.
	paths    []string
	released []path
	// written are the annotations of the manifest that are settings.
	written map[string]string
}

// Scopes reports whether a kind is namespaced, and whether that is known. The scope is
// the same in all versions; the version helps to find out.
type Scopes func(gvk schema.GroupVersionKind) (namespaced, known bool)

// In is an [identity.Scopes] that looks for kinds in a version.
func (s Scopes) In(version string) identity.Scopes {
	if s == nil {
		return nil
	}

	return func(group, kind string) (namespaced, known bool) {
		return s(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
	}
}

// A Reader reads manifests. It may be used by any number of goroutines.
type Reader struct {
	// FailOpen is that of manifests that do not set it.
	FailOpen bool
	// Scopes knows which kinds are namespaced. Without it, namespaces are as written.
	Scopes Scopes
	// Manager is the field manager that objects are applied as, "" for the default.
	Manager string
	// Readiness is that of manifests that do not set it and have no expressions:
	// enov1.ReadinessKstatus, or anything else for that of Eno.
	Readiness string

	expressions, conditions *expression.Compiler
}

// NewReader returns a Reader, which remembers what it has compiled.
func NewReader() *Reader {
	return &Reader{expressions: expression.NewCompiler(), conditions: expression.NewCompiler(expression.ForOverrides()...)}
}

// Read reads a manifest. Settings that it lacks are those of the composition where
// they fall back to it. Settings with invalid values are ignored, and reported by
// [Settings.Warnings]. The error is that it is not known which object is meant.
func (r *Reader) Read(m enov1.Manifest, composition map[string]string) (*Resource, error) {
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON([]byte(m.Manifest)); err != nil {
		return nil, unreadable(m.Manifest, err)
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
	found.Requested, found.DroppedBy = m.Requested, m.DroppedBy
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

// understand turns a manifest, which it takes, into a resource. The error is that the manifest does
// not identify an object.
func (r *Reader) understand(o *unstructured.Unstructured, deleted bool, composition map[string]string) (*Resource, error) {
	if o.GetName() == "" {
		return nil, fmt.Errorf("cannot read the manifest: the %s has no metadata.name", o.GetKind())
	}
	found := &Resource{Identity: identity.Of(o.Object), GVK: o.GroupVersionKind(), Object: o, Tombstone: deleted}
	annotations, _, err := unstructured.NestedStringMap(o.Object, "metadata", "annotations")
	if err != nil {
		return nil, fmt.Errorf("cannot read the annotations of %s: each must be a string; put values such as true and 1 in quotes: %w", found.Identity, err)
	}
	if err := identity.CheckAPIVersion(o.GetAPIVersion()); err != nil {
		return nil, fmt.Errorf("cannot read the manifest of %s: %w", found.Identity, err)
	}
	found.written = settingsIn(annotations)
	strip(o)
	if found.IsPatch() {
		if err := found.readPatch(); err != nil {
			return nil, err
		}
	}
	id, known := found.Normalize(r.Scopes.In(found.GVK.Version))
	found.Identity, found.Unscoped = id, !known
	found.Object.SetNamespace(id.Namespace)
	if found.Kind == crdKind && !found.IsPatch() {
		found.Defines = defined(o)
	}
	found.Settings = r.settings(annotations, composition, found.GVK.Kind) // a Patch has the default groups of its target
	if found.IsPatch() {
		_, own := annotations[enov1.AnnotationReadinessMode]
		found.Kstatus = found.Kstatus && own // its target may never exist, and another client makes it
		found.ReplaceOnConflict = false      // for the same reason, it is not deleted
	}

	return found, nil
}

// strip leaves only what is applied: settings do not belong to the object, and the API server
// rejects an apply of fields that only it can set.
func strip(o *unstructured.Unstructured) {
	for _, at := range []string{"annotations", "labels"} {
		all, found, err := unstructured.NestedMap(o.Object, "metadata", at)
		if err != nil || !found {
			continue
		}
		maps.DeleteFunc(all, func(key string, _ any) bool {
			return isSetting(key)
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
	group, err := targetVersion(apiVersion, kind)
	if err != nil {
		return fmt.Errorf("cannot read Patch %s: %w", r.Name, err)
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
	r.Object = &unstructured.Unstructured{}
	r.Object.SetGroupVersionKind(r.GVK)
	r.Object.SetNamespace(r.Namespace)
	r.Object.SetName(r.Name)

	return nil
}

// isBare reports whether the manifest only identifies an object.
func (r *Resource) isBare() bool {
	if r.Object == nil || r.IsPatch() {
		return false
	}
	for key, value := range r.Object.Object {
		switch key {
		case "apiVersion", "kind":
		case "metadata":
			fields, _ := value.(map[string]any)
			for name := range fields {
				if name != "name" && name != "namespace" {
					return false
				}
			}
		default:
			return false
		}
	}

	return true
}

// defined is the kind that a CRD defines.
func defined(o *unstructured.Unstructured) schema.GroupKind {
	group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")

	return schema.GroupKind{Group: group, Kind: kind}
}

// Prunes reports whether a resource is a tombstone whose object must be deleted.
func (r *Resource) Prunes() bool {
	return r.Tombstone && !r.IsPatch() && !r.DisableReconciliation && r.Prune != enov1.PruneNever
}

// IsGuarded reports whether a resource is a tombstone that a guard may stop: its object must be
// deleted, and no user asked for it.
func (r *Resource) IsGuarded() bool { return r.Prunes() && !r.Requested }
