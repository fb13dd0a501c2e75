package subnetpool

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// A poolServer has pools by name, and no other objects. It counts deletions.
type poolServer struct {
	client.Client

	pools   map[string]*v1alpha1.SubnetPool
	deleted int
}

func (s *poolServer) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if p, ok := o.(*v1alpha1.SubnetPool); ok && s.pools[key.Name] != nil {
		s.pools[key.Name].DeepCopyInto(p)

		return nil
	}

	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (*poolServer) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func (s *poolServer) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	s.deleted++

	return nil
}

// A child pool and its backing Subnet are deleted and restored while the manager runs. The
// Subnet of the backup names the pool that was deleted, and arrives before the restored pool
// or before the guard has bound it.
func TestRestoredAfterDeletion(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	again := func(change func(*v1alpha1.SubnetPool)) *v1alpha1.SubnetPool {
		return child(func(p *v1alpha1.SubnetPool) {
			p.UID = "new"
			if change != nil {
				change(p)
			}
		})
	}
	cases := map[string]struct {
		reason   string
		phase    v1alpha1.SubnetPhase
		parent   bool
		child    *v1alpha1.SubnetPool
		released bool
	}{
		"Alone":     {"Neither pool is back yet.", "", false, nil, false},
		"NoChild":   {"The child pool is not back yet.", v1alpha1.SubnetPending, true, nil, false},
		"PoolBack":  {"The guard is about to bind it to the restored pool.", v1alpha1.SubnetAllocated, true, again(nil), false},
		"Elsewhere": {"The new pool of the name has other addresses.", v1alpha1.SubnetAllocated, true, again(func(p *v1alpha1.SubnetPool) { p.Spec.CIDR = "10.9.0.0/20" }), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := &poolServer{pools: map[string]*v1alpha1.SubnetPool{}}
			if tc.parent {
				server.pools["parent"] = &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Name: "parent"}}
			}
			if tc.child != nil {
				server.pools["child"] = tc.child
			}
			r := &Releaser{client: server, reader: server, grace: 10 * time.Minute, now: func() time.Time { return now }, known: newFirstSeen(time.Hour)}
			s := backingIn(tc.phase, "", func(s *v1alpha1.Subnet) {
				s.CreationTimestamp = metav1.NewTime(now)
				s.Spec.Backs.UID = "u"
				if tc.phase == v1alpha1.SubnetAllocated {
					s.Status.PoolUID = "u"
				}
			})
			result, err := r.Reconcile(t.Context(), &s)
			if err != nil || (server.deleted > 0) != tc.released {
				t.Errorf("%s\n%d deletions (%v)", tc.reason, server.deleted, err)
			}
			if tc.child == nil && result.RequeueAfter != 10*time.Minute {
				t.Errorf("%s\nit is reconciled again after %s", tc.reason, result.RequeueAfter)
			}
		})
	}
}
