package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// addresses are the objects of the address API. Of two with one name the last
// counts, as it would if they were applied.
type addresses struct {
	pools      map[types.NamespacedName]*v1alpha1.SubnetPool
	subnets    map[types.NamespacedName]*v1alpha1.Subnet
	claims     map[types.NamespacedName]*v1alpha1.SubnetClaim
	poolClaims map[types.NamespacedName]*v1alpha1.SubnetPoolClaim
}

func newAddresses() *addresses {
	return &addresses{
		pools:      map[types.NamespacedName]*v1alpha1.SubnetPool{},
		subnets:    map[types.NamespacedName]*v1alpha1.Subnet{},
		claims:     map[types.NamespacedName]*v1alpha1.SubnetClaim{},
		poolClaims: map[types.NamespacedName]*v1alpha1.SubnetPoolClaim{},
	}
}

// add takes an object up. Objects of other kinds, and of other namespaces than
// a given one, are passed over; one without a namespace may be meant for any.
func (a *addresses) add(obj map[string]any, namespace string) error {
	ref := refOf(obj)
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
		return keep(a.pools, ref, obj)
	case v1alpha1.SubnetKind:
		return keep(a.subnets, ref, obj)
	case v1alpha1.SubnetClaimKind:
		return keep(a.claims, ref, obj)
	case v1alpha1.SubnetPoolClaimKind:
		return keep(a.poolClaims, ref, obj)
	default:
		return nil
	}
}

// keep decodes an object into its place.
func keep[T any, O interface {
	*T
	metav1.Object
}](all map[types.NamespacedName]*T, ref ObjectRef, obj map[string]any) error {
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, into); err != nil {
		return fmt.Errorf("cannot decode: %w", err)
	}

	O(into).SetNamespace(ref.Namespace)
	all[types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}] = into

	return nil
}

// addresses reads everything that there is to know about pools. bad is true
// if a part of the input could not be read, which is then said.
func (s *scope) addresses(ctx context.Context, namespace string) (a *addresses, bad bool, err error) {
	if s.offline() {
		return s.addressesOfFiles(ctx, namespace)
	}

	a, err = s.addressesOfCluster(ctx, namespace)

	return a, false, err
}

// addressesOfCluster lists claims before what is taken: one that is served in
// between then does not seem to wait.
func (s *scope) addressesOfCluster(ctx context.Context, namespace string) (*addresses, error) {
	list, err := s.connect(s.flags, s.ErrOut)
	if err != nil {
		return nil, err
	}

	a := newAddresses()

	for _, kind := range []struct{ name, resource string }{
		{v1alpha1.SubnetPoolClaimKind, "subnetpoolclaims"},
		{v1alpha1.SubnetClaimKind, "subnetclaims"},
		{v1alpha1.SubnetKind, "subnets"},
		{v1alpha1.SubnetPoolKind, "subnetpools"},
	} {
		objects, err := list(ctx, query{resource: v1alpha1.GroupVersion.WithResource(kind.resource), namespace: namespace})
		if errors.Is(err, errNotInstalled) {
			return nil, fmt.Errorf("the %s API (%s) is %w: install Arbor there with subnets.enabled in the chart, or --controllers=subnets of the manager, or read manifests with -f",
				kind.name, v1alpha1.GroupVersion, err)
		}

		if err != nil {
			return nil, err
		}

		for _, obj := range objects {
			if err := a.add(obj, namespace); err != nil {
				return nil, fmt.Errorf("cannot use %s: %w", refOf(obj), err)
			}
		}
	}

	return a, nil
}

func (s *scope) addressesOfFiles(ctx context.Context, namespace string) (a *addresses, bad bool, err error) {
	files, bad, err := s.files(ctx)
	if err != nil {
		return nil, bad, err
	}

	a = newAddresses()

	for _, f := range files {
		for _, d := range f.Documents {
			if err := a.add(d.Object, namespace); err != nil {
				bad = true
				s.complain(Located{File: f.Name, Line: d.Line("spec"), Finding: Finding{
					Severity: SeverityError, Object: refOf(d.Object), Reason: reasonUndecodable, Message: err.Error(),
				}})
			}
		}
	}

	return a, bad, nil
}
