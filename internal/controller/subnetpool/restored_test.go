package subnetpool

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	poolrules "github.com/arbor-control/arbor/internal/decide/pool"
	"github.com/arbor-control/arbor/internal/kube"
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
		ahead    time.Duration // of the manager's clock
		released bool
	}{
		"Alone":     {"Neither pool is back yet.", "", false, nil, 0, false},
		"NoChild":   {"The child pool is not back yet.", v1alpha1.SubnetPending, true, nil, 0, false},
		"Ahead":     {"The clock of the manager is ahead of that of the API server.", v1alpha1.SubnetPending, true, nil, time.Hour, false},
		"PoolBack":  {"The guard is about to bind it to the restored pool.", v1alpha1.SubnetAllocated, true, again(nil), 0, false},
		"Elsewhere": {"The new pool of the name has other addresses.", v1alpha1.SubnetAllocated, true, again(func(p *v1alpha1.SubnetPool) { p.Spec.CIDR = "10.9.0.0/20" }), 0, true},
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
			r := &Releaser{client: server, reader: server, grace: 10 * time.Minute, now: func() time.Time { return now.Add(tc.ahead) }, known: kube.NewFirstSeen(time.Hour)}
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

// A nameServer has Subnets, and no other objects.
type nameServer struct {
	client.Client

	subnets map[string]*v1alpha1.Subnet
}

func (s *nameServer) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	there, into := s.subnets[key.Name], o.(*v1alpha1.Subnet)
	if there == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	there.DeepCopyInto(into)

	return nil
}

func (s *nameServer) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	if s.subnets[o.GetName()] != nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{}, o.GetName())
	}
	s.subnets[o.GetName()] = o.(*v1alpha1.Subnet)

	return nil
}

// Another Subnet can have the name that the backing Subnet of a pool gets.
func TestNameOfBackingSubnet(t *testing.T) {
	pool := func() *v1alpha1.SubnetPool {
		return child(func(p *v1alpha1.SubnetPool) { p.UID = "0123456789" })
	}
	other := func() *v1alpha1.Subnet { return &v1alpha1.Subnet{Spec: v1alpha1.SubnetSpec{PoolRef: "q"}} }
	own := poolrules.BackingSubnet(pool())
	cases := map[string]struct {
		reason string
		taken  map[string]*v1alpha1.Subnet
		want   string // the name of the Subnet of the pool, "" if there is none
	}{
		"Free":  {"No other Subnet has the name.", map[string]*v1alpha1.Subnet{}, "pool.child"},
		"Own":   {"The cache does not show it yet.", map[string]*v1alpha1.Subnet{"pool.child": own}, "pool.child"},
		"Taken": {"A part of the UID follows the name.", map[string]*v1alpha1.Subnet{"pool.child": other()}, "pool.child-01234567"},
		"Both":  {"The error tells the user which names to free.", map[string]*v1alpha1.Subnet{"pool.child": other(), "pool.child-01234567": other()}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &nameServer{subnets: tc.taken}
			err := (&Guard{client: s, reader: s}).create(t.Context(), pool())
			if tc.want == "" {
				if err == nil || !strings.Contains(err.Error(), "pool.child and pool.child-01234567") {
					t.Errorf("%s\ngot %v", tc.reason, err)
				}

				return
			}
			if got := s.subnets[tc.want]; err != nil || got == nil || got.Spec.Backs == nil || got.Spec.Backs.UID != "0123456789" {
				t.Errorf("%s\nthere is %+v (%v)", tc.reason, got, err)
			}
		})
	}
}
