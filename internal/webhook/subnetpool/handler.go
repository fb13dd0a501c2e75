// Package subnetpool admits SubnetPools.
package subnetpool

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	decide "github.com/arbor-control/arbor/internal/decide/pool"
	"github.com/arbor-control/arbor/internal/decide/verdict"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/internal/webhook"
	"github.com/arbor-control/arbor/internal/webhook/serving"
)

// Registration is how the API server knows this webhook.
var Registration = serving.Webhook{
	Name:     "subnetpools.admission.arbor",
	Path:     "/validate-plexaubnet-io-v1alpha1-subnetpool",
	Group:    v1alpha1.GroupVersion.Group,
	Version:  v1alpha1.GroupVersion.Version,
	Resource: "subnetpools",
}

// NewHandler returns what answers it. A pool is judged among the others of its
// namespace. Where its addresses are new these are read from the API server: of two
// that one file makes, a cache may not have heard of the first.
func NewHandler(cache, live client.Reader, m *webhook.Metrics) admission.Handler {
	return webhook.NewHandler(v1alpha1.SubnetPoolKind, m, func(ctx context.Context, before, after *v1alpha1.SubnetPool) (verdict.Verdict, error) {
		around, err := gather(ctx, cache, live, before, after)
		if err != nil {
			return verdict.Verdict{}, err
		}

		return decide.Admit(before, after, around), nil
	})
}

func gather(ctx context.Context, cache, live client.Reader, before, after *v1alpha1.SubnetPool) (decide.Around, error) {
	var around decide.Around
	moved := before == nil || before.Spec.CIDR != after.Spec.CIDR
	pools := &v1alpha1.SubnetPoolList{}
	all := cache
	if moved {
		all = live
	}
	if err := all.List(ctx, pools, client.InNamespace(after.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return around, fmt.Errorf("cannot list SubnetPools: %w", err)
	}
	around.Pools = pools.Items

	// What lives in a pool matters when its addresses change, and only then is
	// it worth a list of possibly very many.
	if moved {
		subnets := &v1alpha1.SubnetList{}
		fields := client.MatchingFields{kube.SubnetPoolRefIndexKey: after.Name}
		if err := cache.List(ctx, subnets, client.InNamespace(after.Namespace), fields, client.UnsafeDisableDeepCopy); err != nil {
			return around, fmt.Errorf("cannot list Subnets: %w", err)
		}
		around.Inside = slices.DeleteFunc(subnets.Items, func(s v1alpha1.Subnet) bool { return !counts(&s, before == nil) })
	}

	parent := after.ParentName()
	prefix, err := netip.ParsePrefix(after.Spec.CIDR)
	if parent == "" || err != nil {
		return around, nil //nolint:nilerr // what is no prefix is refused for that
	}
	around.Beside, err = kube.SubnetsNear(ctx, cache, after.Namespace, parent, prefix.Masked())

	return around, err
}

// counts says whether a Subnet keeps its pool from leaving it out. Those that
// wait for a new pool are judged by what it says; those of a pool that is there
// may be allocated at this very moment.
func counts(s *v1alpha1.Subnet, newPool bool) bool {
	if newPool {
		return s.Status.Phase == v1alpha1.SubnetAllocated
	}

	return s.Status.Phase != v1alpha1.SubnetFailed
}
