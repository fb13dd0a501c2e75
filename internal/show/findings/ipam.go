package findings

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	ipamaudit "github.com/arbor-control/arbor/internal/decide/ipam/audit"
	"github.com/arbor-control/arbor/internal/decide/verdict"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show"
)

// A Kind is a kind of the address API.
type Kind struct{ Name, Resource string }

// EstateKinds are the kinds of the address API, in the order in which they are
// counted.
var EstateKinds = []Kind{
	{v1alpha1.SubnetPoolKind, "subnetpools"},
	{v1alpha1.SubnetKind, "subnets"},
	{v1alpha1.SubnetClaimKind, "subnetclaims"},
	{v1alpha1.SubnetPoolClaimKind, "subnetpoolclaims"},
}

// EstateKind returns a kind of the address API with its group.
func EstateKind(kind string) schema.GroupKind {
	return schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: kind}
}

// A Survey is an estate as it was read, and what of it could not be.
type Survey struct {
	ipamaudit.Inventory

	undecodable []show.Finding
}

// Add takes up an object, unless it is of another kind.
func (s *Survey) Add(gk schema.GroupKind, obj map[string]any) {
	switch gk {
	case EstateKind(v1alpha1.SubnetPoolKind):
		s.Pools = enter(s, s.Pools, obj)
	case EstateKind(v1alpha1.SubnetKind):
		s.Subnets = enter(s, s.Subnets, obj)
	case EstateKind(v1alpha1.SubnetClaimKind):
		s.Claims = enter(s, s.Claims, obj)
	case EstateKind(v1alpha1.SubnetPoolClaimKind):
		s.PoolClaims = enter(s, s.PoolClaims, obj)
	}
}

func enter[T any](s *Survey, all []T, obj map[string]any) []T {
	o, undecodable := decodeParts[T](obj)
	s.undecodable = append(s.undecodable, undecodable...)

	return append(all, *o)
}

// Seen is how many objects there are of each kind.
func (s *Survey) Seen() []AuditPart {
	counts := []int{len(s.Pools), len(s.Subnets), len(s.Claims), len(s.PoolClaims)}
	out := make([]AuditPart, len(counts))

	for i, n := range counts {
		out[i] = AuditPart{Kind: EstateKinds[i].Name, Checked: n}
	}

	return out
}

// Inspect returns everything that is wrong with an estate as it is.
func (s *Survey) Inspect() []show.Finding {
	out := slices.Clone(s.undecodable)
	for _, f := range ipamaudit.Inspect(s.Inventory) {
		out = append(out, FromEstate(f))
	}

	return out
}

// FromEstate turns a finding about pools, Subnets and claims into one of any object.
func FromEstate(f ipamaudit.Finding) show.Finding {
	return show.Finding{
		Severity: show.Severity(f.Severity), Reason: f.Reason, Field: f.Field, Value: f.Value, Message: f.Message, Fix: f.Fix,
		Object: identity.Ref{APIVersion: v1alpha1.GroupVersion.String(), Kind: f.Object.Kind, Namespace: f.Object.Namespace, Name: f.Object.Name},
	}
}

// decodeParts makes a T of an untyped object. Fields that no T can hold are left
// out and become findings, so that one of them does not hide what is wrong with
// the others.
func decodeParts[T any](obj map[string]any) (*T, []show.Finding) {
	convert := func(obj map[string]any, into *T) error {
		return runtime.DefaultUnstructuredConverter.FromUnstructured(obj, into)
	}

	out := new(T)
	if convert(obj, out) == nil {
		return out, nil
	}

	var bad []show.Finding

	fits := func(field string, value any, one map[string]any) bool {
		err := convert(one, new(T))
		if err != nil {
			bad = append(bad, show.Finding{
				Severity: show.SeverityError, Object: identity.RefOf(obj), Reason: verdict.ReasonUndecodable,
				Field: field, Value: verdict.ScalarText(value), Message: "cannot decode: " + err.Error(),
			})
		}

		return err == nil
	}

	fit := map[string]any{}

	for _, key := range slices.Sorted(maps.Keys(obj)) {
		fields, ok := obj[key].(map[string]any)
		if !ok {
			if fits(key, obj[key], map[string]any{key: obj[key]}) {
				fit[key] = obj[key]
			}

			continue
		}

		some := map[string]any{}

		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if fits(key+"."+name, fields[name], map[string]any{key: map[string]any{name: fields[name]}}) {
				some[name] = fields[name]
			}
		}

		fit[key] = some
	}

	out = new(T)
	if err := convert(fit, out); err != nil {
		return new(T), append(bad, show.Finding{
			Severity: show.SeverityError, Object: identity.RefOf(obj), Reason: verdict.ReasonUndecodable, Message: "cannot decode: " + err.Error(),
		})
	}

	return out, bad
}

// SubnetPool returns what the rules for pools say about one alone.
func SubnetPool(obj map[string]any) []show.Finding {
	p, undecodable := decodeParts[v1alpha1.SubnetPool](obj)

	return append(undecodable, fromVerdict(identity.RefOf(obj), present(ipamrules.CheckPool(p, ipamrules.PoolNeighbors{})))...)
}

// Subnet returns what the rules for Subnets say about one alone.
func Subnet(obj map[string]any) []show.Finding {
	s, undecodable := decodeParts[v1alpha1.Subnet](obj)

	return append(undecodable, fromVerdict(identity.RefOf(obj), present(ipamrules.CheckSubnet(s, ipamrules.SubnetNeighbors{})))...)
}

// present is a verdict without what it says of objects that are absent: files
// hold a part of what there is.
func present(v verdict.Verdict) verdict.Verdict {
	v.Warnings = slices.DeleteFunc(v.Warnings, func(w verdict.Warning) bool {
		return w.Reason == ipamrules.ReasonParentNotFound || w.Reason == ipamrules.ReasonPoolNotFound
	})

	return v
}

// An AuditPart says how much one part of the audit saw.
type AuditPart struct {
	Kind string `json:"kind"`
	// Checked is the number of objects.
	Checked int `json:"checked"`
	// Skipped says why the part saw nothing, if it did not look.
	Skipped string `json:"skipped,omitempty"`
}
