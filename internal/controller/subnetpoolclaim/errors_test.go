package subnetpoolclaim

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/controller/controllertest"
	"github.com/arbor-control/arbor/internal/kube"
)

// TestErrors has each request fail while a block, and a pool of it, are created for a claim.
func TestErrors(t *testing.T) {
	scheme := controllertest.Scheme(t, v1alpha1.AddToScheme)
	clock := time.Unix(1_000_000, 0)
	claim := func(change func(*v1alpha1.SubnetPoolClaim)) *v1alpha1.SubnetPoolClaim {
		c := &v1alpha1.SubnetPoolClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "c"}, Spec: v1alpha1.SubnetPoolClaimSpec{ParentPoolRef: "p", DesiredBlockSize: 26}}
		change(c)

		return c
	}
	cases := map[string]struct {
		reason string
		object *v1alpha1.SubnetPoolClaim
	}{
		"New": {"The finalizer comes first, then the block, then the pool, and the status last.", claim(func(*v1alpha1.SubnetPoolClaim) {})},
		"Deleted": {"Nothing was created, and the finalizer is removed.", claim(func(c *v1alpha1.SubnetPoolClaim) {
			c.Finalizers, c.DeletionTimestamp = []string{v1alpha1.Finalizer}, &metav1.Time{Time: clock}
		})},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			controllertest.Check(t, controllertest.Case{
				Scheme: scheme, Objects: []client.Object{tc.object}, Status: []client.Object{&v1alpha1.SubnetClaim{}, &v1alpha1.SubnetPoolClaim{}, &v1alpha1.SubnetPool{}},
				Index: []func(context.Context, client.FieldIndexer) error{kube.IndexSubnets, indexMadeFor},
				New: func(s *controllertest.Server) controllertest.Step {
					r := &Reconciler{client: s, reader: s, recorder: &events.FakeRecorder{}, grace: time.Minute, now: func() time.Time { return clock }, known: kube.NewFirstSeen(time.Minute)}

					return controllertest.Reconciling(r, "n", "c")
				},
				Final: func() []client.ObjectList {
					return []client.ObjectList{&v1alpha1.SubnetPoolClaimList{}, &v1alpha1.SubnetClaimList{}, &v1alpha1.SubnetPoolList{}}
				},
			})
		})
	}
}
