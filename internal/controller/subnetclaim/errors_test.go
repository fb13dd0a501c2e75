package subnetclaim

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/controller/controllertest"
	"github.com/arbor-control/arbor/internal/kube"
)

// TestBinderErrors has each request fail while a claim is bound.
func TestBinderErrors(t *testing.T) {
	scheme := controllertest.Scheme(t, v1alpha1.AddToScheme)
	claim := func(change func(*v1alpha1.SubnetClaim)) *v1alpha1.SubnetClaim {
		c := &v1alpha1.SubnetClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "c"}, Spec: v1alpha1.SubnetClaimSpec{PoolRef: "p", ClusterID: "x", BlockSize: new(int32(26))}}
		change(c)

		return c
	}
	subnet := func(phase v1alpha1.SubnetPhase) *v1alpha1.Subnet {
		s := &v1alpha1.Subnet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", UID: "s"},
			Spec:       v1alpha1.SubnetSpec{PoolRef: "p", CIDR: "10.0.0.0/26", ClusterID: "x", ClaimRef: &v1alpha1.ClaimReference{Name: "c", UID: "c"}},
			Status:     v1alpha1.SubnetStatus{Phase: phase, UID: "s"},
		}

		return s
	}
	bound := func(c *v1alpha1.SubnetClaim) {
		c.Status = v1alpha1.SubnetClaimStatus{Phase: v1alpha1.ClaimBound, AllocatedCIDR: "10.0.0.0/26", SubnetRef: "s", UID: c.UID}
	}
	cases := map[string]struct {
		reason  string
		objects []client.Object
	}{
		"Allocated": {"The claim becomes Bound.", []client.Object{claim(func(*v1alpha1.SubnetClaim) {}), subnet(v1alpha1.SubnetAllocated)}},
		"Failed":    {"The Subnet is deleted, so that there can be another one.", []client.Object{claim(func(*v1alpha1.SubnetClaim) {}), subnet(v1alpha1.SubnetFailed)}},
		"Lost":      {"The Subnet of a bound claim does not exist any more.", []client.Object{claim(bound)}},
		"Restored": {"A backup has brought the status of another claim: its block is recorded, and the status removed.", []client.Object{claim(func(c *v1alpha1.SubnetClaim) {
			bound(c)
			c.Status.UID = "other"
		})}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			controllertest.Check(t, controllertest.Case{
				Scheme: scheme, Objects: tc.objects, Status: []client.Object{&v1alpha1.Subnet{}, &v1alpha1.SubnetClaim{}},
				Index: []func(context.Context, client.FieldIndexer) error{kube.IndexSubnets},
				New: func(s *controllertest.Server) controllertest.Step {
					m := NewMetrics(prometheus.NewRegistry())
					b := reconcile.AsReconciler(s, &Binder{
						client: s, reader: s, recorder: &events.FakeRecorder{}, metrics: m, records: newRecords(s, m.unrecorded),
						courtesy: rate.NewLimiter(0, 0), now: func() time.Time { return time.Unix(1_000_000, 0) },
					})

					return controllertest.Reconciling(b, "n", "c")
				},
				Final: func() []client.ObjectList {
					return []client.ObjectList{&v1alpha1.SubnetList{}, &v1alpha1.SubnetClaimList{}}
				},
			})
		})
	}
}
