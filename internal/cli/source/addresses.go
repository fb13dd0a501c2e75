package source

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipamplan"
	"github.com/arbor-control/arbor/internal/decide/verdict"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show"
)

// Collect takes an object up. Objects of other kinds, and of other namespaces than
// a given one, are passed over; one without a namespace may be meant for any.
func Collect(a *ipamplan.Objects, obj map[string]any, namespace string) error {
	ref := identity.RefOf(obj)
	if group, _, _ := strings.Cut(ref.APIVersion, "/"); group != v1alpha1.GroupVersion.Group {
		return nil
	}

	if ref.Namespace == "" {
		ref.Namespace = namespace
	}

	if namespace != "" && ref.Namespace != namespace {
		return nil
	}

	switch ref.Kind {
	case v1alpha1.SubnetPoolKind:
		return Keep(a.Pools, ref, obj)
	case v1alpha1.SubnetKind:
		return Keep(a.Subnets, ref, obj)
	case v1alpha1.SubnetClaimKind:
		return Keep(a.Claims, ref, obj)
	case v1alpha1.SubnetPoolClaimKind:
		return Keep(a.PoolClaims, ref, obj)
	default:
		return nil
	}
}

// Keep decodes an object into its place.
func Keep[T any, O interface {
	*T
	metav1.Object
}](all map[types.NamespacedName]*T, ref identity.Ref, obj map[string]any) error {
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, into); err != nil {
		return fmt.Errorf("cannot decode: %w", err)
	}

	O(into).SetNamespace(ref.Namespace)
	all[types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}] = into

	return nil
}

// Addresses reads everything that there is to know about pools. bad is true
// if a part of the input could not be read, which is then said.
func (s *Scope) Addresses(ctx context.Context, namespace string) (a *ipamplan.Objects, bad bool, err error) {
	if s.Offline() {
		return s.addressesOfFiles(ctx, namespace)
	}

	a, err = s.AddressesOfCluster(ctx, namespace)

	return a, false, err
}

// AddressesOfCluster lists claims before what is taken: one that is served in
// between then does not seem to wait.
func (s *Scope) AddressesOfCluster(ctx context.Context, namespace string) (*ipamplan.Objects, error) {
	list, err := s.Connect(s.Flags, s.ErrOut)
	if err != nil {
		return nil, err
	}

	a := ipamplan.NewObjects()

	for _, kind := range []struct{ name, resource string }{
		{v1alpha1.SubnetPoolClaimKind, "subnetpoolclaims"},
		{v1alpha1.SubnetClaimKind, "subnetclaims"},
		{v1alpha1.SubnetKind, "subnets"},
		{v1alpha1.SubnetPoolKind, "subnetpools"},
	} {
		objects, err := list(ctx, Query{Resource: v1alpha1.GroupVersion.WithResource(kind.resource), Namespace: namespace})
		if errors.Is(err, ErrNotInstalled) {
			return nil, fmt.Errorf("the %s API (%s) is %w: install Arbor there with subnets.enabled in the chart, or --controllers=subnets of the manager, or read manifests with -f",
				kind.name, v1alpha1.GroupVersion, err)
		}

		if err != nil {
			return nil, err
		}

		for _, obj := range objects {
			if err := Collect(a, obj, namespace); err != nil {
				return nil, fmt.Errorf("cannot use %s: %w", identity.RefOf(obj), err)
			}
		}
	}

	return a, nil
}

func (s *Scope) addressesOfFiles(ctx context.Context, namespace string) (a *ipamplan.Objects, bad bool, err error) {
	files, bad, err := s.Files(ctx)
	if err != nil {
		return nil, bad, err
	}

	a = ipamplan.NewObjects()

	for _, f := range files {
		for _, d := range f.Documents {
			if err := Collect(a, d.Object, namespace); err != nil {
				bad = true
				s.Complain(show.Located{File: f.Name, Line: d.Line("spec"), Finding: show.Finding{
					Severity: show.SeverityError, Object: identity.RefOf(d.Object), Reason: verdict.ReasonUndecodable, Message: err.Error(),
				}})
			}
		}
	}

	return a, bad, nil
}
