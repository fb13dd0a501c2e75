package subnetpoolclaim

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
)

// madeForIndexKey finds the SubnetClaims and SubnetPools of a SubnetPoolClaim by its
// name.
const madeForIndexKey = ".metadata.labels.pool-claim"

// A Reconciler serves SubnetPoolClaims.
type Reconciler struct {
	client   client.Client
	reader   client.Reader
	recorder events.EventRecorder
	// grace is how long the claim for a block is kept in case its SubnetPoolClaim is about to
	// be restored.
	grace time.Duration
	now   func() time.Time
	// known are the claims for blocks that wait for a SubnetPoolClaim.
	known *kube.FirstSeen
}

// SetupWithManager starts it with the manager. A claim for a block whose SubnetPoolClaim does
// not exist is kept for the time grace.
func SetupWithManager(mgr ctrl.Manager, grace time.Duration) error {
	r := &Reconciler{
		client: mgr.GetClient(), reader: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder("arbor-subnets"),
		grace: grace, now: time.Now, known: kube.NewFirstSeen(2 * grace),
	}
	if err := indexMadeFor(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}

	return ctrl.NewControllerManagedBy(mgr).
		Named("subnetpoolclaim").
		For(&v1alpha1.SubnetPoolClaim{}).
		Watches(&v1alpha1.SubnetClaim{}, handler.EnqueueRequestsFromMapFunc(r.claimsOf)).
		Watches(&v1alpha1.SubnetPool{}, handler.EnqueueRequestsFromMapFunc(r.claimsOf)).
		WithOptions(controller.Options{RateLimiter: kube.NewRetryLimiter()}).
		Complete(kube.Patient(r))
}

// indexMadeFor indexes what was made for SubnetPoolClaims by their names.
func indexMadeFor(ctx context.Context, i client.FieldIndexer) error {
	for _, o := range []client.Object{&v1alpha1.SubnetClaim{}, &v1alpha1.SubnetPool{}} {
		err := i.IndexField(ctx, o, madeForIndexKey, func(o client.Object) []string {
			if name := madeFor(o); name != "" {
				return []string{name}
			}

			return nil
		})
		if err != nil {
			return fmt.Errorf("cannot index %T by %s: %w", o, madeForIndexKey, err)
		}
	}

	return nil
}

// claimsOf maps an object to the SubnetPoolClaim that it was made for, and to the one
// that needs its name.
func (r *Reconciler) claimsOf(ctx context.Context, o client.Object) []reconcile.Request {
	key := client.ObjectKeyFromObject(o)
	if name := madeFor(o); name != "" {
		key.Name = name

		return []reconcile.Request{{NamespacedName: key}}
	}
	// Most claims are not about pools at all.
	if r.client.Get(ctx, key, &v1alpha1.SubnetPoolClaim{}, client.UnsafeDisableDeepCopy) != nil {
		return nil
	}

	return []reconcile.Request{{NamespacedName: key}}
}

// Reconcile takes the next step for a SubnetPoolClaim, or for what one left behind.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	c := &v1alpha1.SubnetPoolClaim{}
	err := r.client.Get(ctx, request.NamespacedName, c)
	switch {
	case apierrors.IsNotFound(err):
		return r.abandoned(ctx, request.NamespacedName)
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("cannot read SubnetPoolClaim %s: %w", request, err)
	case c.DeletionTimestamp != nil:
		return reconcile.Result{}, r.release(ctx, c)
	}

	return reconcile.Result{}, r.advance(ctx, c)
}

// advance brings a claim one step further. All names are given by the claim's, so two
// managers cannot make two pools.
func (r *Reconciler) advance(ctx context.Context, c *v1alpha1.SubnetPoolClaim) error {
	before := c.DeepCopy()
	if controllerutil.AddFinalizer(c, v1alpha1.Finalizer) {
		if err := r.patch(ctx, c, before); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	block, err := r.block(ctx, c)
	if err != nil {
		return r.reject(ctx, c, err)
	}
	if block.Status.Phase != v1alpha1.ClaimBound {
		phase := v1alpha1.ClaimPending
		if block.Status.Phase == v1alpha1.ClaimError {
			phase = v1alpha1.ClaimError
		}
		message := fmt.Sprintf("it waits for a /%d of pool %s", c.Spec.DesiredBlockSize, c.Spec.ParentPoolRef)
		if block.Status.Message != "" {
			message += ": " + block.Status.Message
		}

		return r.report(ctx, c, result{phase: phase, reason: reasonWaiting, message: message})
	}
	pool, err := r.pool(ctx, c, block)
	if err != nil {
		return r.reject(ctx, c, err)
	}

	return r.report(ctx, c, resultOf(pool))
}

// resultOf returns what the claim of a pool reports. Blocks can be taken from the pool
// once Arbor has opened it.
func resultOf(pool *v1alpha1.SubnetPool) result {
	if pool.Open() == "" {
		message := fmt.Sprintf("pool %s is not ready: see its status", pool.Name)

		return result{phase: v1alpha1.ClaimPending, pool: pool.Name, reason: reasonPoolNotReady, message: message}
	}
	message := fmt.Sprintf("pool %s has %s", pool.Name, pool.Spec.CIDR)

	return result{phase: v1alpha1.ClaimBound, pool: pool.Name, reason: reasonBound, message: message}
}

// reject reports on a claim why something cannot be made for it. Only an object with the same name
// needs no retry: its deletion is an event.
func (r *Reconciler) reject(ctx context.Context, c *v1alpha1.SubnetPoolClaim, err error) error {
	if taken, ok := errors.AsType[*nameTakenError](err); ok {
		return r.report(ctx, c, result{phase: v1alpha1.ClaimError, reason: reasonTaken, message: taken.Error()})
	}
	if refused, ok := errors.AsType[*notCreatedError](err); ok {
		return errors.Join(err, r.report(ctx, c, result{phase: v1alpha1.ClaimPending, reason: reasonNotCreated, message: refused.Error()}))
	}

	return err
}

// patch writes the changes of an object's metadata, on condition that it is as it was
// read.
func (r *Reconciler) patch(ctx context.Context, o, before client.Object) error {
	lock := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, o, lock); err != nil {
		return fmt.Errorf("cannot write the metadata of %T %s/%s: %w", o, o.GetNamespace(), o.GetName(), err)
	}

	return nil
}
