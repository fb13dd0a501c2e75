// Package subnetpoolclaim serves SubnetPoolClaims: it takes a block from the
// parent by an ordinary SubnetClaim, so that the block is judged like all
// others, and makes a pool of it.
//
//	SubnetPoolClaim ──owns──▶ SubnetClaim ──▶ Subnet      the block, in the parent
//	       └─────────owns──▶ SubnetPool                  the pool of that block
//
// The other way round when it is deleted: first the pool, which waits until
// nothing lives in it, and only then the block.
package subnetpoolclaim

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
)

// Reasons of the condition Ready.
const (
	reasonBound   = "Bound"
	reasonWaiting = "WaitingForBlock"
	reasonTaken   = "NameTaken"
)

// A Reconciler serves claims for pools.
type Reconciler struct {
	client   client.Client
	reader   client.Reader
	recorder events.EventRecorder
}

// SetupWithManager starts it with the manager.
func SetupWithManager(mgr ctrl.Manager) error {
	r := &Reconciler{client: mgr.GetClient(), reader: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder("arbor-subnets")}

	return ctrl.NewControllerManagedBy(mgr).
		Named("subnetpoolclaim").
		For(&v1alpha1.SubnetPoolClaim{}).
		Owns(&v1alpha1.SubnetClaim{}).
		Owns(&v1alpha1.SubnetPool{}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// Reconcile brings a claim one step further. Names are the claim's own, so two
// managers cannot make two pools.
func (r *Reconciler) Reconcile(ctx context.Context, c *v1alpha1.SubnetPoolClaim) (reconcile.Result, error) {
	if c.DeletionTimestamp != nil {
		return reconcile.Result{}, r.release(ctx, c)
	}
	if controllerutil.AddFinalizer(c, v1alpha1.Finalizer) {
		if err := r.client.Update(ctx, c); err != nil {
			return reconcile.Result{}, kube.IgnoreStale(fmt.Errorf("cannot write the finalizer of SubnetPoolClaim %s/%s: %w", c.Namespace, c.Name, err))
		}
	}
	block, err := r.block(ctx, c)
	if err != nil {
		return reconcile.Result{}, r.refuse(ctx, c, err)
	}
	if block.Status.Phase != v1alpha1.ClaimBound {
		phase := v1alpha1.ClaimPending
		if block.Status.Phase == v1alpha1.ClaimError {
			phase = v1alpha1.ClaimError
		}

		return reconcile.Result{}, r.say(ctx, c, phase, "", reasonWaiting, "a block of the parent: "+block.Status.Message)
	}
	if err := r.pool(ctx, c, block.Status.AllocatedCIDR); err != nil {
		return reconcile.Result{}, r.refuse(ctx, c, err)
	}

	return reconcile.Result{}, r.say(ctx, c, v1alpha1.ClaimBound, c.Name, reasonBound, fmt.Sprintf("pool %s has %s", c.Name, block.Status.AllocatedCIDR))
}

// block returns the claim for the parent's block, made first if it is not there.
func (r *Reconciler) block(ctx context.Context, c *v1alpha1.SubnetPoolClaim) (*v1alpha1.SubnetClaim, error) {
	block := &v1alpha1.SubnetClaim{ObjectMeta: r.meta(c)}
	block.Spec = v1alpha1.SubnetClaimSpec{PoolRef: c.Spec.ParentPoolRef, ClusterID: string(c.UID), BlockSize: &c.Spec.DesiredBlockSize}

	return block, r.ensure(ctx, c, block)
}

// pool makes the pool of a block.
func (r *Reconciler) pool(ctx context.Context, c *v1alpha1.SubnetPoolClaim, cidr string) error {
	pool := &v1alpha1.SubnetPool{ObjectMeta: r.meta(c)}
	pool.Labels = map[string]string{v1alpha1.ParentLabel: c.Spec.ParentPoolRef, v1alpha1.IPAMLabel: "true"}
	pool.Spec = v1alpha1.SubnetPoolSpec{CIDR: cidr, Parent: c.Spec.ParentPoolRef}

	return r.ensure(ctx, c, pool)
}

func (r *Reconciler) meta(c *v1alpha1.SubnetPoolClaim) metav1.ObjectMeta {
	owner := metav1.NewControllerRef(c, v1alpha1.GroupVersion.WithKind(v1alpha1.SubnetPoolClaimKind))

	return metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, OwnerReferences: []metav1.OwnerReference{*owner}}
}

// ensure reads an object of ours, or makes it. One of the same name that is
// somebody else's is an error.
func (r *Reconciler) ensure(ctx context.Context, c *v1alpha1.SubnetPoolClaim, o client.Object) error {
	err := r.client.Get(ctx, client.ObjectKeyFromObject(o), o)
	if apierrors.IsNotFound(err) {
		if err = r.client.Create(ctx, o); apierrors.IsAlreadyExists(err) {
			err = r.reader.Get(ctx, client.ObjectKeyFromObject(o), o) // the cache is behind
		}
	}
	if err != nil {
		return fmt.Errorf("cannot make %T %s/%s: %w", o, c.Namespace, c.Name, err)
	}
	if !metav1.IsControlledBy(o, c) {
		return &nameTakenError{fmt.Sprintf("%T %s is there already and is not this claim's: rename the claim", o, c.Name)}
	}

	return nil
}

// A nameTakenError is one that only a person can mend.
type nameTakenError struct{ message string }

func (e *nameTakenError) Error() string { return e.message }

func (r *Reconciler) refuse(ctx context.Context, c *v1alpha1.SubnetPoolClaim, err error) error {
	if taken, ok := err.(*nameTakenError); ok { //nolint:errorlint // it is never wrapped
		return r.say(ctx, c, v1alpha1.ClaimError, "", reasonTaken, taken.message)
	}

	return err
}

// release lets the pool go, then the block, then the claim.
func (r *Reconciler) release(ctx context.Context, c *v1alpha1.SubnetPoolClaim) error {
	for _, o := range []client.Object{&v1alpha1.SubnetPool{}, &v1alpha1.SubnetClaim{}} {
		err := r.reader.Get(ctx, client.ObjectKeyFromObject(c), o)
		if apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(o, c) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot read %T %s/%s: %w", o, c.Namespace, c.Name, err)
		}
		uid := o.GetUID()
		if err := client.IgnoreNotFound(r.client.Delete(ctx, o, client.Preconditions{UID: &uid})); err != nil {
			return fmt.Errorf("cannot delete %T %s/%s: %w", o, c.Namespace, c.Name, err)
		}

		return nil // its end wakes us
	}
	if !controllerutil.RemoveFinalizer(c, v1alpha1.Finalizer) {
		return nil
	}

	return kube.IgnoreStale(r.client.Update(ctx, c))
}

// say writes the claim's status, if it does not say so already.
func (r *Reconciler) say(ctx context.Context, c *v1alpha1.SubnetPoolClaim, phase v1alpha1.ClaimPhase, pool, reason, message string) error {
	before := c.Status.DeepCopy()
	c.Status.Phase, c.Status.BoundPoolName, c.Status.Message, c.Status.ObservedGeneration = phase, pool, message, c.Generation
	ready := metav1.ConditionFalse
	if phase == v1alpha1.ClaimBound {
		ready = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: ready, Reason: reason, Message: message, ObservedGeneration: c.Generation,
	})
	wrote, err := kube.WriteStatus(ctx, r.client, c, *before, c.Status)
	if wrote && before.Phase != phase {
		kind := corev1.EventTypeWarning
		if phase == v1alpha1.ClaimBound {
			kind = corev1.EventTypeNormal
		}
		r.recorder.Eventf(c, nil, kind, reason, "Bind", "%s", message)
	}

	return err
}
