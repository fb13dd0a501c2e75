package ipamcache

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/ledger"
)

// A store is a cache that holds a pool with its Subnets and children.
type store struct {
	pool     *v1alpha1.SubnetPool
	subnets  []*v1alpha1.Subnet
	children []*v1alpha1.SubnetPool
	err      error
	// listed is called after the Subnets were read and before they are returned.
	listed func()
}

func (s *store) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	into, ok := o.(*v1alpha1.SubnetPool)
	if !ok || s.pool == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	s.pool.DeepCopyInto(into)

	return nil
}

func (s *store) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch l := list.(type) {
	case *v1alpha1.SubnetList:
		for _, o := range s.subnets {
			l.Items = append(l.Items, *o)
		}
		if s.listed != nil {
			s.listed()
		}
	case *v1alpha1.SubnetPoolList:
		for _, o := range s.children {
			l.Items = append(l.Items, *o)
		}
	}

	return s.err
}

// An event that comes while a recount lists is not undone by it. The event waits,
// although its object is in the store already.
func TestRecountAndEvents(t *testing.T) {
	f := NewFeed(NewPools(), func(string) {})
	pool, known := eventPool("p", "10.0.0.0/16", ""), eventSubnet(1)
	f.pool(Created, nil, pool)
	f.subnet(Created, nil, known)

	var events sync.WaitGroup
	s := &store{pool: pool, subnets: []*v1alpha1.Subnet{known}}
	s.listed = func() {
		done := make(chan struct{})
		events.Go(func() {
			defer close(done)
			f.subnet(Created, nil, eventSubnet(2))
			f.subnet(Updated, eventSubnet(2), with(eventSubnet(2), func(s *v1alpha1.Subnet) { s.Status.Phase = v1alpha1.SubnetAllocated }))
		})
		select {
		case <-done:
			t.Error("an event was handled in the middle of a recount")
		case <-time.After(50 * time.Millisecond):
		}
	}
	if err := f.Recount(t.Context(), s, key); err != nil {
		t.Fatal(err)
	}
	events.Wait()
	if got := f.pools.Figures(key, 10); got.All.Len() != 2 {
		t.Errorf("%d Subnets are counted, want 2: %+v", got.All.Len(), got.First)
	}
}

func TestRecount(t *testing.T) {
	pool := with(eventPool("p", "10.0.0.0/16", ""), func(p *v1alpha1.SubnetPool) { p.Status.UID, p.Status.CIDR = p.UID, p.Spec.CIDR })
	failed := with(eventSubnet(3), func(s *v1alpha1.Subnet) { s.Status.Phase = v1alpha1.SubnetFailed })
	child := eventPool("child", "10.0.128.0/17", "p")
	refused := with(eventPool("refused", "10.0.64.0/18", "p"), func(p *v1alpha1.SubnetPool) { p.Status.Lost = 1 })
	right := func(f *Feed) {
		f.pool(Created, nil, pool)
		f.pool(Created, nil, child)
		f.subnet(Created, nil, eventSubnet(1))
	}

	cases := map[string]struct {
		reason string
		first  func(f *Feed)
		store  store
		woken  []string
		all    int
		err    bool
	}{
		"Right":   {reason: "Nothing differs.", first: right, store: store{pool: pool, subnets: []*v1alpha1.Subnet{eventSubnet(1), failed}, children: []*v1alpha1.SubnetPool{child, refused}}, all: 2},
		"Missing": {reason: "A block was missed.", first: right, store: store{pool: pool, subnets: []*v1alpha1.Subnet{eventSubnet(1), eventSubnet(2)}, children: []*v1alpha1.SubnetPool{child}}, woken: []string{"p"}, all: 3},
		"Ghost":   {reason: "A block is gone.", first: right, store: store{pool: pool, children: []*v1alpha1.SubnetPool{child}}, woken: []string{"p"}, all: 1},
		"Range":   {reason: "The range was missed.", first: func(f *Feed) { f.subnet(Created, nil, eventSubnet(1)) }, store: store{pool: pool, subnets: []*v1alpha1.Subnet{eventSubnet(1)}}, all: 1},
		"Reserved": {reason: "A reservation stays.", first: func(f *Feed) {
			right(f)
			if _, err := f.pools.Reserve(key, ledger.Request{Claim: "u", Length: 24}, time.Now()); err != nil {
				panic(err)
			}
		}, store: store{pool: pool, subnets: []*v1alpha1.Subnet{eventSubnet(1)}, children: []*v1alpha1.SubnetPool{child}}, all: 3},
		"Gone":  {reason: "The pool is gone.", first: right, woken: []string{"p"}, all: -1},
		"Error": {reason: "What cannot be read changes nothing.", first: right, store: store{pool: pool, err: errors.New("no")}, all: 2, err: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				tc.first(w.Feed)
				w.quiet()
				if err := w.Recount(t.Context(), &tc.store, key); (err != nil) != tc.err {
					t.Errorf("%s\ngot %v", tc.reason, err)
				}
				got := -1
				if f := w.pools.Figures(key, 10); f.All != nil {
					got = f.All.Len()
				}
				if got != tc.all {
					t.Errorf("%s\n%d are counted, want %d", tc.reason, got, tc.all)
				}
				if diff := cmp.Diff(tc.woken, drain(w.everything)); diff != "" {
					t.Errorf("%s\nwoken (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// Many readers and writers of several pools: the race detector is the judge.
func TestConcurrent(t *testing.T) {
	v, other := NewPools(), types.NamespacedName{Namespace: "ns", Name: "other"}
	for _, k := range []types.NamespacedName{key, other} {
		v.SetRange(k, space)
		v.SetOpen(k, true)
	}
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 100 {
				claim := string(rune('a'+worker)) + string(rune('0'+i))
				prefix, err := v.Reserve(key, ledger.Request{Claim: claim, Length: 28}, time.Now())
				if err != nil {
					t.Error(err)
				}
				b := ledger.Block{ID: claim, Prefix: prefix, Claim: claim}
				v.Created(key, claim, b)
				v.Put(key, b)
				v.Figures(key, 3)
				v.Overdue(key, time.Now())
				v.Put(other, b)
				v.Cancel(other, claim)
				v.Drop(other, claim)
			}
		})
	}
	wg.Wait()
	if f := v.Figures(key, 2000); f.Own.Len() != 800 || len(f.First) != 800 || len(v.Overdue(key, time.Now().Add(time.Hour))) != 0 {
		t.Errorf("%d blocks", f.Own.Len())
	}
	if v.Figures(other, 1).All.Len() != 0 || !v.Serves(key, "a0") || v.Serves(other, "a0") {
		t.Error("the other pool is not empty")
	}
}
