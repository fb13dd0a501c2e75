package subnet

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/controller/controllertest"
	"github.com/arbor-control/arbor/internal/kube"
)

// TestErrors has each request fail while a Subnet is decided on.
func TestErrors(t *testing.T) {
	scheme := controllertest.Scheme(t, v1alpha1.AddToScheme)
	clock := time.Unix(1_000_000, 0)
	pool := &v1alpha1.SubnetPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "pool", Finalizers: []string{v1alpha1.Finalizer}},
		Spec:       v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/24"}, Status: v1alpha1.SubnetPoolStatus{CIDR: "10.0.0.0/24", UID: "pool"},
	}
	subnet := func(cidr string, change func(*v1alpha1.Subnet)) *v1alpha1.Subnet {
		s := &v1alpha1.Subnet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", UID: "s", Finalizers: []string{v1alpha1.Finalizer}, CreationTimestamp: metav1.NewTime(clock)},
			Spec:       v1alpha1.SubnetSpec{PoolRef: "p", CIDR: cidr, ClusterID: "c"},
		}
		change(s)

		return s
	}
	other := subnet("10.0.0.0/26", func(s *v1alpha1.Subnet) {
		s.Name, s.UID, s.Spec.ClusterID, s.Status.Phase = "t", "t", "d", v1alpha1.SubnetAllocated
	})
	cases := map[string]struct {
		reason  string
		objects []client.Object
	}{
		"Free":     {"The block is free, and the Subnet becomes Allocated.", []client.Object{pool, subnet("10.0.0.64/26", func(*v1alpha1.Subnet) {})}},
		"Taken":    {"Another Subnet has the block, and this one becomes Failed.", []client.Object{pool, other, subnet("10.0.0.0/26", func(*v1alpha1.Subnet) {})}},
		"Restored": {"The status is that of another Subnet, and is removed first.", []client.Object{pool, subnet("10.0.0.64/26", func(s *v1alpha1.Subnet) { s.Status.UID, s.Status.Phase = "other", v1alpha1.SubnetAllocated })}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			controllertest.Check(t, controllertest.Case{
				Scheme: scheme, Objects: tc.objects, Status: []client.Object{&v1alpha1.Subnet{}, &v1alpha1.SubnetPool{}, &v1alpha1.SubnetClaim{}},
				Index: []func(context.Context, client.FieldIndexer) error{kube.IndexSubnets},
				New: func(s *controllertest.Server) controllertest.Step {
					now := func() time.Time { return clock }
					r := reconcile.AsReconciler(s, &Reconciler{
						client: s, reader: s, pools: newPoolReader(s), deleted: kube.NewRecentlyDeleted(now), recorder: &events.FakeRecorder{}, now: now, grace: time.Minute,
					})

					return controllertest.Reconciling(r, "n", "s")
				},
				Final: func() []client.ObjectList {
					return []client.ObjectList{&v1alpha1.SubnetList{}, &v1alpha1.SubnetPoolList{}}
				},
			})
		})
	}
}
