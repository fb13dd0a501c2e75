package subnetpool

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	poolrules "github.com/arbor-control/arbor/internal/decide/pool"
	"github.com/arbor-control/arbor/internal/kube"
)

const page = 500

// A Releaser deletes the backing Subnets of child pools that are gone.
type Releaser struct {
	client   client.Client
	reader   client.Reader
	recorder events.EventRecorder
	// deleted are the pools that were deleted a short time ago.
	deleted *kube.RecentlyDeleted
	// grace is how long a Subnet without its pool is kept in case the pool is about to
	// be restored.
	grace time.Duration
	now   func() time.Time
}

// Reconcile releases a backing Subnet when nothing depends on it. One without the
// finalizer is released too: it was created by hand, or Arbor was uninstalled.
func (r *Releaser) Reconcile(ctx context.Context, s *v1alpha1.Subnet) (reconcile.Result, error) {
	if !isBacking(s) || isOthers(s) {
		return reconcile.Result{}, nil
	}
	reason, err := r.needed(ctx, s)
	if err != nil {
		return reconcile.Result{}, err
	}
	if reason == "" {
		for _, wait := range []func(context.Context, *v1alpha1.Subnet) (time.Duration, error){r.expected, r.cool} {
			if left, err := wait(ctx, s); err != nil || left > 0 {
				return reconcile.Result{RequeueAfter: left}, err
			}
		}

		return reconcile.Result{}, discard(ctx, r.client, s)
	}
	if s.DeletionTimestamp != nil {
		r.recorder.Eventf(s, nil, corev1.EventTypeWarning, "InUse", "Delete", "the Subnet stays until it is no longer needed: %s", reason)
	}

	return reconcile.Result{}, nil
}

// isOthers reports whether another controller decides about a backing Subnet: the API
// server about one that is being deleted without our finalizer, and the judge about one
// with the status of a backup, which it removes.
func isOthers(s *v1alpha1.Subnet) bool {
	if s.DeletionTimestamp != nil {
		return !protects(s)
	}

	return s.Status.UID != "" && s.Status.UID != s.UID
}

// expected returns how long a Subnet without its child pool is kept, because the pool may
// still be restored. A pool that was deleted is not expected, nor is any in a parent that
// is being deleted. The Subnet of a claim waits for the claim.
func (r *Releaser) expected(ctx context.Context, s *v1alpha1.Subnet) (time.Duration, error) {
	if s.Spec.Backs == nil || s.Spec.ClaimRef != nil || s.DeletionTimestamp != nil {
		return 0, nil
	}
	if r.deleted.Has(cmp.Or(s.Status.PoolUID, s.Spec.Backs.UID)) {
		return 0, nil
	}
	parent, err := r.cached(ctx, s.Namespace, s.Spec.PoolRef)
	if err != nil || parent != nil && parent.DeletionTimestamp != nil {
		return 0, err
	}

	return max(0, s.CreationTimestamp.Add(r.grace).Sub(r.now())), nil
}

// isBacking reports whether a Subnet is, or becomes, the block of a child pool.
func isBacking(s *v1alpha1.Subnet) bool { return s.Spec.Backs != nil || s.Status.PoolUID != "" }

// needed returns what a backing Subnet is needed for, "" if it can be released. The
// cache is asked first. Only the API server can tell that nothing is left.
func (r *Releaser) needed(ctx context.Context, s *v1alpha1.Subnet) (string, error) {
	if s.Status.Phase != v1alpha1.SubnetAllocated && s.DeletionTimestamp != nil {
		return "", nil // no pool was, or can be, opened in it
	}
	for _, check := range []func(context.Context, *v1alpha1.Subnet) (string, error){r.cachedPool, r.restoring, r.claimed, r.livePool, r.inhabited} {
		if reason, err := check(ctx, s); err != nil || reason != "" {
			return reason, err
		}
	}

	return "", nil
}

// cachedPool reports whether the cache shows the child pool.
func (r *Releaser) cachedPool(ctx context.Context, s *v1alpha1.Subnet) (string, error) {
	return waitsFor(s, func() (bool, error) { return poolNamed(ctx, r.client, s) })
}

// livePool reports whether the child pool exists.
func (r *Releaser) livePool(ctx context.Context, s *v1alpha1.Subnet) (string, error) {
	return waitsFor(s, func() (bool, error) { return poolExists(ctx, r.reader, s) })
}

func waitsFor(s *v1alpha1.Subnet, exists func() (bool, error)) (string, error) {
	if there, err := exists(); err != nil || !there {
		return "", err
	}

	return fmt.Sprintf("pool %s is made of it", childName(s)), nil
}

// childName returns the name of the pool that a Subnet backs. Subnets that were stored
// before spec.backs existed have that of their claim.
func childName(s *v1alpha1.Subnet) string {
	switch {
	case s.Spec.Backs != nil:
		return s.Spec.Backs.Name
	case s.Spec.ClaimRef != nil:
		return s.Spec.ClaimRef.Name
	}

	return ""
}

// poolNamed reports whether the pool of the name in a backing Subnet is the pool that
// the Subnet is for.
func poolNamed(ctx context.Context, reader client.Reader, s *v1alpha1.Subnet) (bool, error) {
	p := &v1alpha1.SubnetPool{}
	if err := reader.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: childName(s)}, p); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}

		return false, fmt.Errorf("cannot read pool %s/%s: %w", s.Namespace, childName(s), err)
	}
	if s.Status.PoolUID == "" {
		return p.ParentName() == s.Spec.PoolRef, nil
	}

	return p.UID == s.Status.PoolUID, nil
}

// poolExists reports whether the pool that a backing Subnet is for exists. The pool of
// a Subnet without spec.backs may have any name.
func poolExists(ctx context.Context, live client.Reader, s *v1alpha1.Subnet) (bool, error) {
	if s.Spec.Backs != nil {
		return poolNamed(ctx, live, s)
	}
	for next, more := "", true; more; more = next != "" {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.SubnetPoolKind + "List"))
		if err := live.List(ctx, list, client.InNamespace(s.Namespace), client.Limit(page), client.Continue(next)); err != nil {
			return false, fmt.Errorf("cannot list SubnetPools: %w", err)
		}
		for i := range list.Items {
			if list.Items[i].UID == s.Status.PoolUID {
				return true, nil
			}
		}
		next = list.Continue
	}

	return false, nil
}

// restoring reports whether the parent comes from a backup: the child pool may not be
// back yet.
func (r *Releaser) restoring(ctx context.Context, s *v1alpha1.Subnet) (string, error) {
	parent := &v1alpha1.SubnetPool{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Spec.PoolRef}, parent, client.UnsafeDisableDeepCopy)
	if err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if parent.DeletionTimestamp == nil && poolrules.Restoring(parent) {
		return fmt.Sprintf("pool %s is being restored", parent.Name), nil
	}

	return "", nil
}

// claimed reports whether the claim of a Subnet exists, or may still be restored.
func (r *Releaser) claimed(ctx context.Context, s *v1alpha1.Subnet) (string, error) {
	if s.Spec.ClaimRef == nil {
		return "", nil
	}
	if s.Status.ClaimUID == "" && s.DeletionTimestamp == nil {
		return "no claim has had it yet", nil
	}
	c := &v1alpha1.SubnetClaim{}
	err := r.reader.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Spec.ClaimRef.Name}, c)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("cannot read SubnetClaim %s/%s: %w", s.Namespace, s.Spec.ClaimRef.Name, err)
	case c.Spec.PoolRef != s.Spec.PoolRef || c.Spec.ClusterID != s.Spec.ClusterID:
		return "", nil
	case s.DeletionTimestamp != nil && c.UID != s.Status.ClaimUID:
		return "", nil // a new claim cannot take a Subnet that is being deleted
	}

	return fmt.Sprintf("SubnetClaim %s has it", c.Name), nil
}

// inhabited reports whether Subnets of the child pool are left in the block. That
// happens if the finalizer of the pool was removed by force. The pool of a Subnet without
// spec.backs may have had any name, so every Subnet counts that is not taken from a pool
// above.
func (r *Releaser) inhabited(ctx context.Context, s *v1alpha1.Subnet) (string, error) {
	pool := childName(s)
	if s.Spec.Backs == nil {
		pool = kube.AllPools
	}
	above, err := r.above(ctx, s)
	if err != nil {
		return "", err
	}
	reason := ""
	err = kube.LiveSubnets(ctx, r.reader, s.Namespace, pool, func(o *v1alpha1.Subnet) bool {
		has, err := netip.ParsePrefix(o.Spec.CIDR)
		if err == nil && !above[o.Spec.PoolRef] && contains(s.Spec.CIDR, has.Masked()) && o.Status.Phase != v1alpha1.SubnetFailed {
			reason = fmt.Sprintf("Subnet %s of pool %s, which is gone, is in it", o.Name, o.Spec.PoolRef)
		}

		return reason == ""
	})

	return reason, err
}

// above returns the names of the pool of a Subnet and of the pools above it. The blocks
// that those are made of contain the Subnet.
func (r *Releaser) above(ctx context.Context, s *v1alpha1.Subnet) (map[string]bool, error) {
	names := map[string]bool{}
	for name := s.Spec.PoolRef; name != "" && !names[name]; {
		names[name] = true
		p, err := r.cached(ctx, s.Namespace, name)
		if err != nil {
			return nil, err
		}
		name = ""
		if p != nil {
			name = p.ParentName()
		}
	}

	return names, nil
}

// discard deletes a Subnet, on condition that it has not changed, and then removes its
// finalizer.
func discard(ctx context.Context, c client.Client, s *v1alpha1.Subnet) error {
	if s.DeletionTimestamp == nil {
		if err := c.Delete(ctx, s, client.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion}); err != nil {
			return client.IgnoreNotFound(fmt.Errorf("cannot delete Subnet %s/%s: %w", s.Namespace, s.Name, err))
		}

		return nil // the event of the deletion comes back
	}
	before := s.DeepCopy()
	if !controllerutil.RemoveFinalizer(s, v1alpha1.Finalizer) {
		return nil
	}
	if err := c.Patch(ctx, s, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("cannot remove the finalizer of Subnet %s/%s: %w", s.Namespace, s.Name, err))
	}

	return nil
}
