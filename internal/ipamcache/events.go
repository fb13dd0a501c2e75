package ipamcache

import (
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/ledger"
	"github.com/arbor-control/arbor/internal/decide/ipam/poolblocks"
)

// A place is a block in a pool. Its pool is empty for an object that is in none.
type place struct {
	pool  types.NamespacedName
	block ledger.Block
	// counts is false for an object that takes no addresses.
	counts bool
	// failed is true for a Subnet that has lost its addresses.
	failed bool
}

func placeOfSubnet(s *v1alpha1.Subnet) place {
	var at place
	if s == nil {
		return at
	}
	for _, r := range MapSubnetToPool(s) {
		at.pool = r.NamespacedName
	}
	at.block, at.counts = poolblocks.BlockOf(s)
	at.failed = s.Status.Phase == v1alpha1.SubnetFailed

	return at
}

func placeOfPool(p *v1alpha1.SubnetPool) place {
	var at place
	if p == nil {
		return at
	}
	for _, r := range MapChildToParent(p) {
		at.pool = r.NamespacedName
	}
	at.block, at.counts = poolblocks.DelegationOf(p)

	return at
}

// move takes an object from where it was to where it is now, and wakes the
// controllers of both pools. It returns whether a ledger changed.
//
// An object that is gone always wakes those that wait for room: one with an invalid
// CIDR is in no ledger, and still in the way of the deletion of its pool.
func (f *Feed) move(before, now place) bool {
	dropped := false
	if before.pool.Name != "" && (before.pool != now.pool || before.block.ID != now.block.ID) {
		dropped = f.pools.Drop(before.pool, before.block.ID)
		f.wake(before.pool, dropped, true)
		f.forget(before.pool)
		before = place{}
	}
	if now.pool.Name == "" {
		return dropped
	}
	var changed, room bool
	if now.counts {
		changed = f.pools.Put(now.pool, now.block)
		room = changed && before.counts // it may have been larger
	} else {
		changed = f.pools.Drop(now.pool, now.block.ID)
		room = changed || now.failed && !before.failed && before.pool.Name != ""
	}
	f.wake(now.pool, changed, room)
	f.forget(now.pool)

	return changed || dropped
}

// subnet is the handler of Subnets.
func (f *Feed) subnet(kind string, before, now any) {
	old, _ := unwrap(before).(*v1alpha1.Subnet)
	s, _ := unwrap(now).(*v1alpha1.Subnet)
	f.order.Lock()
	defer f.order.Unlock()
	was, is := placeOfSubnet(old), placeOfSubnet(s)
	if is.pool.Name != "" && was.block.ID != is.block.ID {
		f.arrived(is.pool)
	}
	if !f.move(was, is) {
		return
	}
	f.seen(kind)
	if s != nil && s.Status.Phase == v1alpha1.SubnetFailed && s.Spec.ClaimRef != nil {
		f.callLost(is.pool)
	}
}

// pool is the handler of SubnetPools.
func (f *Feed) pool(_ string, before, now any) {
	old, _ := unwrap(before).(*v1alpha1.SubnetPool)
	p, _ := unwrap(now).(*v1alpha1.SubnetPool)
	f.order.Lock()
	defer f.order.Unlock()
	switch {
	case p != nil:
		self := client.ObjectKeyFromObject(p)
		f.setRange(self, p)
		f.move(placeOfPool(old), placeOfPool(p))
		if old == nil || !f.isEcho(old, p) {
			f.wake(self, true, true)
		}
	case old != nil:
		self := client.ObjectKeyFromObject(old)
		f.Forget(self)
		f.setRange(self, &v1alpha1.SubnetPool{})
		f.move(placeOfPool(old), place{})
		f.wake(self, true, true)
		f.forget(self)
	}
}

// setRange records the range of a pool, none for an empty one.
func (f *Feed) setRange(key types.NamespacedName, p *v1alpha1.SubnetPool) {
	prefix, open := poolblocks.RangeOf(p)
	f.pools.in(key, func(p *ledger.Pool) {
		p.SetRange(prefix)
		p.SetOpen(open)
	})
}

// all returns the blocks of Subnets and child pools.
func all(subnets []v1alpha1.Subnet, children []v1alpha1.SubnetPool) []ledger.Block {
	found := make([]ledger.Block, 0, len(subnets)+len(children))
	for i := range subnets {
		if b, ok := poolblocks.BlockOf(&subnets[i]); ok {
			found = append(found, b)
		}
	}
	for i := range children {
		if b, ok := poolblocks.DelegationOf(&children[i]); ok {
			found = append(found, b)
		}
	}

	return found
}

// enqueueParentPool returns the request for a pool. The namespace is never empty:
// pools are namespaced, and so is everything that names one.
func enqueueParentPool(namespace, name string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// MapSubnetToPool returns the pool of a Subnet. It takes what an informer passes to
// handlers, tombstones included.
func MapSubnetToPool(o any) []reconcile.Request {
	s, ok := unwrap(o).(*v1alpha1.Subnet)
	if !ok || s.Spec.PoolRef == "" {
		return nil
	}

	return enqueueParentPool(s.Namespace, s.Spec.PoolRef)
}

// MapChildToParent returns the parent of a pool, if it has one.
func MapChildToParent(o any) []reconcile.Request {
	p, ok := unwrap(o).(*v1alpha1.SubnetPool)
	if !ok || p.ParentName() == "" {
		return nil
	}

	return enqueueParentPool(p.Namespace, p.ParentName())
}

func unwrap(o any) any {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		return gone.Obj
	}

	return o
}
