package subnetpool

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/kube"
)

// A poolServer has pools by name, and no other objects. It counts deletions.
type poolServer struct {
	client.Client

	pools   map[string]*v1alpha1.SubnetPool
	deleted int
	bound   []types.UID
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
	own := ipamrules.BackingSubnet(pool())
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

func (s *poolServer) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return nil
}

func (s *poolServer) Status() client.SubResourceWriter { return &statusWriter{server: s} }

// A statusWriter records the pools that Subnets are bound to.
type statusWriter struct {
	client.SubResourceWriter

	server *poolServer
}

func (w *statusWriter) Update(_ context.Context, o client.Object, _ ...client.SubResourceUpdateOption) error {
	if s, ok := o.(*v1alpha1.Subnet); ok {
		w.server.bound = append(w.server.bound, s.Status.PoolUID)
	}

	return nil
}

// A Subnet is bound only to a pool that the API server has. The cache may show a pool that was
// deleted: status.poolUID would name a pool that never existed at the same time as the
// Subnet.
func TestBindAsksTheServer(t *testing.T) {
	deleting := child(func(p *v1alpha1.SubnetPool) { p.DeletionTimestamp = new(metav1.Now()) })
	cases := map[string]struct {
		reason string
		live   *v1alpha1.SubnetPool
		before types.UID // the pool that the Subnet is bound to
		want   []types.UID
	}{
		"Exists":   {"The pool exists.", child(nil), "", []types.UID{"u"}},
		"TakeOver": {"The pool that had the Subnet is gone.", child(nil), "old", []types.UID{"u"}},
		"Gone":     {"The pool was deleted.", nil, "", nil},
		"Replaced": {"A pool of the same name was restored.", child(func(p *v1alpha1.SubnetPool) { p.UID = "new" }), "", nil},
		"Deleting": {"The pool is being deleted.", deleting, "", nil},
		"Held":     {"The restored pool has the Subnet.", child(func(p *v1alpha1.SubnetPool) { p.UID = "new" }), "new", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := &poolServer{pools: map[string]*v1alpha1.SubnetPool{}}
			if tc.live != nil {
				server.pools["child"] = tc.live
			}
			s := backingIn(v1alpha1.SubnetAllocated, tc.before, nil)
			err := (&Guard{client: server, reader: server}).bind(t.Context(), child(nil), &s)
			if apierrors.IsConflict(err) == (tc.want != nil) || err != nil && !apierrors.IsConflict(err) {
				t.Errorf("%s\nthe error is %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, server.bound); diff != "" {
				t.Errorf("%s\nstatus.poolUID (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
