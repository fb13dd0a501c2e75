package subnetpoolclaim

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
)

// create creates an object of a claim, or reads it into stored if the cache does not
// show it yet. The claim is read from the API server first: one that was deleted must
// not leave new objects behind. It is read again afterwards: another manager may have
// released the claim between the first read and the creation.
func create[T client.Object](ctx context.Context, r *Reconciler, c *v1alpha1.SubnetPoolClaim, o, stored T, fits func(T, *v1alpha1.SubnetPoolClaim) bool) (T, error) {
	if err := r.confirm(ctx, c); err != nil {
		return o, err
	}
	err := r.client.Create(ctx, o)
	if err == nil {
		return o, verify(ctx, r, c, o, fits)
	}
	kind := strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1alpha1.")
	if !apierrors.IsAlreadyExists(err) {
		return o, &notCreatedError{kind, o.GetName(), err}
	}
	if err := r.reader.Get(ctx, client.ObjectKeyFromObject(o), stored); err != nil {
		return o, fmt.Errorf("cannot read %s %s/%s: %w", kind, o.GetNamespace(), o.GetName(), err)
	}
	if !belongs(stored, c) || !fits(stored, c) {
		return o, &nameTakenError{kind, o.GetName()}
	}

	return stored, nil
}

// verifications is how often the deletion of a new object is tried while other writers, such
// as the allocator, change it.
const verifications = 5

// verify deletes an object that was just created for a claim, unless the API server has a
// claim of the name that is not being deleted and that the object fits. A manager lists what
// a claim has made only after it was deleted, so it finds an object that was created before.
func verify[T client.Object](ctx context.Context, r *Reconciler, c *v1alpha1.SubnetPoolClaim, o T, fits func(T, *v1alpha1.SubnetPoolClaim) bool) error {
	made := o.GetUID()
	for range verifications {
		live, err := kube.Find(ctx, r.reader, &v1alpha1.SubnetPoolClaim{}, c.Namespace, c.Name)
		if err != nil || live != nil && live.DeletionTimestamp == nil && fits(o, live) {
			return err
		}
		if err = r.remove(ctx, o); err == nil {
			break
		}
		if !apierrors.IsConflict(err) {
			return err
		}
		err = r.reader.Get(ctx, client.ObjectKeyFromObject(o), o)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot read %T %s/%s: %w", o, c.Namespace, c.Name, err)
		}
		if err != nil || o.GetUID() != made {
			break
		}
	}

	return behind(c)
}

// confirm returns an error unless a claim is there, has its finalizer and is not being
// deleted.
func (r *Reconciler) confirm(ctx context.Context, c *v1alpha1.SubnetPoolClaim) error {
	live := &v1alpha1.SubnetPoolClaim{}
	if err := r.reader.Get(ctx, client.ObjectKeyFromObject(c), live); err != nil {
		return fmt.Errorf("cannot read SubnetPoolClaim %s/%s: %w", c.Namespace, c.Name, err)
	}
	if live.UID != c.UID || live.DeletionTimestamp != nil || !controllerutil.ContainsFinalizer(live, v1alpha1.Finalizer) {
		return behind(c)
	}

	return nil
}

// behind returns the error for a cache that does not show what the API server has. The claim
// is reconciled again a little later.
func behind(c *v1alpha1.SubnetPoolClaim) error {
	return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("subnetpoolclaims").GroupResource(), c.Name, errors.New("the cache is behind"))
}
