package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

const (
	// livePage is how many Subnets one answer of the API server has.
	livePage = 500
	// poolRefField is the selectable field of Subnets.
	poolRefField = "spec.poolRef"
)

// AllPools stands for all pools of a namespace.
const AllPools = ""

// LiveSubnets lists the Subnets of a pool, or of AllPools, from the API server, page by
// page, and stops when each returns false. An API server whose CRD does not have the
// selectable field yet returns all Subnets of the namespace.
func LiveSubnets(ctx context.Context, r client.Reader, namespace, pool string, each func(*v1alpha1.Subnet) bool) error {
	options := []client.ListOption{client.InNamespace(namespace)}
	if pool != AllPools {
		options = append(options, client.MatchingFields{poolRefField: pool})
	}
	err := liveSubnets(ctx, r, pool, each, options...)
	if apierrors.IsBadRequest(err) {
		err = liveSubnets(ctx, r, pool, each, client.InNamespace(namespace))
	}
	if err != nil {
		return fmt.Errorf("cannot list the Subnets of pool %s/%s: %w", namespace, pool, err)
	}

	return nil
}

func liveSubnets(ctx context.Context, r client.Reader, pool string, each func(*v1alpha1.Subnet) bool, options ...client.ListOption) error {
	for next, more := "", true; more; more = next != "" {
		// A new list for each page: decoding keeps what the answer leaves out.
		list := &v1alpha1.SubnetList{}
		page := append([]client.ListOption{client.Limit(livePage), client.Continue(next)}, options...)
		if err := r.List(ctx, list, page...); err != nil {
			return err //nolint:wrapcheck // LiveSubnets does
		}
		for i := range list.Items {
			if s := &list.Items[i]; (pool == AllPools || s.Spec.PoolRef == pool) && !each(s) {
				return nil
			}
		}
		next = list.Continue
	}

	return nil
}
