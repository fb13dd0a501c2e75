package subnetpool

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/controller/controllertest"
	"github.com/arbor-control/arbor/internal/kube"
)

// TestGuardErrors has each request fail while a pool is protected, backed and released.
func TestGuardErrors(t *testing.T) {
	scheme := controllertest.Scheme(t, v1alpha1.AddToScheme)
	clock := time.Unix(1_000_000, 0)
	pool := func(name, cidr, parent string, change func(*v1alpha1.SubnetPool)) *v1alpha1.SubnetPool {
		p := &v1alpha1.SubnetPool{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name), Generation: 1},
			Spec:       v1alpha1.SubnetPoolSpec{CIDR: cidr, Parent: parent},
		}
		change(p)

		return p
	}
	open := func(p *v1alpha1.SubnetPool) {
		p.Finalizers = []string{v1alpha1.Finalizer}
		p.Status = v1alpha1.SubnetPoolStatus{CIDR: p.Spec.CIDR, UID: p.UID}
	}
	cases := map[string]struct {
		reason  string
		objects []client.Object
	}{
		"Root":  {"A new pool gets the finalizer.", []client.Object{pool("c", "10.0.0.0/24", "", func(*v1alpha1.SubnetPool) {})}},
		"Child": {"A new child pool gets the finalizer, and a backing Subnet.", []client.Object{pool("p", "10.0.0.0/16", "", open), pool("c", "10.0.0.0/24", "p", func(*v1alpha1.SubnetPool) {})}},
		"Deleted": {"An empty pool loses the finalizer.", []client.Object{pool("c", "10.0.0.0/24", "", func(p *v1alpha1.SubnetPool) {
			open(p)
			p.DeletionTimestamp = &metav1.Time{Time: clock}
		})}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			controllertest.Check(t, controllertest.Case{
				Scheme: scheme, Objects: tc.objects, Status: []client.Object{&v1alpha1.Subnet{}, &v1alpha1.SubnetClaim{}, &v1alpha1.SubnetPool{}},
				Index: []func(context.Context, client.FieldIndexer) error{kube.IndexSubnets, controllertest.SelectSubnets},
				New: func(s *controllertest.Server) controllertest.Step {
					g := reconcile.AsReconciler(s, &Guard{
						client: s, reader: s, recorder: &events.FakeRecorder{}, unbacked: func(context.Context, types.NamespacedName, string) {},
						restores: newRestores(time.Minute, func(types.NamespacedName) time.Time { return clock }),
					})

					return controllertest.Reconciling(g, "n", "c")
				},
				Final: func() []client.ObjectList {
					return []client.ObjectList{&v1alpha1.SubnetList{}, &v1alpha1.SubnetPoolList{}}
				},
			})
		})
	}
}
