package schema

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// A Validator validates objects of one kind. It may be used concurrently.
type Validator struct {
	namespaced bool
	served     []string
	versions   map[string]func() (*version, error)
}

// A version is what is compiled for one version of the kind.
type version struct {
	hasStatus  bool
	structural *structural.Structural
	openapi    validation.SchemaValidator
	rules      *cel.Validator
}

// New returns the validator of a CRD. Schemas are compiled when their version is first used.
func New(crd *apiextensionsv1.CustomResourceDefinition) *Validator {
	v := &Validator{
		namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
		versions:   map[string]func() (*version, error){},
	}

	for i := range crd.Spec.Versions {
		ver := &crd.Spec.Versions[i]
		if ver.Served {
			v.served = append(v.served, ver.Name)
			v.versions[ver.Name] = sync.OnceValues(func() (*version, error) { return compile(ver) })
		}
	}

	return v
}

// Served returns the names of the served versions in the order of the CRD.
func (v *Validator) Served() []string { return slices.Clone(v.served) }

func compile(ver *apiextensionsv1.CustomResourceDefinitionVersion) (*version, error) {
	var props apiextensions.JSONSchemaProps
	if ver.Schema == nil || ver.Schema.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("cannot use version %s: it has no schema", ver.Name)
	}

	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(ver.Schema.OpenAPIV3Schema, &props, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot convert the schema of version %s: %w", ver.Name, err)
	}

	s, err := structural.NewStructural(&props)
	if err != nil {
		return nil, fmt.Errorf("cannot use the schema of version %s: %w", ver.Name, err)
	}

	openapi, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return nil, fmt.Errorf("cannot compile the schema of version %s: %w", ver.Name, err)
	}

	return &version{
		hasStatus:  ver.Subresources != nil && ver.Subresources.Status != nil,
		structural: s,
		openapi:    openapi,
		rules:      cel.NewValidator(s, true, celconfig.PerCallLimit),
	}, nil
}

// Validate returns what an API server would reject about a new object, in the order of the fields.
// obj holds JSON values and is not changed.
func (v *Validator) Validate(ctx context.Context, name string, obj map[string]any) ([]Violation, error) {
	get, ok := v.versions[name]
	if !ok {
		return nil, fmt.Errorf("version %q is not served", name)
	}

	ver, err := get()
	if err != nil {
		return nil, err
	}

	obj = runtime.DeepCopyJSON(obj)

	out := ver.strip(obj)
	out = append(out, v.metadata(obj)...)

	// Metadata has been validated; the rest of it must not be validated again.
	obj["metadata"] = map[string]any{}

	for _, e := range ver.validate(ctx, obj) {
		out = append(out, fromError(e))
	}

	return sorted(out), nil
}

// strip removes from obj what the API server does not store, and returns the
// part of it that strict validation complains about.
func (ver *version) strip(obj map[string]any) []Violation {
	opts := structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}

	var out []Violation

	for _, path := range pruning.PruneWithOptions(obj, ver.structural, true, opts) {
		out = append(out, unknown(path, ver.structural))
	}

	_, unknownMeta := objectmeta.CoerceWithOptions(nil, obj, ver.structural, false,
		objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true, DropInvalidFields: true})
	for _, path := range unknownMeta {
		out = append(out, unknown(path, nil))
	}

	if ver.hasStatus {
		delete(obj, "status")
	}

	defaulting.PruneNonNullableNullsWithoutDefaults(obj, ver.structural)
	defaulting.Default(obj, ver.structural)

	return out
}

func (ver *version) validate(ctx context.Context, obj map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, obj, ver.openapi)
	errs = append(errs, objectmeta.Validate(nil, obj, ver.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, ver.structural, obj)...)

	if ver.rules == nil || slices.ContainsFunc(errs, blocksRules) {
		return errs
	}

	found, _ := ver.rules.Validate(ctx, nil, ver.structural, obj, nil, celconfig.RuntimeCELCostBudget)

	return append(errs, found...)
}

// blocksRules is true for errors after which rules could not be evaluated, or
// only at any cost.
func blocksRules(e *field.Error) bool {
	switch e.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong,
		field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	default:
		return false
	}
}
