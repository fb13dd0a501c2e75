package subnetpoolclaim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/decide/ipam/release"
	"github.com/arbor-control/arbor/internal/kube"
)

// abandoned releases the claims for blocks of a SubnetPoolClaim that is gone; see
// [release.PoolBlock]. A manager that was killed may have left one behind, and the finalizer of a
// SubnetPoolClaim can be removed by force. The cache is asked first. Only the API server knows that
// nothing needs the block.
func (r *Reconciler) abandoned(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	blocks, pools := &v1alpha1.SubnetClaimList{}, &v1alpha1.SubnetPoolList{}
	err := errors.Join(r.list(ctx, key, blocks), r.list(ctx, key, pools))
	if err != nil || len(blocks.Items) == 0 || len(pools.Items) > 0 {
		return reconcile.Result{}, err // the end of a pool is an event
	}
	var after time.Duration
	for i := range blocks.Items {
		wait, failed := r.abandonedBlock(ctx, key, &blocks.Items[i])
		if wait > 0 && (after == 0 || wait < after) {
			after = wait
		}
		err = errors.Join(err, failed)
	}
	if err != nil {
		return reconcile.Result{}, err
	}

	return reconcile.Result{RequeueAfter: after}, nil
}

// abandonedBlock releases a claim for a block if nothing needs it, or returns when to decide
// again, 0 if an event does that. Without a deletion by the user, only a claim that Arbor made
// is released: a label can be put on any claim.
func (r *Reconciler) abandonedBlock(ctx context.Context, key types.NamespacedName, cached *v1alpha1.SubnetClaim) (time.Duration, error) {
	if cached.DeletionTimestamp == nil && !isOwnBlock(cached, key.Name) {
		return 0, nil
	}
	if d, err := r.decideBlock(ctx, r.client, key, cached, nil); err != nil || d.Action != release.Release {
		return d.After, err
	}
	block, d, err := r.decideLive(ctx, key, cached)
	if err != nil || d.Action != release.Release {
		return d.After, err
	}
	if block.DeletionTimestamp != nil {
		return 0, r.free(ctx, block)
	}
	ctrl.LoggerFrom(ctx).Info("Releasing the SubnetClaim of a SubnetPoolClaim that is gone", "claim", client.ObjectKeyFromObject(block).String())

	return 0, r.remove(ctx, block) // the event of the deletion continues
}

// decideLive reads the claim for a block from the API server, and decides about it with facts
// from there. The claim is read before its SubnetPoolClaim, and deleted on condition that it
// has not changed since.
func (r *Reconciler) decideLive(ctx context.Context, key types.NamespacedName, cached *v1alpha1.SubnetClaim) (*v1alpha1.SubnetClaim, release.Decision, error) {
	var keep release.Decision
	block, err := kube.Find(ctx, r.reader, &v1alpha1.SubnetClaim{}, cached.Namespace, cached.Name)
	if err != nil || block == nil || block.UID != cached.UID {
		return nil, keep, err
	}
	claim, err := kube.Find(ctx, r.reader, &v1alpha1.SubnetPoolClaim{}, key.Namespace, key.Name)
	if err != nil || claim != nil {
		return nil, keep, err
	}
	if pools, err := r.livePools(ctx, key); err != nil || len(pools) > 0 {
		return nil, keep, err
	}
	d, err := r.decideBlock(ctx, r.reader, key, block, r.hasSubnets)

	return block, d, err
}

// decideBlock decides about the claim for a block, with facts from the cache or from the API
// server. The function inside, if there is one, reports whether Subnets of the pool exist.
func (r *Reconciler) decideBlock(
	ctx context.Context, reader client.Reader, key types.NamespacedName, block *v1alpha1.SubnetClaim,
	inside func(context.Context, types.NamespacedName) (bool, error),
) (release.Decision, error) {
	now := r.now()
	f := release.PoolBlockFacts{Block: block, Grace: r.grace, Waited: min(now.Sub(block.CreationTimestamp.Time), now.Sub(r.known.Since(block.UID, now)))}
	if block.DeletionTimestamp != nil {
		return release.PoolBlock(f), nil
	}
	var err error
	if f.Parent, err = kube.Find(ctx, reader, &v1alpha1.SubnetPool{}, block.Namespace, block.Spec.PoolRef); err != nil {
		return release.Decision{}, err
	}
	if f.Expected, err = r.isExpected(ctx, key); err == nil && !f.Expected && inside != nil {
		f.Expected, err = inside(ctx, key)
	}

	return release.PoolBlock(f), err
}

// isExpected reports whether a claim waits for a block that it had in a pool. It comes from a
// backup, so the pool is about to be restored.
func (r *Reconciler) isExpected(ctx context.Context, pool types.NamespacedName) (bool, error) {
	list := &v1alpha1.SubnetClaimList{}
	waiting := client.MatchingFields{kube.ClaimWaitingIndexKey: pool.Name}
	if err := r.client.List(ctx, list, client.InNamespace(pool.Namespace), waiting, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("cannot list the SubnetClaims of pool %s: %w", pool, err)
	}

	return slices.ContainsFunc(list.Items, func(c v1alpha1.SubnetClaim) bool {
		_, recorded := ipamrules.RecordedBlock(&c)

		return recorded
	}), nil
}

// hasSubnets reports whether the API server has Subnets of a pool, which may be restored
// before the pool.
func (r *Reconciler) hasSubnets(ctx context.Context, pool types.NamespacedName) (bool, error) {
	found := false
	err := kube.LiveSubnets(ctx, r.reader, pool.Namespace, pool.Name, func(s *v1alpha1.Subnet) bool {
		found = s.Status.Phase != v1alpha1.SubnetFailed

		return !found
	})

	return found, err
}
