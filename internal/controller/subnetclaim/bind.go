package subnetclaim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	decide "github.com/arbor-control/arbor/internal/decide/claim"
	"github.com/arbor-control/arbor/internal/kube"
)

const (
	binders = 16

	// An event is one more write for each claim. A few are a courtesy; in a
	// burst they would take a fifth of what the API server can do.
	eventsPerSecond = 5
	eventsAtOnce    = 50
)

// A Binder binds claims to their Subnets.
type Binder struct {
	client   client.Client
	recorder events.EventRecorder
	metrics  *Metrics
	courtesy *rate.Limiter
	now      func() time.Time
}

// SetupBinder starts it with the manager.
func SetupBinder(mgr ctrl.Manager, m *Metrics) error {
	b := &Binder{client: mgr.GetClient(), recorder: mgr.GetEventRecorder("arbor-subnets"), metrics: m, courtesy: rate.NewLimiter(eventsPerSecond, eventsAtOnce), now: time.Now}

	return ctrl.NewControllerManagedBy(mgr).
		Named("binder").
		For(&v1alpha1.SubnetClaim{}).
		Watches(&v1alpha1.Subnet{}, handler.EnqueueRequestsFromMapFunc(claimOf)).
		WithOptions(controller.Options{MaxConcurrentReconciles: binders}).
		Complete(kube.Patient(reconcile.AsReconciler(mgr.GetClient(), b)))
}

// claimOf maps a Subnet to the claim that it was taken for.
func claimOf(_ context.Context, o client.Object) []reconcile.Request {
	s, ok := o.(*v1alpha1.Subnet)
	if !ok || s.Spec.ClaimRef == nil {
		return nil
	}

	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: s.Namespace, Name: s.Spec.ClaimRef.Name}}}
}

// Reconcile binds a claim, or says what became of its Subnet.
func (b *Binder) Reconcile(ctx context.Context, c *v1alpha1.SubnetClaim) (reconcile.Result, error) {
	if c.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	subnets, err := b.subnets(ctx, c)
	if err != nil {
		return reconcile.Result{}, err
	}
	if c.Status.Phase == v1alpha1.ClaimBound {
		return reconcile.Result{}, b.checkBound(ctx, c, subnets)
	}
	for i := range subnets {
		switch s := &subnets[i]; s.Status.Phase {
		case v1alpha1.SubnetAllocated:
			return reconcile.Result{}, b.bind(ctx, c, s)
		case v1alpha1.SubnetFailed:
			// It lost its block; the allocator takes another.
			if err := client.IgnoreNotFound(b.client.Delete(ctx, s, client.Preconditions{UID: &s.UID})); err != nil {
				return reconcile.Result{}, fmt.Errorf("cannot clear Subnet %s/%s away: %w", s.Namespace, s.Name, err)
			}
		case v1alpha1.SubnetPending:
		}
	}

	return reconcile.Result{}, nil
}

// subnets lists the Subnets that were taken for a claim, by name: two managers
// that bind it choose the same.
func (b *Binder) subnets(ctx context.Context, c *v1alpha1.SubnetClaim) ([]v1alpha1.Subnet, error) {
	all, err := kube.SubnetsOf(ctx, b.client, c)
	slices.SortFunc(all, func(x, y v1alpha1.Subnet) int { return strings.Compare(x.Name, y.Name) })

	return slices.DeleteFunc(all, func(s v1alpha1.Subnet) bool { return s.DeletionTimestamp != nil }), err
}

func (b *Binder) bind(ctx context.Context, c *v1alpha1.SubnetClaim, s *v1alpha1.Subnet) error {
	w := word{v1alpha1.ClaimBound, metav1.ConditionTrue, decide.ReasonBound, fmt.Sprintf("%s is allocated", s.Spec.CIDR)}
	wrote, err := write(ctx, b.client, c, w, func(st *v1alpha1.SubnetClaimStatus) {
		st.AllocatedCIDR, st.SubnetRef = s.Spec.CIDR, s.Name
	})
	if wrote {
		b.metrics.took(b.now().Sub(c.CreationTimestamp.Time))
		if b.courtesy.Allow() {
			b.recorder.Eventf(c, s, corev1.EventTypeNormal, "SubnetAllocated", "Bind", "%s of pool %s", s.Spec.CIDR, s.Spec.PoolRef)
		}
	}

	return err
}

// checkBound says on a bound claim whether its Subnet is still there. What was
// handed out is not taken back: the phase stays.
func (b *Binder) checkBound(ctx context.Context, c *v1alpha1.SubnetClaim, subnets []v1alpha1.Subnet) error {
	w := word{v1alpha1.ClaimBound, metav1.ConditionTrue, decide.ReasonBound, fmt.Sprintf("%s is allocated", c.Status.AllocatedCIDR)}
	ref := c.Status.SubnetRef
	if i := slices.IndexFunc(subnets, func(s v1alpha1.Subnet) bool { return decide.Holds(c, &s) }); i >= 0 {
		ref = subnets[i].Name
	} else {
		w.ready, w.reason = metav1.ConditionFalse, decide.ReasonSubnetLost
		w.message = fmt.Sprintf("its Subnet is gone: %s may be handed out to somebody else; delete this claim and make another", c.Status.AllocatedCIDR)
	}
	wrote, err := write(ctx, b.client, c, w, func(st *v1alpha1.SubnetClaimStatus) { st.SubnetRef = ref })
	if wrote && w.ready == metav1.ConditionFalse {
		b.recorder.Eventf(c, nil, corev1.EventTypeWarning, w.reason, "Bind", "%s", w.message)
	}

	return err
}
