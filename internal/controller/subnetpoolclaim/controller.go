// Package subnetpoolclaim serves SubnetPoolClaims: it takes a block from the
// parent by an ordinary SubnetClaim, so that the block is judged like all
// others, and makes a pool of it.
//
//	SubnetPoolClaim ──owns──▶ SubnetClaim ──▶ Subnet      the block, in the parent
//	       └─────────owns──▶ SubnetPool                  the pool of that block
//
// The other way round when it is deleted: first the pool, which waits until
// nothing lives in it, and only then the block. The claim for the block carries
// a finalizer until then, so that nobody else can give the block away.
package subnetpoolclaim

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
		Complete(kube.Patient(r))
}

// Reconcile looks at a claim, or at what one left behind.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	c := &v1alpha1.SubnetPoolClaim{}
	err := r.client.Get(ctx, request.NamespacedName, c)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, r.abandoned(ctx, request.NamespacedName)
	}
	if err != nil {
		return reconcile.Result{}, err
	}

	return r.advance(ctx, c)
}

// abandoned lets blocks go whose claim went first. The API server lets it go if its
// deletion and the writing of its finalizer come at the same moment; both succeed. The
// garbage collector then deletes the block, and nobody else would release it.
func (r *Reconciler) abandoned(ctx context.Context, key types.NamespacedName) error {
	blocks, pools := &v1alpha1.SubnetClaimList{}, &v1alpha1.SubnetPoolList{}
	if err := r.client.List(ctx, blocks, client.InNamespace(key.Namespace)); err != nil {
		return err
	}
	blocks.Items = slices.DeleteFunc(blocks.Items, func(b v1alpha1.SubnetClaim) bool {
		return b.DeletionTimestamp == nil || !madeFor(&b, key.Name) || !controllerutil.ContainsFinalizer(&b, v1alpha1.Finalizer)
	})
	if len(blocks.Items) == 0 {
		return nil
	}
	// The cache may be behind.
	if err := r.reader.Get(ctx, key, &v1alpha1.SubnetPoolClaim{}); !apierrors.IsNotFound(err) {
		return err
	}
	if err := r.reader.List(ctx, pools, client.InNamespace(key.Namespace)); err != nil {
		return err
	}
	if slices.ContainsFunc(pools.Items, func(p v1alpha1.SubnetPool) bool { return madeFor(&p, key.Name) }) {
		return nil // its end wakes us
	}
	for _, before := range blocks.Items {
		block := before.DeepCopy()
		controllerutil.RemoveFinalizer(block, v1alpha1.Finalizer)
		if err := client.IgnoreNotFound(r.client.Patch(ctx, block, client.MergeFrom(&before))); err != nil {
			return fmt.Errorf("cannot let SubnetClaim %s/%s go: %w", block.Namespace, block.Name, err)
		}
	}

	return nil
}

// madeFor says whether an object was made for a SubnetPoolClaim of a name.
func madeFor(o metav1.Object, name string) bool {
	owner := metav1.GetControllerOf(o)

	return owner != nil && owner.Kind == v1alpha1.SubnetPoolClaimKind && owner.Name == name
}

// advance brings a claim one step further. Names are the claim's own, so two
// managers cannot make two pools.
func (r *Reconciler) advance(ctx context.Context, c *v1alpha1.SubnetPoolClaim) (reconcile.Result, error) {
	if c.DeletionTimestamp != nil {
		return reconcile.Result{}, r.release(ctx, c)
	}
	if controllerutil.AddFinalizer(c, v1alpha1.Finalizer) {
		if err := r.client.Update(ctx, c); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(fmt.Errorf("cannot write the finalizer of SubnetPoolClaim %s/%s: %w", c.Namespace, c.Name, err))
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

		message := fmt.Sprintf("it waits for a /%d of pool %s", c.Spec.DesiredBlockSize, c.Spec.ParentPoolRef)
		if block.Status.Message != "" {
			message += ": " + block.Status.Message
		}

		return reconcile.Result{}, r.say(ctx, c, phase, "", reasonWaiting, message)
	}
	pool, err := r.pool(ctx, c, block.Status.AllocatedCIDR)
	if err != nil {
		return reconcile.Result{}, r.refuse(ctx, c, err)
	}

	return reconcile.Result{}, r.say(ctx, c, v1alpha1.ClaimBound, pool.Name, reasonBound, fmt.Sprintf("pool %s has %s", pool.Name, pool.Spec.CIDR))
}

// block returns the claim for the parent's block, made first if it is not there.
func (r *Reconciler) block(ctx context.Context, c *v1alpha1.SubnetPoolClaim) (*v1alpha1.SubnetClaim, error) {
	owned := &v1alpha1.SubnetClaimList{}
	if err := r.owned(ctx, c, owned); err != nil {
		return nil, err
	}
	if len(owned.Items) > 0 {
		block := owned.Items[0].DeepCopy()
		if block.DeletionTimestamp != nil || !controllerutil.AddFinalizer(block, v1alpha1.Finalizer) {
			return block, nil
		}

		return block, r.client.Update(ctx, block)
	}
	block := &v1alpha1.SubnetClaim{ObjectMeta: r.meta(c)}
	block.Finalizers = []string{v1alpha1.Finalizer}
	block.Spec = v1alpha1.SubnetClaimSpec{PoolRef: c.Spec.ParentPoolRef, ClusterID: string(c.UID), BlockSize: &c.Spec.DesiredBlockSize}

	return block, r.ensure(ctx, c, block)
}

// pool returns the pool of a block, made first if it is not there.
func (r *Reconciler) pool(ctx context.Context, c *v1alpha1.SubnetPoolClaim, cidr string) (*v1alpha1.SubnetPool, error) {
	owned := &v1alpha1.SubnetPoolList{}
	if err := r.owned(ctx, c, owned); err != nil {
		return nil, err
	}
	if len(owned.Items) > 0 {
		return &owned.Items[0], nil
	}
	pool := &v1alpha1.SubnetPool{ObjectMeta: r.meta(c)}
	pool.Labels = map[string]string{v1alpha1.ParentLabel: c.Spec.ParentPoolRef, v1alpha1.IPAMLabel: "true"}
	pool.Spec = v1alpha1.SubnetPoolSpec{CIDR: cidr, Parent: c.Spec.ParentPoolRef}

	return pool, r.ensure(ctx, c, pool)
}

// owned lists what was made for a claim, under whatever name: ours are called
// like the claim, and those of others before us may be called otherwise.
func (r *Reconciler) owned(ctx context.Context, c *v1alpha1.SubnetPoolClaim, list client.ObjectList) error {
	err := r.client.List(ctx, list, client.InNamespace(c.Namespace), client.MatchingFields{kube.ControllerIndexKey: string(c.UID)})
	if err != nil {
		return fmt.Errorf("cannot list what belongs to SubnetPoolClaim %s/%s: %w", c.Namespace, c.Name, err)
	}

	return nil
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
	for _, list := range []client.ObjectList{&v1alpha1.SubnetPoolList{}, &v1alpha1.SubnetClaimList{}} {
		// Not from the cache: one that it does not show yet would be left.
		if err := r.reader.List(ctx, list, client.InNamespace(c.Namespace)); err != nil {
			return fmt.Errorf("cannot list what belongs to SubnetPoolClaim %s/%s: %w", c.Namespace, c.Name, err)
		}
		left, err := r.deleteOwned(ctx, c, list)
		if err != nil || left {
			return err // the end of what is left wakes us
		}
	}
	if !controllerutil.RemoveFinalizer(c, v1alpha1.Finalizer) {
		return nil
	}

	return client.IgnoreNotFound(r.client.Update(ctx, c))
}

// deleteOwned deletes what belongs to a claim, and says whether there was any.
func (r *Reconciler) deleteOwned(ctx context.Context, c *v1alpha1.SubnetPoolClaim, list client.ObjectList) (left bool, err error) {
	err = meta.EachListItem(list, func(item runtime.Object) error {
		o, ok := item.(client.Object)
		if !ok || !metav1.IsControlledBy(o, c) {
			return nil
		}
		left = true
		uid := o.GetUID()
		if err := client.IgnoreNotFound(r.client.Delete(ctx, o, client.Preconditions{UID: &uid})); err != nil {
			return fmt.Errorf("cannot delete %T %s/%s: %w", o, o.GetNamespace(), o.GetName(), err)
		}
		block, ok := o.(*v1alpha1.SubnetClaim)
		if !ok || !controllerutil.ContainsFinalizer(block, v1alpha1.Finalizer) {
			return nil
		}
		before := block.DeepCopy()
		controllerutil.RemoveFinalizer(block, v1alpha1.Finalizer)
		if err := client.IgnoreNotFound(r.client.Patch(ctx, block, client.MergeFrom(before))); err != nil {
			return fmt.Errorf("cannot let SubnetClaim %s/%s go: %w", o.GetNamespace(), o.GetName(), err)
		}

		return nil
	})

	return left, err
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
	if wrote && before.Phase != phase && phase != v1alpha1.ClaimPending {
		kind := corev1.EventTypeWarning
		if phase == v1alpha1.ClaimBound {
			kind = corev1.EventTypeNormal
		}
		r.recorder.Eventf(c, nil, kind, reason, "Bind", "%s", message)
	}

	return err
}
