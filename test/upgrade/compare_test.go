// Package upgrade_test tests that stored objects and manifests of the last release work with this
// one.
package upgrade_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// schema is short for what a schema is called.
type schema = apiextensionsv1.JSONSchemaProps

// broken lists what a CRD no longer lets pass that an older one did. What
// was stored must be readable, and manifests must be accepted as before.
func broken(before, now *apiextensionsv1.CustomResourceDefinition) []string {
	var found []string
	if before.Spec.Scope != now.Spec.Scope || before.Spec.Names.Plural != now.Spec.Names.Plural || before.Spec.Names.Kind != now.Spec.Names.Kind {
		found = append(found, "scope or names have changed: objects are not found any more")
	}
	for _, was := range before.Spec.Versions {
		i := slices.IndexFunc(now.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == was.Name })
		switch {
		case i < 0 || was.Served && !now.Spec.Versions[i].Served:
			found = append(found, was.Name+": it is not served any more")

			continue
		case was.Subresources != nil && now.Spec.Versions[i].Subresources == nil:
			found = append(found, was.Name+": it has no status any more")
		}
		for _, text := range narrowed(was.Schema.OpenAPIV3Schema, now.Spec.Versions[i].Schema.OpenAPIV3Schema, "") {
			found = append(found, was.Name+": "+text)
		}
	}

	return found
}

// narrowed lists where a schema forbids what an older one allowed.
func narrowed(was, is *schema, path string) []string {
	var found []string
	report := func(format string, args ...any) {
		found = append(found, cmp.Or(path, ".")+" "+fmt.Sprintf(format, args...))
	}
	if was.Type != is.Type && !isTrue(is.XPreserveUnknownFields) && !is.XIntOrString {
		report("is %q, and was %q", is.Type, was.Type)
	}
	if isTrue(was.XPreserveUnknownFields) && !isTrue(is.XPreserveUnknownFields) {
		report("no longer keeps fields that are not named")
	}
	if was.Nullable && !is.Nullable {
		report("must not be null any more")
	}
	for _, name := range is.Required {
		if !slices.Contains(was.Required, name) && is.Properties[name].Default == nil {
			report("needs %s now", name)
		}
	}
	found = append(found, narrowedValues(was, is, path)...)
	for _, name := range slices.Sorted(maps.Keys(was.Properties)) {
		older := was.Properties[name]
		if newer, ok := is.Properties[name]; ok {
			found = append(found, narrowed(&older, &newer, path+"."+name)...)
		} else if !isTrue(is.XPreserveUnknownFields) {
			report("has no %s any more: it would be dropped", name)
		}
	}
	if was.Items != nil && was.Items.Schema != nil && is.Items != nil && is.Items.Schema != nil {
		found = append(found, narrowed(was.Items.Schema, is.Items.Schema, path+"[]")...)
	}
	if was.AdditionalProperties != nil && was.AdditionalProperties.Schema != nil && is.AdditionalProperties != nil && is.AdditionalProperties.Schema != nil {
		found = append(found, narrowed(was.AdditionalProperties.Schema, is.AdditionalProperties.Schema, path+"{}")...)
	}

	return found
}

// narrowedValues is the part of it that is about single values, lists and rules.
func narrowedValues(was, is *schema, path string) []string {
	var found []string
	report := func(format string, args ...any) {
		found = append(found, cmp.Or(path, ".")+" "+fmt.Sprintf(format, args...))
	}
	for _, value := range was.Enum {
		if len(is.Enum) > 0 && !slices.ContainsFunc(is.Enum, func(v apiextensionsv1.JSON) bool { return bytes.Equal(v.Raw, value.Raw) }) {
			report("may not be %s any more", value.Raw)
		}
	}
	if len(was.Enum) == 0 && len(is.Enum) > 0 {
		report("must be one of %d values now", len(is.Enum))
	}
	if is.Pattern != "" && is.Pattern != was.Pattern {
		report("must match %s now", is.Pattern)
	}
	if is.Format != "" && is.Format != was.Format {
		report("must be a %s now", is.Format)
	}
	for name, limits := range map[string][2]*int64{
		"length": {was.MaxLength, is.MaxLength}, "number of items": {was.MaxItems, is.MaxItems}, "number of fields": {was.MaxProperties, is.MaxProperties},
		"least length": {negative(was.MinLength), negative(is.MinLength)}, "least number of items": {negative(was.MinItems), negative(is.MinItems)},
	} {
		if limits[1] != nil && (limits[0] == nil || *limits[1] < *limits[0]) {
			report("has a tighter limit of its %s", name)
		}
	}
	if is.Maximum != nil && (was.Maximum == nil || *is.Maximum < *was.Maximum) || is.Minimum != nil && (was.Minimum == nil || *is.Minimum > *was.Minimum) {
		report("has a tighter range")
	}
	for _, rule := range is.XValidations {
		if !slices.ContainsFunc(was.XValidations, func(r apiextensionsv1.ValidationRule) bool { return r.Rule == rule.Rule }) {
			report("has another rule: %s", rule.Rule)
		}
	}
	if !equality.Semantic.DeepEqual(was.XListType, is.XListType) || !equality.Semantic.DeepEqual(was.XListMapKeys, is.XListMapKeys) || !equality.Semantic.DeepEqual(was.XMapType, is.XMapType) {
		report("is merged in another way, which changes who owns its parts")
	}
	if was.Default != nil && (is.Default == nil || !sameJSON(was.Default, is.Default)) {
		report("has another default: what is stored without it changes its meaning")
	}

	return found
}

func isTrue(b *bool) bool { return b != nil && *b }

func negative(n *int64) *int64 {
	if n == nil {
		return nil
	}

	return new(-*n)
}

func sameJSON(a, b *apiextensionsv1.JSON) bool {
	var x, y any

	return json.Unmarshal(a.Raw, &x) == nil && json.Unmarshal(b.Raw, &y) == nil && equality.Semantic.DeepEqual(x, y)
}
