package subnetclaim

import (
	"context"
	"errors"
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
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/kube"
)

const (
	binders = 16

	// An event is one more write for each claim. In a burst they would take a fifth
	// of what the API server can do, so only a few are sent.
	eventsPerSecond = 5
	eventsAtOnce    = 50
)

// A Binder binds claims to their Subnets.
type Binder struct {
	client   client.Client
	reader   client.Reader
	recorder events.EventRecorder
	metrics  *Metrics
	records  *records
	courtesy *rate.Limiter
	now      func() time.Time
}

// SetupBinder starts it with the manager.
func SetupBinder(mgr ctrl.Manager, m *Metrics) error {
	b := &Binder{
		client: mgr.GetClient(), reader: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder("arbor-subnets"), metrics: m,
		records: newRecords(mgr.GetClient(), m.unrecorded), courtesy: rate.NewLimiter(eventsPerSecond, eventsAtOnce), now: time.Now,
	}
	if err := mgr.Add(b.records); err != nil {
		return fmt.Errorf("cannot start the records of claims: %w", err)
	}

	return ctrl.NewControllerManagedBy(mgr).
		Named("binder").
		For(&v1alpha1.SubnetClaim{}).
		Watches(&v1alpha1.Subnet{}, handler.EnqueueRequestsFromMapFunc(claimOf)).
		WithOptions(controller.Options{MaxConcurrentReconciles: binders}).
		Complete(kube.Patient(reconcile.AsReconciler(mgr.GetClient(), b)))
}

// claimOf maps a Subnet to the claim that it names.
func claimOf(_ context.Context, o client.Object) []reconcile.Request {
	s, ok := o.(*v1alpha1.Subnet)
	if !ok || s.Spec.ClaimRef == nil {
		return nil
	}

	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: s.Namespace, Name: s.Spec.ClaimRef.Name}}}
}

// Reconcile binds a claim, or reports what became of its Subnet.
func (b *Binder) Reconcile(ctx context.Context, c *v1alpha1.SubnetClaim) (reconcile.Result, error) {
	if c.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	if reset, err := b.resetStatus(ctx, c); err != nil || reset {
		return reconcile.Result{}, err // the event of the write continues here
	}
	subnets, err := b.subnets(ctx, c)
	if err != nil {
		return reconcile.Result{}, err
	}
	if c.Status.Phase == v1alpha1.ClaimBound {
		return reconcile.Result{}, b.checkBound(ctx, c, subnets)
	}
	if c.Status.Phase == "" {
		b.records.pause()
	}
	s, err := b.adoptOne(ctx, c, subnets)
	if err != nil || s == nil {
		return reconcile.Result{}, errors.Join(err, b.clear(ctx, subnets))
	}

	return reconcile.Result{}, b.bind(ctx, c, s)
}

// resetStatus removes a status with the UID of another claim, which a backup can bring
// along: this claim has no block yet. The block of that status becomes its record.
func (b *Binder) resetStatus(ctx context.Context, c *v1alpha1.SubnetClaim) (bool, error) {
	if c.Status.UID == "" || c.Status.UID == c.UID {
		return false, nil
	}
	if _, recorded := ipamrules.RecordedBlock(c); !recorded && c.Status.Phase == v1alpha1.ClaimBound && c.Status.AllocatedCIDR != "" {
		before := c.DeepCopy()
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.BlockAnnotation, ipamrules.ClaimRecord(c))
		if err := b.client.Patch(ctx, c, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return true, client.IgnoreNotFound(fmt.Errorf("cannot record the block of SubnetClaim %s/%s: %w", c.Namespace, c.Name, err))
		}

		return true, nil
	}
	status := c.Status
	c.Status = v1alpha1.SubnetClaimStatus{}

	return kube.WriteStatus(ctx, b.client, c, status, c.Status)
}

// subnets lists the Subnets that name a claim, by name: two managers that bind it
// choose the same.
func (b *Binder) subnets(ctx context.Context, c *v1alpha1.SubnetClaim) ([]v1alpha1.Subnet, error) {
	all, err := kube.SubnetsOf(ctx, b.client, c)
	slices.SortFunc(all, func(x, y v1alpha1.Subnet) int { return strings.Compare(x.Name, y.Name) })

	return slices.DeleteFunc(all, func(s v1alpha1.Subnet) bool { return s.DeletionTimestamp != nil }), err
}

// clear deletes the Subnets of a claim that Failed: the allocator creates another. A status with
// the UID of another Subnet does not count, and is about to be reset.
func (b *Binder) clear(ctx context.Context, subnets []v1alpha1.Subnet) error {
	for i := range subnets {
		s := &subnets[i]
		if s.Status.Phase != v1alpha1.SubnetFailed || s.Status.UID != "" && s.Status.UID != s.UID {
			continue
		}
		if err := client.IgnoreNotFound(b.client.Delete(ctx, s, client.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion})); err != nil {
			return fmt.Errorf("cannot delete Subnet %s/%s, which failed: %w", s.Namespace, s.Name, err)
		}
	}

	return nil
}

func (b *Binder) bind(ctx context.Context, c *v1alpha1.SubnetClaim, s *v1alpha1.Subnet) error {
	w := outcome{v1alpha1.ClaimBound, metav1.ConditionTrue, ipamrules.ReasonBound, fmt.Sprintf("%s is allocated", s.Spec.CIDR)}
	wrote, err := write(ctx, b.client, c, w, func(st *v1alpha1.SubnetClaimStatus) {
		st.AllocatedCIDR, st.SubnetRef = s.Spec.CIDR, s.Name
	})
	if wrote {
		b.records.pause()
		b.metrics.took(b.now().Sub(c.CreationTimestamp.Time))
		if b.courtesy.Allow() {
			b.recorder.Eventf(c, s, corev1.EventTypeNormal, "SubnetAllocated", "Bind", "%s of pool %s", s.Spec.CIDR, s.Spec.PoolRef)
		}
	}

	return err
}

// checkBound reports on a bound claim whether it still has its Subnet. The phase
// stays: a block that a claim was given is not taken back.
func (b *Binder) checkBound(ctx context.Context, c *v1alpha1.SubnetClaim, subnets []v1alpha1.Subnet) error {
	s, err := b.adoptOne(ctx, c, subnets)
	if err == nil && s == nil {
		err = b.confirmLost(ctx, c)
	}
	if err != nil {
		return err
	}
	w := outcome{v1alpha1.ClaimBound, metav1.ConditionTrue, ipamrules.ReasonBound, fmt.Sprintf("%s is allocated", c.Status.AllocatedCIDR)}
	ref := c.Status.SubnetRef
	if s != nil {
		ref = s.Name
		b.records.want(c)
	} else {
		w.ready, w.reason = metav1.ConditionFalse, ipamrules.ReasonSubnetLost
		w.message = fmt.Sprintf("its Subnet is gone: %s may be allocated to another claim; delete this claim and create another", c.Status.AllocatedCIDR)
	}
	wrote, err := write(ctx, b.client, c, w, func(st *v1alpha1.SubnetClaimStatus) { st.SubnetRef = ref })
	if wrote && w.ready == metav1.ConditionFalse {
		b.recorder.Eventf(c, nil, corev1.EventTypeWarning, w.reason, "Bind", "%s", w.message)
	}

	return err
}
