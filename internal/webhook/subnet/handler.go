// Package subnet admits Subnets that people make.
package subnet

import (
	"context"
	"fmt"
	"net/netip"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/decide/verdict"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/internal/webhook"
	"github.com/arbor-control/arbor/internal/webhook/serving"
)

// Registration is the registration of this webhook. It does not cover Subnets that were allocated
// for a claim or back a child pool: Arbor creates them, every Subnet is checked later, and a
// restored backup must be accepted as a whole.
var Registration = serving.Webhook{
	Name:     "subnets.admission.arbor",
	Path:     "/validate-plexaubnet-io-v1alpha1-subnet",
	Group:    v1alpha1.GroupVersion.Group,
	Version:  v1alpha1.GroupVersion.Version,
	Resource: "subnets",
	Only:     []serving.Condition{{Name: "made-by-hand", Expression: "oldObject == null && !has(object.spec.claimRef) && !has(object.spec.backs)"}},
}

// NewHandler returns the handler. A Subnet is compared with the other Subnets of its pool, as the
// cache shows them.
func NewHandler(cache client.Reader, m *webhook.Metrics) admission.Handler {
	return webhook.NewHandler(v1alpha1.SubnetKind, m, func(ctx context.Context, c webhook.Change[v1alpha1.Subnet]) (verdict.Verdict, error) {
		if c.Before != nil {
			return verdict.Verdict{}, nil // its spec never changes
		}
		around, err := gather(ctx, cache, c.After)
		if err != nil {
			return verdict.Verdict{}, err
		}

		return ipamrules.CheckSubnet(c.After, around), nil
	})
}

func gather(ctx context.Context, cache client.Reader, s *v1alpha1.Subnet) (ipamrules.SubnetNeighbors, error) {
	var around ipamrules.SubnetNeighbors
	prefix, err := netip.ParsePrefix(s.Spec.CIDR)
	if err != nil {
		return around, nil //nolint:nilerr // an invalid CIDR is rejected for that
	}
	pool := &v1alpha1.SubnetPool{}
	err = cache.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Spec.PoolRef}, pool)
	if client.IgnoreNotFound(err) != nil {
		return around, fmt.Errorf("cannot read pool %s/%s: %w", s.Namespace, s.Spec.PoolRef, err)
	}
	if err == nil {
		around.Pool = pool
	}
	if around.Others, err = kube.SubnetsNear(ctx, cache, s.Namespace, s.Spec.PoolRef, prefix.Masked()); err != nil {
		return around, err
	}
	around.Children, err = kube.ChildPools(ctx, cache, s.Namespace, s.Spec.PoolRef)

	return around, err
}
