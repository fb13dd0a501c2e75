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
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
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

// NewHandler returns the handler. A pool is compared with the other pools of its namespace, as the
// cache shows them. Of two pools that are created at the same moment both may be admitted; only one
// of them is opened.
func NewHandler(cache client.Reader, m *webhook.Metrics) admission.Handler {
	return webhook.NewHandler(v1alpha1.SubnetPoolKind, m, func(ctx context.Context, c webhook.Change[v1alpha1.SubnetPool]) (verdict.Verdict, error) {
		around, err := gather(ctx, cache, c.Before, c.After)
		if err != nil {
			return verdict.Verdict{}, err
		}

		return ipamrules.AdmitPool(c.Before, c.After, around), nil
	})
}

func gather(ctx context.Context, cache client.Reader, before, after *v1alpha1.SubnetPool) (ipamrules.PoolNeighbors, error) {
	var around ipamrules.PoolNeighbors
	pools := &collector{cache: cache, namespace: after.Namespace, found: map[string]v1alpha1.SubnetPool{}}
	for _, p := range []*v1alpha1.SubnetPool{before, after} {
		if p == nil {
			continue
		}
		if err := pools.near(ctx, p); err != nil {
			return around, err
		}
	}
	children, err := kube.ChildPools(ctx, cache, after.Namespace, after.Name)
	if err != nil {
		return around, err
	}
	pools.add(children)
	around.Pools = pools.all()

	// Subnets in a pool matter when its addresses change, and only then is a list of
	// possibly very many worth its cost.
	if before == nil || before.Spec.CIDR != after.Spec.CIDR {
		subnets := &v1alpha1.SubnetList{}
		fields := client.MatchingFields{kube.SubnetPoolRefIndexKey: after.Name}
		if err := cache.List(ctx, subnets, client.InNamespace(after.Namespace), fields, client.UnsafeDisableDeepCopy); err != nil {
			return around, fmt.Errorf("cannot list Subnets: %w", err)
		}
		around.Inside = slices.DeleteFunc(subnets.Items, func(s v1alpha1.Subnet) bool { return !counts(&s, before == nil) })
	}
	around.ParentSubnets, err = overlapping(ctx, cache, after)

	return around, err
}

// overlapping lists the Subnets of the parent that overlap a pool, and those that back it.
func overlapping(ctx context.Context, cache client.Reader, p *v1alpha1.SubnetPool) ([]v1alpha1.Subnet, error) {
	prefix, err := netip.ParsePrefix(p.Spec.CIDR)
	if p.ParentName() == "" || err != nil {
		return nil, nil //nolint:nilerr // an invalid CIDR is rejected for that
	}
	near, err := kube.SubnetsNear(ctx, cache, p.Namespace, p.ParentName(), prefix.Masked())
	if err != nil {
		return nil, err
	}
	backing, err := kube.BackingOf(ctx, cache, p)
	for i := range backing {
		if !slices.ContainsFunc(near, func(s v1alpha1.Subnet) bool { return s.UID == backing[i].UID }) {
			near = append(near, backing[i])
		}
	}

	return near, err
}

// counts reports whether a Subnet requires that its pool includes it. Subnets that wait for a new
// pool are compared with its range; those of an existing pool may be allocated at this moment.
func counts(s *v1alpha1.Subnet, newPool bool) bool {
	if newPool {
		return s.Status.Phase == v1alpha1.SubnetAllocated
	}

	return s.Status.Phase != v1alpha1.SubnetFailed
}
