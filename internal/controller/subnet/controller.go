// Package subnet judges Subnets: a Pending one becomes Allocated or Failed, and
// one that its claim did not take is released.
package subnet

import (
	"context"
	"fmt"
	"iter"
	"net/netip"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/claim"
	decide "github.com/arbor-control/arbor/internal/decide/subnet"
	"github.com/arbor-control/arbor/internal/kube"
)

const (
	workers = 8

	action = "Judge"
)

// A Reconciler judges.
type Reconciler struct {
	client   client.Client
	recorder events.EventRecorder
	now      func() time.Time
}

// SetupWithManager starts it with the manager.
func SetupWithManager(mgr ctrl.Manager) error {
	r := &Reconciler{client: mgr.GetClient(), recorder: mgr.GetEventRecorder("arbor-subnets"), now: time.Now}

	return ctrl.NewControllerManagedBy(mgr).
		Named("subnet").
		For(&v1alpha1.Subnet{}).
		// A Subnet may be there before its pool, and outlive its claim's choice.
		// What else happens to a pool, its status above all, is no news for them.
		Watches(&v1alpha1.SubnetPool{}, handler.EnqueueRequestsFromMapFunc(r.waiting),
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, guarded))).
		Watches(&v1alpha1.SubnetClaim{}, handler.EnqueueRequestsFromMapFunc(r.ofClaim)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(kube.Patient(reconcile.AsReconciler(mgr.GetClient(), r)))
}

// guarded passes the event that a pool got its finalizer.
var guarded = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return !controllerutil.ContainsFinalizer(e.ObjectOld, v1alpha1.Finalizer) && controllerutil.ContainsFinalizer(e.ObjectNew, v1alpha1.Finalizer)
}}

// Reconcile judges a Subnet once, and releases it if its claim has another.
func (r *Reconciler) Reconcile(ctx context.Context, s *v1alpha1.Subnet) (reconcile.Result, error) {
	if s.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	if unwanted, err := r.unwanted(ctx, s); err != nil || unwanted {
		return reconcile.Result{}, err
	}
	if s.Status.Phase == v1alpha1.SubnetAllocated || s.Status.Phase == v1alpha1.SubnetFailed {
		return reconcile.Result{}, nil
	}

	return reconcile.Result{}, r.judge(ctx, s)
}

// judge gathers what the verdict needs, and writes the verdict.
func (r *Reconciler) judge(ctx context.Context, s *v1alpha1.Subnet) error {
	b, ok := block(s)
	if !ok {
		return r.apply(ctx, s, decide.Verdict{
			Phase: v1alpha1.SubnetFailed, Reason: decide.ReasonOutsidePool, Message: fmt.Sprintf("%q is not a CIDR", s.Spec.CIDR),
		})
	}
	pool, prefix, err := r.pool(ctx, s)
	if err != nil {
		return err
	}
	switch {
	case pool == nil:
	case pool.DeletionTimestamp != nil && !s.CreationTimestamp.Before(pool.DeletionTimestamp):
		// It came when the pool was perhaps already found empty.
		return r.apply(ctx, s, decide.Verdict{
			Phase: v1alpha1.SubnetFailed, Reason: decide.ReasonPoolDeleting, Message: fmt.Sprintf("pool %s is being deleted", pool.Name),
		})
	case !controllerutil.ContainsFinalizer(pool, v1alpha1.Finalizer):
		// Nothing lives in a pool that could vanish under it. The finalizer is
		// an event, and brings it back here.
		return nil
	}
	others, err := r.others(ctx, s, b.Prefix)
	if err != nil {
		return err
	}

	return r.apply(ctx, s, decide.Judge(b, prefix, others))
}

// unwanted releases a Subnet whose claim is bound to another one. That happens
// when two managers served one claim.
func (r *Reconciler) unwanted(ctx context.Context, s *v1alpha1.Subnet) (bool, error) {
	if s.Spec.ClaimRef == nil {
		return false, nil
	}
	c := &v1alpha1.SubnetClaim{}
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Spec.ClaimRef.Name}, c); err != nil {
		return false, client.IgnoreNotFound(err) // garbage collection sees to orphans
	}
	if c.UID != s.Spec.ClaimRef.UID || c.Status.Phase != v1alpha1.ClaimBound || claim.Holds(c, s) {
		return false, nil
	}
	err := r.client.Delete(ctx, s, client.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("cannot release Subnet %s/%s: %w", s.Namespace, s.Name, err)
	}

	return true, nil
}

// pool returns a Subnet's pool and its prefix, nil if there is none.
func (r *Reconciler) pool(ctx context.Context, s *v1alpha1.Subnet) (*v1alpha1.SubnetPool, *netip.Prefix, error) {
	p := &v1alpha1.SubnetPool{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Spec.PoolRef}, p)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read pool %s/%s: %w", s.Namespace, s.Spec.PoolRef, err)
	}
	prefix, err := netip.ParsePrefix(p.Spec.CIDR)
	if err != nil {
		return nil, nil, nil //nolint:nilerr // a pool that is no prefix is as good as none
	}

	return p, &prefix, nil
}

// others returns the Subnets of the pool that may overlap a block. They are
// read from the informer's store, which holds the block that is judged; that is
// all that the judge asks of a snapshot. The proof goes by pairs, so the store
// may change between two of these reads.
func (r *Reconciler) others(ctx context.Context, s *v1alpha1.Subnet, prefix netip.Prefix) (iter.Seq[decide.Block], error) {
	near, err := kube.SubnetsNear(ctx, r.client, s.Namespace, s.Spec.PoolRef, prefix)

	return func(yield func(decide.Block) bool) {
		for i := range near {
			if b, ok := block(&near[i]); ok && !yield(b) {
				return
			}
		}
	}, err
}

// apply writes a verdict, on condition that the Subnet is as it was judged.
func (r *Reconciler) apply(ctx context.Context, s *v1alpha1.Subnet, v decide.Verdict) error {
	if v.Phase == v1alpha1.SubnetPending {
		// Nothing is written: it would make this one younger than those that
		// came after it, and let them win.
		r.recorder.Eventf(s, nil, corev1.EventTypeWarning, v.Reason, action, "%s", v.Message)

		return nil
	}
	ready := metav1.ConditionFalse
	if v.Phase == v1alpha1.SubnetAllocated {
		ready = metav1.ConditionTrue
		at := metav1.NewTime(r.now())
		s.Status.AllocatedAt = &at
	}
	meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: ready, Reason: v.Reason, Message: v.Message, ObservedGeneration: s.Generation,
	})
	s.Status.Phase = v.Phase
	if err := r.client.Status().Update(ctx, s); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("cannot write the verdict on Subnet %s/%s: %w", s.Namespace, s.Name, err))
	}
	if v.Phase == v1alpha1.SubnetFailed {
		r.recorder.Eventf(s, nil, corev1.EventTypeWarning, v.Reason, action, "%s", v.Message)
	}

	return nil
}

func block(s *v1alpha1.Subnet) (decide.Block, bool) {
	prefix, err := netip.ParsePrefix(s.Spec.CIDR)
	if err != nil {
		return decide.Block{}, false
	}
	version, err := strconv.ParseUint(s.ResourceVersion, 10, 64)
	if err != nil {
		return decide.Block{}, false
	}

	return decide.Block{Name: s.Name, Prefix: prefix.Masked(), Phase: s.Status.Phase, Version: version}, true
}

// waiting maps a pool to its Subnets that are not judged yet.
func (r *Reconciler) waiting(ctx context.Context, o client.Object) []reconcile.Request {
	list := &v1alpha1.SubnetList{}
	fields := client.MatchingFields{kube.SubnetPoolRefIndexKey: o.GetName()}
	err := r.client.List(ctx, list, client.InNamespace(o.GetNamespace()), fields, client.UnsafeDisableDeepCopy)

	return requests(ctx, list.Items, err, func(s *v1alpha1.Subnet) bool {
		return s.Status.Phase == "" || s.Status.Phase == v1alpha1.SubnetPending
	})
}

// ofClaim maps a bound claim to the Subnets that it did not take.
func (r *Reconciler) ofClaim(ctx context.Context, o client.Object) []reconcile.Request {
	c, ok := o.(*v1alpha1.SubnetClaim)
	if !ok || c.Status.Phase != v1alpha1.ClaimBound {
		return nil
	}
	subnets, err := kube.SubnetsOf(ctx, r.client, c)

	return requests(ctx, subnets, err, func(s *v1alpha1.Subnet) bool { return !claim.Holds(c, s) })
}

// requests are for the Subnets of a list that are wanted. Who maps an event
// cannot return what went wrong with the list.
func requests(ctx context.Context, list []v1alpha1.Subnet, err error, want func(*v1alpha1.Subnet) bool) []reconcile.Request {
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list Subnets")

		return nil
	}
	var all []reconcile.Request
	for i := range list {
		if s := &list[i]; want(s) {
			all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s)})
		}
	}

	return all
}
