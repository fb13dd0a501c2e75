package subnetpool

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	claimrules "github.com/arbor-control/arbor/internal/decide/claim"
)

// cool returns how long the block of a backing Subnet stays unused from now on.
func (r *Releaser) cool(ctx context.Context, s *v1alpha1.Subnet) (time.Duration, error) {
	parent, err := r.cached(ctx, s.Namespace, s.Spec.PoolRef)
	if err != nil {
		return 0, err
	}
	child, err := r.cached(ctx, s.Namespace, childName(s))
	if err != nil {
		return 0, err
	}

	claim, err := r.cachedClaim(ctx, s)
	if err != nil || claim != nil && claimrules.Insists(claim, s) {
		return 0, err // a claim from a backup gets the block back
	}

	return cooling(s, parent, child, r.now()), nil
}

// cachedClaim returns the claim that a Subnet names from the cache, nil if there is none.
func (r *Releaser) cachedClaim(ctx context.Context, s *v1alpha1.Subnet) (*v1alpha1.SubnetClaim, error) {
	if s.Spec.ClaimRef == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	c := &v1alpha1.SubnetClaim{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Spec.ClaimRef.Name}, c, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read SubnetClaim %s/%s: %w", s.Namespace, s.Spec.ClaimRef.Name, err)
	}

	return c, nil
}

// cached returns a pool from the cache, nil if there is none.
func (r *Releaser) cached(ctx context.Context, namespace, name string) (*v1alpha1.SubnetPool, error) {
	p := &v1alpha1.SubnetPool{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, p, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read pool %s/%s: %w", namespace, name, err)
	}

	return p, nil
}

// cooling returns how long the block of a Subnet that is being deleted stays unused: for
// spec.reuseAfter of the parent. It ends early if the Subnet never held its block, if the
// parent is being deleted, and if the child pool was created again in the block. Parent
// and child are nil if there is no such pool.
func cooling(s *v1alpha1.Subnet, parent, child *v1alpha1.SubnetPool, now time.Time) time.Duration {
	switch {
	case s.DeletionTimestamp == nil, s.Status.Phase != v1alpha1.SubnetAllocated:
		return 0
	case parent == nil, parent.DeletionTimestamp != nil, parent.Spec.ReuseAfter == nil:
		return 0
	case child != nil && isAgain(s, child):
		return 0
	}

	return max(0, s.DeletionTimestamp.Add(parent.Spec.ReuseAfter.Duration).Sub(now))
}

// isAgain reports whether a child pool asks for addresses of a Subnet that backed a pool
// of its name.
func isAgain(s *v1alpha1.Subnet, child *v1alpha1.SubnetPool) bool {
	wants, err := netip.ParsePrefix(child.Spec.CIDR)

	return err == nil && child.ParentName() == s.Spec.PoolRef && contains(s.Spec.CIDR, wants)
}
