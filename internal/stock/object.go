package stock

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/arbor-control/arbor/internal/identity"
)

// An Object is one object of a rendering.
type Object struct {
	// Source is where the object comes from: a file or a template, and the document in it.
	Source string
	// Content is the object.
	Content map[string]any
}

// text is a field that is a string, or empty.
func (o Object) text(fields ...string) string {
	at := o.Content
	for _, f := range fields[:len(fields)-1] {
		at, _ = at[f].(map[string]any)
	}
	value, _ := at[fields[len(fields)-1]].(string)

	return value
}

// Kind is the kind of the object.
func (o Object) Kind() string { return o.text("kind") }

// String names the object for people.
func (o Object) String() string {
	if namespace := o.text("metadata", "namespace"); namespace != "" {
		return o.Kind() + " " + namespace + "/" + o.text("metadata", "name")
	}

	return o.Kind() + " " + o.text("metadata", "name")
}

// Annotation is the value of an annotation.
func (o Object) Annotation(name string) (string, bool) {
	metadata, _ := o.Content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	value, ok := annotations[name].(string)

	return value, ok
}

// Annotate sets an annotation. The object must have been checked.
func (o Object) Annotate(name, value string) {
	metadata, _ := o.Content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[name] = value
}

// RemoveAnnotation removes an annotation.
func (o Object) RemoveAnnotation(name string) {
	metadata, _ := o.Content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	delete(annotations, name)
	if annotations != nil && len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}

// complete checks all objects, and gives those of namespaced kinds a namespace if
// they have none.
func complete(all []Object, namespace string) error {
	for _, o := range all {
		if err := o.Check(); err != nil {
			return err
		}
	}
	scopes := scopesOf(all)
	first := map[identity.Identity]Object{}
	for _, o := range all {
		if namespace != "" && o.text("metadata", "namespace") == "" && !scopes.cluster(o) {
			o.Content["metadata"].(map[string]any)["namespace"] = namespace //nolint:forcetypeassert // it was checked
		}
		id, _ := identity.Of(o.Content).Normalize(scopes.known)
		id = identity.Number(id, first)
		if before, ok := first[id]; ok {
			return fmt.Errorf("%s: %s is there already, in %s", o.Source, o, before.Source)
		}
		first[id] = o
	}

	return nil
}

// Check checks what every object must have.
func (o Object) Check() error {
	for _, name := range []string{"apiVersion", "kind"} {
		if err := o.checkText(o.Content, name, name); err != nil {
			return err
		}
	}
	metadata, ok := o.Content["metadata"].(map[string]any)
	switch {
	case o.Content["metadata"] == nil:
		return fmt.Errorf("%s: metadata.name is missing", o.Source)
	case !ok:
		return fmt.Errorf("%s: metadata is %s, want a map", o.Source, typeOf(o.Content["metadata"]))
	case metadata["name"] == nil && metadata["generateName"] != nil:
		return fmt.Errorf("%s: metadata.generateName cannot be used: the object would be another one in every synthesis; set metadata.name", o.Source)
	}

	return o.checkMetadata(metadata)
}

func (o Object) checkMetadata(metadata map[string]any) error {
	if err := o.checkText(metadata, "name", "metadata.name"); err != nil {
		return err
	}
	if metadata["namespace"] != nil && metadata["namespace"] != "" {
		if err := o.checkText(metadata, "namespace", "metadata.namespace"); err != nil {
			return err
		}
	}
	for _, field := range []string{"labels", "annotations"} {
		if err := o.checkTexts(metadata, field); err != nil {
			return err
		}
	}

	return nil
}

func (o Object) checkText(in map[string]any, name, path string) error {
	switch value := in[name].(type) {
	case nil:
		return fmt.Errorf("%s: %s is missing", o.Source, path)
	case string:
		if value == "" {
			return fmt.Errorf("%s: %s is empty", o.Source, path)
		}

		return nil
	default:
		return fmt.Errorf("%s: %s is %s, want a string: put it in quotes", o.Source, path, typeOf(value))
	}
}

// checkTexts checks labels or annotations: a number in place of a string is a common mistake.
func (o Object) checkTexts(metadata map[string]any, field string) error {
	entries, ok := metadata[field].(map[string]any)
	if !ok && metadata[field] != nil {
		return fmt.Errorf("%s: metadata.%s is %s, want a map", o.Source, field, typeOf(metadata[field]))
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if _, ok := entries[key].(string); !ok {
			return fmt.Errorf("%s: metadata.%s[%s] is %s, want a string: put it in quotes", o.Source, field, key, typeOf(entries[key]))
		}
	}

	return nil
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	default:
		return "a number"
	}
}

// same compares two renderings, and names where the first difference comes from.
// It does not show values: they can be secret.
func same(a, b []Object) error {
	const why = "two renderings of the same inputs must not differ; remove what is random or depends on the time"
	for i := range min(len(a), len(b)) {
		if field := difference(a[i].Content, b[i].Content, ""); field != "" {
			return fmt.Errorf("%s: %s of %s is different each time: %s", a[i].Source, strings.TrimPrefix(field, "."), a[i], why)
		}
	}
	if len(a) == len(b) {
		return nil
	}
	longer := a
	if len(b) > len(a) {
		longer = b
	}
	o := longer[min(len(a), len(b))]

	return fmt.Errorf("%s: %s is not there each time: %s", o.Source, o, why)
}

// difference is the path of the first field that differs, in the order of fields.
func difference(a, b any, path string) string {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return path
		}
		for _, key := range slices.Compact(slices.Sorted(maps.Keys(union(x, y)))) {
			if d := difference(x[key], y[key], path+"."+key); d != "" {
				return d
			}
		}

		return ""
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return path
		}
		for i := range x {
			if d := difference(x[i], y[i], path+"["+strconv.Itoa(i)+"]"); d != "" {
				return d
			}
		}

		return ""
	default:
		return differs(a, b, path)
	}
}

func union(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	maps.Copy(all, b)

	return all
}

// differs compares values by their bytes in the output.
func differs(a, b any, path string) string {
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	if errA == nil && errB == nil && bytes.Equal(x, y) {
		return ""
	}

	return path
}
