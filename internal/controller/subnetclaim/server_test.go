package subnetclaim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipam/poolblocks"
	"github.com/arbor-control/arbor/internal/ipamcache"
)

var (
	poolKey   = types.NamespacedName{Namespace: "ns", Name: "p"}
	resources = schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "subnets"}
)

// A recorder is an api in memory that records what it is asked for.
type recorder struct {
	mu      sync.Mutex
	pool    *v1alpha1.SubnetPool
	claims  map[string]*v1alpha1.SubnetClaim
	subnets map[string]*v1alpha1.Subnet

	// before and after a Subnet is stored, these may fail the request.
	before, after func(s *v1alpha1.Subnet) error
	// read may fail reading a Subnet.
	read func(name string) error

	calls  []string // in order: create NAME, read NAME, recount
	writes int      // of statuses
	uids   int
}

func (r *recorder) Pool(context.Context, types.NamespacedName) (*v1alpha1.SubnetPool, error) {
	return r.pool, nil
}

// Claims lists the claims in an order that is not theirs.
func (r *recorder) Claims(context.Context, types.NamespacedName) ([]v1alpha1.SubnetClaim, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []v1alpha1.SubnetClaim
	for c := range maps.Values(r.claims) {
		list = append(list, *c)
	}

	return list, nil
}

func (r *recorder) Subnet(_ context.Context, key types.NamespacedName) (*v1alpha1.Subnet, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, "read "+key.Name)
	if err := r.read(key.Name); err != nil {
		return nil, err
	}
	if s, ok := r.subnets[key.Name]; ok {
		return s.DeepCopy(), nil
	}

	return nil, apierrors.NewNotFound(resources, key.Name)
}

func (r *recorder) Create(_ context.Context, s *v1alpha1.Subnet) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, "create "+s.Name)
	if err := r.before(s); err != nil {
		return err
	}
	if _, ok := r.subnets[s.Name]; ok {
		return apierrors.NewAlreadyExists(resources, s.Name)
	}
	r.store(s)

	return r.after(s)
}

func (r *recorder) store(s *v1alpha1.Subnet) {
	r.uids++
	s.UID = types.UID(fmt.Sprintf("subnet-%d", r.uids))
	r.subnets[s.Name] = s.DeepCopy()
}

func (r *recorder) WriteStatus(_ context.Context, c *v1alpha1.SubnetClaim) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes++
	r.claims[c.Name] = c

	return nil
}

func (*recorder) Warn(*v1alpha1.SubnetClaim, string, string) {}

// A bench is an allocator with a recorder and a clock that tests move.
type bench struct {
	*recorder

	t         *testing.T
	allocator *Allocator
	clock     time.Time
}

// newBench returns an allocator of an open pool.
func newBench(t *testing.T, cidr string) *bench {
	t.Helper()
	succeed := func(*v1alpha1.Subnet) error { return nil }
	b := &bench{t: t, clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), recorder: &recorder{
		claims: map[string]*v1alpha1.SubnetClaim{}, subnets: map[string]*v1alpha1.Subnet{},
		before: succeed, after: succeed, read: func(string) error { return nil },
	}}
	b.pool = &v1alpha1.SubnetPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "pool"},
		Spec:       v1alpha1.SubnetPoolSpec{CIDR: cidr},
		Status:     v1alpha1.SubnetPoolStatus{CIDR: cidr, UID: "pool"},
	}
	b.allocator = &Allocator{
		api: b.recorder, view: ipamcache.NewPools(), metrics: NewMetrics(prometheus.NewRegistry()), others: newContention(), backoff: newBackoff(),
		now: func() time.Time { return b.clock },
		recount: func(context.Context, types.NamespacedName) error {
			b.calls = append(b.calls, "recount")

			return nil
		},
		enqueue: func(context.Context, types.NamespacedName) {},
	}
	prefix, open := poolblocks.RangeOf(b.pool)
	b.allocator.view.SetRange(poolKey, prefix)
	b.allocator.view.SetOpen(poolKey, open)

	return b
}

// claim adds a claim for a block of a length. Claims are as old as they come.
func (b *bench) claim(name string, length int32) *v1alpha1.SubnetClaim {
	c := &v1alpha1.SubnetClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID("uid-" + name),
			CreationTimestamp: metav1.NewTime(b.clock.Add(time.Duration(len(b.claims)) * time.Second)),
		},
		Spec: v1alpha1.SubnetClaimSpec{PoolRef: "p", ClusterID: "cluster-" + name, BlockSize: &length},
	}
	b.claims[name] = c

	return c
}

// taken has the view know a block that is not a claim's.
func (b *bench) taken(cidr string) {
	b.t.Helper()
	s := &v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{UID: types.UID(cidr)}, Spec: v1alpha1.SubnetSpec{PoolRef: "p", CIDR: cidr, ClusterID: "x"}}
	block, ok := poolblocks.BlockOf(s)
	if !ok {
		b.t.Fatalf("%s is not a block", cidr)
	}
	b.allocator.view.Put(poolKey, block)
}

// round runs the allocator and returns when it wants to run again. A problem of a claim is never an
// error.
func (b *bench) round() time.Duration {
	b.t.Helper()
	result, err := b.allocator.Reconcile(b.t.Context(), reconcile.Request{NamespacedName: poolKey})
	if err != nil {
		b.t.Fatal(err)
	}
	b.clock = b.clock.Add(time.Millisecond)

	return result.RequeueAfter
}

// blocks returns the block of each claim that has a Subnet.
func (b *bench) blocks() map[string]string {
	all := map[string]string{}
	for _, s := range b.subnets {
		if s.Spec.ClaimRef != nil && s.Status.Phase != v1alpha1.SubnetFailed {
			all[s.Spec.ClaimRef.Name] = s.Spec.CIDR
		}
	}

	return all
}

// reason returns why a claim is not ready.
func (b *bench) reason(name string) string {
	ready := meta.FindStatusCondition(b.claims[name].Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return ""
	}

	return ready.Reason
}

// names returns the names of the Subnets there are, in order.
func (b *bench) names() string {
	return strings.Join(slices.Sorted(maps.Keys(b.subnets)), " ")
}
