package subnetclaim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
)

// adoptOne returns the Subnet that a claim has, nil if there is none. After a restore
// the claim and the Subnet have new UIDs, and the claim adopts the Subnet by name.
func (b *Binder) adoptOne(ctx context.Context, c *v1alpha1.SubnetClaim, subnets []v1alpha1.Subnet) (*v1alpha1.Subnet, error) {
	i := slices.IndexFunc(subnets, func(s v1alpha1.Subnet) bool { return ipamrules.ClaimAdopts(c, &s) })
	if i < 0 {
		return nil, nil //nolint:nilnil // there is none
	}
	s := &subnets[i]
	if s.Status.UID == s.UID && s.Status.ClaimUID == c.UID {
		return s, nil
	}
	if err := b.confirm(ctx, c, s); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	s.Status.UID, s.Status.ClaimUID = s.UID, c.UID
	// The update fails if the Subnet has changed: one that was released is not adopted.
	if err := b.client.Status().Update(ctx, s); err != nil {
		return nil, client.IgnoreNotFound(fmt.Errorf("cannot adopt Subnet %s/%s: %w", s.Namespace, s.Name, err))
	}

	return s, nil
}

// confirm returns an error unless the claim is still the one of its name. An old cache may show a
// claim that was replaced; adopting a Subnet for it would take the Subnet from the claim that has
// it, or from one that is not restored yet. A Subnet that Arbor created for the claim cannot belong
// to another one. One of a backup can name the claim, too.
func (b *Binder) confirm(ctx context.Context, c *v1alpha1.SubnetClaim, s *v1alpha1.Subnet) error {
	if s.Status.ClaimUID == "" && s.Spec.ClaimRef.UID == c.UID && ipamrules.IsOriginal(s) {
		return nil
	}
	live := &v1alpha1.SubnetClaim{}
	if err := b.reader.Get(ctx, client.ObjectKeyFromObject(c), live); err != nil {
		return fmt.Errorf("cannot read SubnetClaim %s/%s: %w", c.Namespace, c.Name, err)
	}
	if live.UID != c.UID {
		return behind("subnetclaims", c.Name)
	}

	return nil
}

// confirmLost returns an error unless the API server has no Subnet for a bound claim
// either. The cache of Subnets may be behind that of claims.
func (b *Binder) confirmLost(ctx context.Context, c *v1alpha1.SubnetClaim) error {
	if c.Status.SubnetRef == "" {
		return nil // other implementations of the API did not write it
	}
	s := &v1alpha1.Subnet{}
	err := b.reader.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Status.SubnetRef}, s)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot read Subnet %s/%s: %w", c.Namespace, c.Status.SubnetRef, err)
	}
	if err == nil && ipamrules.ClaimAdopts(c, s) {
		return behind("subnets", s.Name)
	}

	return nil
}

// behind returns the error for a cache that does not show what the API server has. The
// object is reconciled again a little later.
func behind(resource, name string) error {
	return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource(resource).GroupResource(), name, errors.New("the cache is behind"))
}
