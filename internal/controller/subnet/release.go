package subnet

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipam/release"
	"github.com/arbor-control/arbor/internal/kube"
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

// resetStatus removes a status with the UID of another Subnet, which a backup can bring along: this
// Subnet has not been decided on.
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

// release deletes a Subnet of a claim that is not needed any more; see [release.Claimed]. The cache
// is asked first. Only the API server knows that nothing needs the Subnet.
func (r *Reconciler) release(ctx context.Context, s *v1alpha1.Subnet) (bool, error) {
	if s.Spec.ClaimRef == nil {
		return false, nil
	}
	for _, from := range []source{r.cache(), r.server()} {
		facts, err := r.facts(ctx, from, s)
		if err != nil || release.Claimed(facts).Action != release.Release {
			return false, err
		}
	}
	// An adoption in between changes the resourceVersion, and wins.
	err := r.client.Delete(ctx, s, client.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("cannot release Subnet %s/%s: %w", s.Namespace, s.Name, err)
	}

	return true, nil
}

// unclaimed returns when to reconcile a Subnet again that has had no claim so far, 0 if time
// changes nothing.
func (r *Reconciler) unclaimed(ctx context.Context, s *v1alpha1.Subnet) (time.Duration, error) {
	if s.Spec.ClaimRef == nil || s.Status.ClaimUID != "" {
		return 0, nil
	}
	p, err := kube.Find(ctx, r.client, &v1alpha1.SubnetPool{}, s.Namespace, s.Spec.PoolRef)

	return release.DecideAgain(release.Facts{Subnet: s, Pool: p, Waited: r.age(s), Grace: r.grace}), err
}

// age returns how long a Subnet has existed.
func (r *Reconciler) age(s *v1alpha1.Subnet) time.Duration {
	return r.now().Sub(s.CreationTimestamp.Time)
}

// A source is where facts are read from. The objects belong to it.
type source struct {
	client.Reader

	// pool returns a pool, nil if it does not exist.
	pool func(context.Context, types.NamespacedName) (*v1alpha1.SubnetPool, error)
}

func (r *Reconciler) cache() source {
	return source{r.client, func(ctx context.Context, key types.NamespacedName) (*v1alpha1.SubnetPool, error) {
		return kube.Find(ctx, r.client, &v1alpha1.SubnetPool{}, key.Namespace, key.Name)
	}}
}

// server is the API server. Subnets of one pool share the reads of the pool.
func (r *Reconciler) server() source {
	return source{r.reader, func(ctx context.Context, key types.NamespacedName) (*v1alpha1.SubnetPool, error) {
		return r.pools.Get(ctx, key)
	}}
}

// facts reads what the release of a Subnet depends on from the cache or from the API server. The
// pool is read only if the status does not show which claim has had the Subnet, and not for one
// that is being deleted: reads from the API server cost, and cooling has it.
func (r *Reconciler) facts(ctx context.Context, from source, s *v1alpha1.Subnet) (release.Facts, error) {
	f := release.Facts{Subnet: s, Waited: r.age(s), Grace: r.grace, Now: r.now()}
	var err error
	if s.Spec.ClaimRef != nil {
		f.ClaimDeleted = r.deleted.Has(s.Spec.ClaimRef.UID)
		if f.Claim, err = kube.Find(ctx, from, &v1alpha1.SubnetClaim{}, s.Namespace, s.Spec.ClaimRef.Name); err != nil {
			return f, err
		}
	}
	if s.Status.ClaimUID == "" && s.DeletionTimestamp == nil {
		if f.Pool, err = from.pool(ctx, types.NamespacedName{Namespace: s.Namespace, Name: s.Spec.PoolRef}); err != nil {
			return f, err
		}
	}
	f.Child, err = kube.Find(ctx, from, &v1alpha1.SubnetPool{}, s.Namespace, release.ChildName(s))

	return f, err
}
