package subnetpool

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/decide/ipam/release"
	"github.com/arbor-control/arbor/internal/kube"
)

const page = 500

// A Releaser deletes the backing Subnets of child pools that are gone.
type Releaser struct {
	client   client.Client
	reader   client.Reader
	recorder events.EventRecorder
	// grace is how long a Subnet that no pool has had is kept in case the pool is about to
	// be restored.
	grace time.Duration
	now   func() time.Time
	// known are the Subnets that wait for a pool.
	known *kube.FirstSeen
}

// Reconcile releases a backing Subnet when nothing depends on it; see [release.Backing]. One
// without the finalizer is released too: it was created by hand, or Arbor was uninstalled. The
// cache is asked first. Only the API server knows that nothing is left.
func (r *Releaser) Reconcile(ctx context.Context, s *v1alpha1.Subnet) (reconcile.Result, error) {
	if !release.IsBacking(s) || s.DeletionTimestamp != nil && !protects(s) {
		return reconcile.Result{}, nil // the API server deletes it
	}
	for _, gather := range []func(context.Context, *v1alpha1.Subnet) (release.Facts, error){r.cached, r.live} {
		facts, err := gather(ctx, s)
		if err != nil {
			return reconcile.Result{}, err
		}
		switch d := release.Backing(facts); d.Action {
		case release.Keep:
			if s.DeletionTimestamp != nil {
				r.recorder.Eventf(s, nil, corev1.EventTypeWarning, "InUse", "Delete", "the Subnet stays until it is no longer needed: %s", d.Reason)
			}

			return reconcile.Result{}, nil
		case release.Wait:
			return reconcile.Result{RequeueAfter: d.After}, nil
		case release.Release:
		}
	}

	return reconcile.Result{}, discard(ctx, r.client, s)
}

// cached reads from the cache what a decision depends on. The objects belong to the cache.
func (r *Releaser) cached(ctx context.Context, s *v1alpha1.Subnet) (release.Facts, error) {
	f, err := r.read(ctx, r.client, s)
	if err == nil {
		f.Child, err = kube.Find(ctx, r.client, &v1alpha1.SubnetPool{}, s.Namespace, release.ChildName(s))
	}

	return f, err
}

// live reads from the API server what a decision depends on.
func (r *Releaser) live(ctx context.Context, s *v1alpha1.Subnet) (release.Facts, error) {
	f, err := r.read(ctx, r.reader, s)
	if err != nil {
		return f, err
	}
	if f.Child, err = liveChild(ctx, r.reader, s); err != nil {
		return f, err
	}
	f.Inside, err = r.inside(ctx, s)

	return f, err
}

// read reads the pool and the claim of a Subnet.
func (r *Releaser) read(ctx context.Context, reader client.Reader, s *v1alpha1.Subnet) (release.Facts, error) {
	now := r.now()
	f := release.Facts{Subnet: s, Grace: r.grace, Now: now, Waited: now.Sub(s.CreationTimestamp.Time)}
	if s.Status.PoolUID == "" {
		f.Waited = min(f.Waited, now.Sub(r.known.Since(s.UID, now)))
	}
	var err error
	if f.Pool, err = kube.Find(ctx, reader, &v1alpha1.SubnetPool{}, s.Namespace, s.Spec.PoolRef); err != nil || s.Spec.ClaimRef == nil {
		return f, err
	}
	f.Claim, err = kube.Find(ctx, reader, &v1alpha1.SubnetClaim{}, s.Namespace, s.Spec.ClaimRef.Name)

	return f, err
}

// liveChild returns the pool that a backing Subnet is for, or one of its name, from the API
// server, nil if there is none. The pool of a Subnet without spec.backs may have any name.
func liveChild(ctx context.Context, live client.Reader, s *v1alpha1.Subnet) (*v1alpha1.SubnetPool, error) {
	named, err := kube.Find(ctx, live, &v1alpha1.SubnetPool{}, s.Namespace, release.ChildName(s))
	if err != nil || s.Spec.Backs != nil || named != nil && named.UID == s.Status.PoolUID {
		return named, err
	}
	for next, more := "", true; more; more = next != "" {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.SubnetPoolKind + "List"))
		if err := live.List(ctx, list, client.InNamespace(s.Namespace), client.Limit(page), client.Continue(next)); err != nil {
			return nil, fmt.Errorf("cannot list SubnetPools: %w", err)
		}
		for i := range list.Items {
			if list.Items[i].UID == s.Status.PoolUID {
				return &v1alpha1.SubnetPool{ObjectMeta: list.Items[i].ObjectMeta}, nil
			}
		}
		next = list.Continue
	}

	return named, nil
}

// inside describes a Subnet of the child pool that is left in a block, "" if there is none.
// That happens if the finalizer of the pool was removed by force. The pool of a Subnet
// without spec.backs may have had any name, so every Subnet counts that is not taken from a
// pool above.
func (r *Releaser) inside(ctx context.Context, s *v1alpha1.Subnet) (string, error) {
	pool := release.ChildName(s)
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
		if err == nil && !above[o.Spec.PoolRef] && ipamrules.Contains(s.Spec.CIDR, has.Masked()) && o.Status.Phase != v1alpha1.SubnetFailed {
			reason = fmt.Sprintf("Subnet %s of pool %s, which is gone, is in it", o.Name, o.Spec.PoolRef)
		}

		return reason == ""
	})

	return reason, err
}

// above returns the names of the pool of a Subnet and of the pools above it. The blocks
// that those are made of contain the Subnet.
func (r *Releaser) above(ctx context.Context, s *v1alpha1.Subnet) (map[string]bool, error) {
	names, _, err := ipamrules.Ancestors(s.Spec.PoolRef, func(name string) (*v1alpha1.SubnetPool, error) {
		return kube.Find(ctx, r.client, &v1alpha1.SubnetPool{}, s.Namespace, name)
	})
	above := map[string]bool{}
	for _, name := range names {
		above[name] = true
	}

	return above, err
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
