package subnet

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/claim"
	"github.com/arbor-control/arbor/internal/decide/pool"
)

// stripOwners removes the owner references to claims that former versions wrote. After
// a restore the garbage collector would delete the Subnet because of them: the claim
// has a new UID.
func (r *Reconciler) stripOwners(ctx context.Context, s *v1alpha1.Subnet) (bool, error) {
	before := s.DeepCopy()
	s.OwnerReferences = slices.DeleteFunc(s.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == v1alpha1.SubnetClaimKind })
	if len(s.OwnerReferences) == len(before.OwnerReferences) {
		return false, nil
	}

	return true, r.patch(ctx, s, before)
}

// patch writes the changes of a Subnet's metadata, on condition that it is as it was
// read.
func (r *Reconciler) patch(ctx context.Context, s, before *v1alpha1.Subnet) error {
	lock := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, s, lock); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("cannot write the metadata of Subnet %s/%s: %w", s.Namespace, s.Name, err))
	}

	return nil
}

// resetStatus removes a status with the UID of another Subnet, which a backup can
// bring along: this Subnet has not been judged.
func (r *Reconciler) resetStatus(ctx context.Context, s *v1alpha1.Subnet) (bool, error) {
	if s.Status.UID == "" || s.Status.UID == s.UID {
		return false, nil
	}
	s.Status = v1alpha1.SubnetStatus{}
	if err := r.client.Status().Update(ctx, s); err != nil {
		return true, client.IgnoreNotFound(fmt.Errorf("cannot reset the status of Subnet %s/%s: %w", s.Namespace, s.Name, err))
	}

	return true, nil
}

// release deletes a Subnet whose claim is gone, or is bound to another Subnet. It
// keeps one that no known claim has had: its claim may not be restored yet. It also
// keeps the block of a child pool until the pool is gone; then the pool guard lets it
// go.
func (r *Reconciler) release(ctx context.Context, s *v1alpha1.Subnet) (bool, error) {
	if s.Spec.ClaimRef == nil {
		return false, nil
	}
	gone, err := r.claimGone(ctx, s)
	if err != nil || !gone {
		return false, err
	}
	child, err := r.cachedChild(ctx, s)
	if err != nil || consistsOf(child, s) {
		return false, err
	}
	// An adoption in between changes the resourceVersion, and wins.
	err = r.client.Delete(ctx, s, client.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("cannot release Subnet %s/%s: %w", s.Namespace, s.Name, err)
	}

	return true, nil
}

// cachedChild returns the pool that a Subnet names as its child pool from the cache, nil
// if there is none. It belongs to the cache.
func (r *Reconciler) cachedChild(ctx context.Context, s *v1alpha1.Subnet) (*v1alpha1.SubnetPool, error) {
	if s.Spec.Backs == nil {
		return nil, nil //nolint:nilnil // there is none
	}

	return r.cachedPool(ctx, s.Namespace, s.Spec.Backs.Name)
}

// consistsOf reports whether a child pool, nil if there is none, is made of the block of
// a Subnet or may become so. The pool of a Subnet that was stored before spec.backs
// existed may have any name, so only the guard can tell that it is gone.
func consistsOf(child *v1alpha1.SubnetPool, s *v1alpha1.Subnet) bool {
	switch {
	case s.Status.Phase == v1alpha1.SubnetFailed:
		return false
	case s.Spec.Backs == nil:
		return s.Status.PoolUID != ""
	case child == nil:
		return false
	case s.Status.PoolUID != "":
		return child.UID == s.Status.PoolUID
	}
	b, ok := block(s)
	has, err := netip.ParsePrefix(child.Spec.CIDR)

	return ok && err == nil && has.Overlaps(b.Prefix)
}

// claimGone reports whether the claim that had a Subnet does not need it any more. The
// API server must confirm that a claim is gone or bound to another Subnet, because the
// cache may be behind.
func (r *Reconciler) claimGone(ctx context.Context, s *v1alpha1.Subnet) (bool, error) {
	c, err := r.cachedClaim(ctx, s)
	if err != nil {
		return false, err
	}
	p, err := r.cachedPool(ctx, s.Namespace, s.Spec.PoolRef)
	if err != nil {
		return false, err
	}
	had := r.lastClaim(s, p)
	if surplus := c != nil && claim.Surplus(c, s); !surplus && (had == "" || c != nil && c.UID == had) {
		return false, nil
	}

	return r.confirmGone(ctx, s, had)
}

// confirmGone asks the API server whether the claim that had a Subnet last, "" if that is
// not known, does not need it any more.
func (r *Reconciler) confirmGone(ctx context.Context, s *v1alpha1.Subnet, had types.UID) (bool, error) {
	c := &v1alpha1.SubnetClaim{}
	err := r.reader.Get(ctx, claimKey(s), c)
	switch {
	case apierrors.IsNotFound(err):
		return had != "", nil
	case err != nil:
		return false, fmt.Errorf("cannot read SubnetClaim %s: %w", claimKey(s), err)
	case claim.Surplus(c, s):
		return true, nil
	}

	// A claim of the same name may be a restored one.
	return had != "" && c.UID != had && !claim.Wants(c, s), nil
}

// lastClaim returns the UID of the claim that had a Subnet of a pool last, "" if it is
// not known. The pool is nil if there is none.
func (r *Reconciler) lastClaim(s *v1alpha1.Subnet, p *v1alpha1.SubnetPool) types.UID {
	switch {
	case s.Status.UID == s.UID && s.Status.ClaimUID != "":
		return s.Status.ClaimUID
	case claim.Original(s) && r.deleted.Has(s.Spec.ClaimRef.UID), createdFor(s, p) && !r.now().Before(s.CreationTimestamp.Add(r.grace)):
		return s.Spec.ClaimRef.UID
	}

	return ""
}

// createdFor reports whether Arbor created a Subnet for a claim of this pool, so that
// the claim existed then. A Subnet of a backup was created for a pool with another UID,
// or long ago.
func createdFor(s *v1alpha1.Subnet, p *v1alpha1.SubnetPool) bool {
	return p != nil && claim.Original(s) && s.Spec.ClaimRef.PoolUID == p.UID && !pool.Restoring(p)
}

// unclaimed returns when to look again at a Subnet that has had no claim so far: it was
// judged after its claim was deleted, or its claim is not restored yet. It is 0 if time
// changes nothing.
func (r *Reconciler) unclaimed(ctx context.Context, s *v1alpha1.Subnet) (time.Duration, error) {
	if s.Spec.ClaimRef == nil || s.Status.ClaimUID != "" {
		return 0, nil
	}
	p, err := r.cachedPool(ctx, s.Namespace, s.Spec.PoolRef)
	if err != nil || !createdFor(s, p) {
		return 0, err
	}

	return max(0, s.CreationTimestamp.Add(r.grace).Sub(r.now())), nil
}
