package cli

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	ipamaudit "github.com/arbor-control/arbor/internal/decide/ipam/audit"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// estateKinds are the kinds of the address API, in the order in which they are
// counted.
var estateKinds = []struct{ kind, resource string }{
	{v1alpha1.SubnetPoolKind, "subnetpools"},
	{v1alpha1.SubnetKind, "subnets"},
	{v1alpha1.SubnetClaimKind, "subnetclaims"},
	{v1alpha1.SubnetPoolClaimKind, "subnetpoolclaims"},
}

func estateKind(kind string) schema.GroupKind {
	return schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: kind}
}

// A survey is an estate as it was read, and what of it could not be.
type survey struct {
	ipamaudit.Inventory

	undecodable []Finding
}

// add takes up an object, unless it is of another kind.
func (s *survey) add(gk schema.GroupKind, obj map[string]any) {
	switch gk {
	case estateKind(v1alpha1.SubnetPoolKind):
		s.Pools = enter(s, s.Pools, obj)
	case estateKind(v1alpha1.SubnetKind):
		s.Subnets = enter(s, s.Subnets, obj)
	case estateKind(v1alpha1.SubnetClaimKind):
		s.Claims = enter(s, s.Claims, obj)
	case estateKind(v1alpha1.SubnetPoolClaimKind):
		s.PoolClaims = enter(s, s.PoolClaims, obj)
	}
}

func enter[T any](s *survey, all []T, obj map[string]any) []T {
	o, undecodable := decodeParts[T](obj)
	s.undecodable = append(s.undecodable, undecodable...)

	return append(all, *o)
}

// seen is how many objects there are of each kind.
func (s *survey) seen() []AuditPart {
	counts := []int{len(s.Pools), len(s.Subnets), len(s.Claims), len(s.PoolClaims)}
	out := make([]AuditPart, len(counts))

	for i, n := range counts {
		out[i] = AuditPart{Kind: estateKinds[i].kind, Checked: n}
	}

	return out
}

// inspect returns everything that is wrong with an estate as it is.
func (s *survey) inspect() []Finding {
	out := slices.Clone(s.undecodable)
	for _, f := range ipamaudit.Inspect(s.Inventory) {
		out = append(out, fromEstate(f))
	}

	return out
}

func fromEstate(f ipamaudit.Finding) Finding {
	return Finding{
		Severity: Severity(f.Severity), Reason: f.Reason, Field: f.Field, Value: f.Value, Message: f.Message, Fix: f.Fix,
		Object: ObjectRef{APIVersion: v1alpha1.GroupVersion.String(), Kind: f.Object.Kind, Namespace: f.Object.Namespace, Name: f.Object.Name},
	}
}

// settle is how long a cluster gets to finish what it is doing, before what
// seems wrong is looked at again.
var settle = time.Second

// surveyCluster returns what there is in a cluster and what is wrong with it.
//
// The lists are not of one moment: a claim may be served, and a pool counted,
// between two of them. So what seems wrong is looked at once more, and only
// what is still wrong, to the letter, is reported.
func surveyCluster(ctx context.Context, list lister, namespace string) (*survey, []Finding, error) {
	s, err := listEstate(ctx, list, namespace)
	if err != nil {
		return nil, nil, err
	}

	findings := s.inspect()
	if len(findings) == 0 {
		return s, nil, nil
	}

	select {
	case <-time.After(settle):
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}

	if s, err = listEstate(ctx, list, namespace); err != nil {
		return nil, nil, err
	}

	before := make(map[Finding]bool, len(findings))
	for _, f := range findings {
		before[f] = true
	}

	return s, slices.DeleteFunc(s.inspect(), func(f Finding) bool { return !before[f] }), nil
}

func listEstate(ctx context.Context, list lister, namespace string) (*survey, error) {
	s := &survey{}

	for _, k := range estateKinds {
		objects, err := list(ctx, query{resource: v1alpha1.GroupVersion.WithResource(k.resource), namespace: namespace})
		if err != nil {
			return nil, err
		}

		for _, obj := range objects {
			s.add(estateKind(k.kind), obj)
		}
	}

	return s, nil
}

// decodeParts makes a T of an untyped object. Fields that no T can hold are left
// out and become findings, so that one of them does not hide what is wrong with
// the others.
func decodeParts[T any](obj map[string]any) (*T, []Finding) {
	convert := func(obj map[string]any, into *T) error {
		return runtime.DefaultUnstructuredConverter.FromUnstructured(obj, into)
	}

	out := new(T)
	if convert(obj, out) == nil {
		return out, nil
	}

	var bad []Finding

	fits := func(field string, value any, one map[string]any) bool {
		err := convert(one, new(T))
		if err != nil {
			bad = append(bad, Finding{
				Severity: SeverityError, Object: refOf(obj), Reason: reasonUndecodable,
				Field: field, Value: scalarText(value), Message: "cannot decode: " + err.Error(),
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
		return new(T), append(bad, Finding{
			Severity: SeverityError, Object: refOf(obj), Reason: reasonUndecodable, Message: "cannot decode: " + err.Error(),
		})
	}

	return out, bad
}

// checkSubnetPool returns what the rules for pools say about one alone.
func checkSubnetPool(obj map[string]any) []Finding {
	p, undecodable := decodeParts[v1alpha1.SubnetPool](obj)

	return append(undecodable, fromVerdict(refOf(obj), present(ipamrules.CheckPool(p, ipamrules.PoolNeighbors{})))...)
}

// checkSubnet returns what the rules for Subnets say about one alone.
func checkSubnet(obj map[string]any) []Finding {
	s, undecodable := decodeParts[v1alpha1.Subnet](obj)

	return append(undecodable, fromVerdict(refOf(obj), present(ipamrules.CheckSubnet(s, ipamrules.SubnetNeighbors{})))...)
}

// present is a verdict without what it says of objects that are absent: files
// hold a part of what there is.
func present(v verdict.Verdict) verdict.Verdict {
	v.Warnings = slices.DeleteFunc(v.Warnings, func(w verdict.Warning) bool {
		return w.Reason == ipamrules.ReasonParentNotFound || w.Reason == ipamrules.ReasonPoolNotFound
	})

	return v
}
