package schema

import (
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// metadata validates the metadata of the object as it will be when an API server has filled in what
// a manifest may leave out.
func (v *Validator) metadata(obj map[string]any) []Violation {
	written, present := obj["metadata"]
	fields, isObject := written.(map[string]any)

	if present && written != nil && !isObject {
		return []Violation{{
			Reason: string(field.ErrorTypeTypeInvalid), Field: "metadata", Value: fmt.Sprint(written),
			Message: fmt.Sprintf("must be an object, not %s", kindOf(written)),
		}}
	}

	out := notStrings(fields)
	if len(out) == 0 {
		out = undecodable(fields)
	}

	meta, _, unknownFields, err := objectmeta.GetObjectMetaWithOptions(map[string]any{"metadata": fields},
		objectmeta.ObjectMetaOptions{DropMalformedFields: true, ReturnUnknownFieldPaths: true})
	if err != nil {
		return append(out, Violation{Reason: string(field.ErrorTypeInvalid), Field: "metadata", Message: err.Error()})
	}

	for _, path := range unknownFields {
		out = append(out, unknown(path, nil))
	}

	return append(out, v.validMetadata(meta)...)
}

func (v *Validator) validMetadata(meta *metav1.ObjectMeta) []Violation {
	if v.namespaced && meta.Namespace == "" {
		meta.Namespace = metav1.NamespaceDefault
	}

	if meta.Name == "" && meta.GenerateName != "" {
		meta.Name = meta.GenerateName + "00000"
	}

	var out []Violation

	for _, e := range apivalidation.ValidateObjectMeta(meta, v.namespaced, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata")) {
		out = append(out, fromError(e))
	}

	return out
}

// notStrings finds labels and annotations that YAML made a number or a
// boolean, which is the commonest slip in metadata.
func notStrings(metadata map[string]any) []Violation {
	var out []Violation

	for _, name := range []string{"labels", "annotations"} {
		pairs, _ := metadata[name].(map[string]any)
		for key, value := range pairs {
			if _, ok := value.(string); ok || value == nil {
				continue
			}

			out = append(out, Violation{
				Reason: string(field.ErrorTypeTypeInvalid), Field: "metadata." + name + "[" + key + "]", Value: fmt.Sprint(value),
				Message: fmt.Sprintf("must be a string, not %s", kindOf(value)), Fix: "put the value in quotes",
			})
		}
	}

	return out
}

// undecodable names the fields of metadata that have the wrong type.
func undecodable(metadata map[string]any) []Violation {
	var out []Violation

	for key, value := range metadata {
		if decodes(key, value) {
			continue
		}

		v := Violation{
			Reason: string(field.ErrorTypeTypeInvalid), Field: "metadata." + key, Value: scalarText(value),
			Message: fmt.Sprintf("cannot be %s", kindOf(value)),
		}
		if v.Value != "" && decodes(key, v.Value) {
			v.Message, v.Fix = fmt.Sprintf("must be a string, not %s", kindOf(value)), "put the value in quotes"
		}

		out = append(out, v)
	}

	return out
}

// decodes reports whether a field of metadata can hold a value.
func decodes(key string, value any) bool {
	one := map[string]any{"metadata": map[string]any{key: value}}
	_, _, err := objectmeta.GetObjectMeta(one, false)

	return err == nil
}

// kindOf returns the type of a JSON value for messages.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	default:
		return "an object"
	}
}

// scalarText is a value in short; what has parts is not repeated.
func scalarText(v any) string {
	if slices.Contains([]string{"a list", "an object", "null"}, kindOf(v)) {
		return ""
	}

	return fmt.Sprint(v)
}
