package subnets_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/test/cluster"
	"github.com/arbor-control/arbor/test/invariant"
)

// noWebhooks is the flag of a manager that the API server does not ask. Safety must not
// depend on admission.
const noWebhooks = "--webhooks=false"

// A world is one namespace in which a test allocates addresses.
type world struct {
	t  *testing.T
	c  client.Client
	ns string
}

func newWorld(t *testing.T, c client.Client) *world {
	t.Helper()

	return &world{t: t, c: c, ns: cluster.Namespace(t, c)}
}

func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		must(w.t, w.c.Create(w.t.Context(), o))
	}
}

func (w *world) get(o client.Object) error {
	return w.c.Get(w.t.Context(), client.ObjectKeyFromObject(o), o)
}

func (w *world) remove(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		must(w.t, client.IgnoreNotFound(w.c.Delete(w.t.Context(), o)))
	}
}

// patch changes an object in its newest version.
func (w *world) patch(o client.Object, change func()) {
	w.t.Helper()
	must(w.t, w.get(o))
	base := o.DeepCopyObject().(client.Object)
	change()
	must(w.t, w.c.Patch(w.t.Context(), o, client.MergeFrom(base)))
}

// resize gives a pool another range, whatever its version.
func (w *world) resize(name, cidr string) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"cidr":%q}}`, cidr))

	return w.c.Patch(w.t.Context(), w.pool(name, "", ""), patch)
}

func (w *world) pool(name, cidr, parent string) *v1alpha1.SubnetPool {
	return child(w.ns, name, cidr, parent)
}

// claim asks a pool for a block of some size; the clusterID is the claim's name.
func (w *world) claim(pool, name string, size int32) *v1alpha1.SubnetClaim {
	claim := newClaim(w.ns, name, size)
	claim.Spec.PoolRef = pool

	return claim
}

// exact asks a pool for one certain block.
func (w *world) exact(pool, name, cidr string) *v1alpha1.SubnetClaim {
	claim := w.claim(pool, name, 0)
	claim.Spec.BlockSize, claim.Spec.RequestedCIDR = nil, cidr

	return claim
}

// forged returns a Subnet that claims to be taken for a SubnetClaim, which admission
// does not look at.
func (w *world) forged(pool, name, cidr string) *v1alpha1.Subnet {
	s := newSubnet(w.ns, name, cidr)
	s.Spec.PoolRef, s.Spec.ClaimRef = pool, &v1alpha1.ClaimReference{Name: name}

	return s
}

func (w *world) poolClaim(name, parent string, size int32) *v1alpha1.SubnetPoolClaim {
	return &v1alpha1.SubnetPoolClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name},
		Spec:       v1alpha1.SubnetPoolClaimSpec{ParentPoolRef: parent, DesiredBlockSize: size},
	}
}

// eventually waits for a condition. Two owners of one address fail the test at once,
// whenever they appear.
func (w *world) eventually(what string, condition func() error) {
	w.t.Helper()
	cluster.Eventually(w.t, what, func() error {
		w.safe()

		return condition()
	})
}

// safe fails the test if two Allocated Subnets share an address and neither backs a pool.
// Lists of different kinds are of different moments, so in a cluster at work backing
// Subnets are left out; exclusive compares them too.
func (w *world) safe() {
	w.t.Helper()
	subnets := &v1alpha1.SubnetList{}
	must(w.t, w.c.List(w.t.Context(), subnets, client.InNamespace(w.ns)))
	must(w.t, invariant.Error(invariant.Shared(subnets.Items, func(outer, inner *v1alpha1.Subnet) bool { return backing(outer) || backing(inner) })))
}

func backing(s *v1alpha1.Subnet) bool { return s.Spec.Backs != nil || s.Status.PoolUID != "" }

// exclusive returns an error if an address has two Allocated owners in a namespace that
// has settled. Only a Subnet that backs a pool may share its addresses, with what is taken
// from that pool or from pools below it.
func (w *world) exclusive() error {
	subnets, pools := &v1alpha1.SubnetList{}, &v1alpha1.SubnetPoolList{}
	for _, list := range []client.ObjectList{subnets, pools} {
		if err := w.c.List(w.t.Context(), list, client.InNamespace(w.ns)); err != nil {
			return err
		}
	}

	return invariant.Error(invariant.Shared(subnets.Items, invariant.Backs(pools.Items)))
}

// bound waits until a claim has its block, and returns that.
func (w *world) bound(claim *v1alpha1.SubnetClaim) string {
	w.t.Helper()
	w.eventually(fmt.Sprintf("claim %s is bound", claim.Name), func() error {
		if err := w.get(claim); err != nil {
			return err
		}
		if claim.Status.Phase != v1alpha1.ClaimBound || !ready(claim.Status.Conditions, metav1.ConditionTrue) {
			return fmt.Errorf("it is %+v", claim.Status)
		}

		return nil
	})

	return claim.Status.AllocatedCIDR
}

// waits returns once a claim is Pending for one of some reasons.
func (w *world) waits(claim *v1alpha1.SubnetClaim, reasons ...string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("claim %s waits: %v", claim.Name, reasons), func() error {
		if err := w.get(claim); err != nil {
			return err
		}
		if claim.Status.Phase != v1alpha1.ClaimPending || !ready(claim.Status.Conditions, metav1.ConditionFalse, reasons...) {
			return fmt.Errorf("it is %+v", claim.Status)
		}

		return nil
	})
}

// refused waits until a pool reports that it cannot have its spec.cidr, for one of some
// reasons.
func (w *world) refused(pool *v1alpha1.SubnetPool, reasons ...string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("pool %s is not ready: %v", pool.Name, reasons), func() error {
		if err := w.get(pool); err != nil {
			return err
		}
		if pool.Status.ObservedGeneration != pool.Generation || !ready(pool.Status.Conditions, metav1.ConditionFalse, reasons...) {
			return fmt.Errorf("it is %+v", pool.Status)
		}

		return nil
	})
}

// judged waits until a Subnet has a phase.
func (w *world) judged(s *v1alpha1.Subnet, phase v1alpha1.SubnetPhase) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("Subnet %s is %s", s.Name, phase), func() error {
		if err := w.get(s); err != nil {
			return err
		}
		if s.Status.Phase != phase {
			return fmt.Errorf("it is %+v", s.Status)
		}

		return nil
	})
}

// ready reports whether the condition Ready has a status, with one of some reasons if
// there are any.
func ready(conditions []metav1.Condition, status metav1.ConditionStatus, reasons ...string) bool {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)

	return c != nil && c.Status == status && (len(reasons) == 0 || slices.Contains(reasons, c.Reason))
}

// gone waits until objects do not exist any more.
func (w *world) gone(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		w.eventually(fmt.Sprintf("%T %s is gone", o, o.GetName()), func() error {
			if err := w.get(o.DeepCopyObject().(client.Object)); !apierrors.IsNotFound(err) {
				return errors.Join(errors.New("it is there"), err)
			}

			return nil
		})
	}
}

// barrier waits until the manager has handled a pool that is created now, so that it has
// had the time to act on what was created before.
func (w *world) barrier() {
	w.t.Helper()
	marker := w.pool("", "172.16.0.0/24", "") // no test uses these addresses
	marker.GenerateName = "marker-"
	w.create(marker)
	w.eventually("the manager is up to date", func() error {
		if err := w.get(marker); err != nil {
			return err
		}
		if marker.Status.ObservedGeneration == 0 {
			return errors.New("the marker has no status")
		}

		return nil
	})
	w.remove(marker)
}
