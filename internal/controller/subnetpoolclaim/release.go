package subnetpoolclaim

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// release deletes the pool of a claim, then the claim for its block, and then removes
// the finalizer. The end of each is an event that continues here.
func (r *Reconciler) release(ctx context.Context, c *v1alpha1.SubnetPoolClaim) error {
	if !controllerutil.ContainsFinalizer(c, v1alpha1.Finalizer) {
		return nil
	}
	if taken, err := r.takeAll(ctx, c); err != nil || taken {
		return err
	}
	for _, next := range []func(context.Context, *v1alpha1.SubnetPoolClaim) (bool, error){r.releasePools, r.releaseBlocks} {
		if left, err := next(ctx, c); err != nil || left {
			return err
		}
	}
	before := c.DeepCopy()
	controllerutil.RemoveFinalizer(c, v1alpha1.Finalizer)

	return client.IgnoreNotFound(r.patch(ctx, c, before))
}

// takeAll labels what a former version made for a claim, so that live lists find it. It
// reports whether it wrote anything.
func (r *Reconciler) takeAll(ctx context.Context, c *v1alpha1.SubnetPoolClaim) (bool, error) {
	blocks, pools := &v1alpha1.SubnetClaimList{}, &v1alpha1.SubnetPoolList{}
	if err := errors.Join(r.list(ctx, client.ObjectKeyFromObject(c), blocks), r.list(ctx, client.ObjectKeyFromObject(c), pools)); err != nil {
		return false, err
	}
	var all []client.Object
	for i := range blocks.Items {
		all = append(all, blocks.Items[i].DeepCopy())
	}
	for i := range pools.Items {
		all = append(all, pools.Items[i].DeepCopy())
	}
	wrote := false
	for _, o := range all {
		before, ok := o.DeepCopyObject().(client.Object)
		if !ok || !belongs(o, c) || !take(o, c) {
			continue
		}
		wrote = true
		if err := client.IgnoreNotFound(r.patch(ctx, o, before)); err != nil {
			return wrote, err
		}
	}

	return wrote, nil
}

// releasePools deletes the pools of a claim, and reports whether there are any.
func (r *Reconciler) releasePools(ctx context.Context, c *v1alpha1.SubnetPoolClaim) (bool, error) {
	pools, err := r.livePools(ctx, client.ObjectKeyFromObject(c))
	if err != nil || len(pools) == 0 {
		return false, err
	}
	err = r.confirmDeleting(ctx, c)
	for i := 0; err == nil && i < len(pools); i++ {
		err = errors.Join(err, r.remove(ctx, &pools[i]))
	}

	return true, err
}

// releaseBlocks deletes the claims for blocks, and reports whether there are any.
func (r *Reconciler) releaseBlocks(ctx context.Context, c *v1alpha1.SubnetPoolClaim) (bool, error) {
	blocks, err := r.liveBlocks(ctx, client.ObjectKeyFromObject(c))
	if err != nil || len(blocks) == 0 {
		return false, err
	}
	err = r.confirmDeleting(ctx, c)
	for i := 0; err == nil && i < len(blocks); i++ {
		err = errors.Join(err, r.remove(ctx, &blocks[i]), r.free(ctx, &blocks[i]))
	}

	return true, err
}

// confirmDeleting returns an error unless the API server has the very claim that the cache
// shows as being deleted. What was listed before then was not made for a later claim of the
// name, such as a restored one.
func (r *Reconciler) confirmDeleting(ctx context.Context, c *v1alpha1.SubnetPoolClaim) error {
	live := &v1alpha1.SubnetPoolClaim{}
	err := r.reader.Get(ctx, client.ObjectKeyFromObject(c), live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot read SubnetPoolClaim %s/%s: %w", c.Namespace, c.Name, err)
	}
	if err != nil || live.UID != c.UID {
		return behind(c)
	}

	return nil
}

// livePools lists the pools of a SubnetPoolClaim from the API server: one that the
// cache does not show yet must not be left behind.
func (r *Reconciler) livePools(ctx context.Context, key types.NamespacedName) ([]v1alpha1.SubnetPool, error) {
	list := &v1alpha1.SubnetPoolList{}
	if err := r.liveList(ctx, key, list); err != nil {
		return nil, err
	}
	var made []v1alpha1.SubnetPool
	for i := range list.Items {
		if madeFor(&list.Items[i]) == key.Name {
			made = append(made, list.Items[i])
		}
	}

	return made, nil
}

// liveBlocks lists the claims for blocks of a SubnetPoolClaim from the API server.
func (r *Reconciler) liveBlocks(ctx context.Context, key types.NamespacedName) ([]v1alpha1.SubnetClaim, error) {
	list := &v1alpha1.SubnetClaimList{}
	if err := r.liveList(ctx, key, list); err != nil {
		return nil, err
	}
	var made []v1alpha1.SubnetClaim
	for i := range list.Items {
		if madeFor(&list.Items[i]) == key.Name {
			made = append(made, list.Items[i])
		}
	}

	return made, nil
}

func (r *Reconciler) liveList(ctx context.Context, key types.NamespacedName, list client.ObjectList) error {
	options := []client.ListOption{client.InNamespace(key.Namespace)}
	if isLabel(key.Name) { // an object of a former version for a longer name has no label
		options = append(options, client.MatchingLabels{v1alpha1.PoolClaimLabel: key.Name})
	}
	if err := r.reader.List(ctx, list, options...); err != nil {
		return fmt.Errorf("cannot list what belongs to SubnetPoolClaim %s: %w", key, err)
	}

	return nil
}

// remove deletes an object as it was read, unless it is being deleted already.
func (r *Reconciler) remove(ctx context.Context, o client.Object) error {
	if o.GetDeletionTimestamp() != nil {
		return nil
	}
	err := r.client.Delete(ctx, o, client.Preconditions{UID: new(o.GetUID()), ResourceVersion: new(o.GetResourceVersion())})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete %T %s/%s: %w", o, o.GetNamespace(), o.GetName(), err)
	}

	return nil
}

// free removes the finalizer of a claim for a block that is being deleted.
func (r *Reconciler) free(ctx context.Context, block *v1alpha1.SubnetClaim) error {
	before := block.DeepCopy()
	if block.DeletionTimestamp == nil || !controllerutil.RemoveFinalizer(block, v1alpha1.Finalizer) {
		return nil
	}

	return client.IgnoreNotFound(r.patch(ctx, block, before))
}
