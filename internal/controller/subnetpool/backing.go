package subnetpool

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	poolrules "github.com/arbor-control/arbor/internal/decide/pool"
	"github.com/arbor-control/arbor/internal/kube"
)

const (
	// namePrefix begins the name and the clusterID of a backing Subnet.
	namePrefix = "pool."
	// uidDigits are the part of a pool's UID that follows a name which is taken.
	uidDigits = 8
)

// back sees to it that a child pool has a Subnet of its parent.
func (g *Guard) back(ctx context.Context, p *v1alpha1.SubnetPool) error {
	wants, err := netip.ParsePrefix(rangeOf(p))
	if p.ParentName() == "" || err != nil || wants != wants.Masked() {
		return nil //nolint:nilerr // a pool without a valid range is refused for that
	}
	subnets, err := g.candidates(ctx, p, wants)
	if err != nil {
		return err
	}
	message := ""
	switch s, step := choose(p, wants, subnets); step {
	case stepBind:
		err = g.bind(ctx, p, s.DeepCopy())
	case stepRetry:
		err = g.retry(ctx, p, s, wants)
	case stepCreate:
		if err = g.createIn(ctx, p, wants); err != nil {
			message = err.Error()
		}
	case stepNone:
	}
	g.unbacked(ctx, client.ObjectKeyFromObject(p), message)

	return err
}

// retry deletes a Failed Subnet if another one may be Allocated now.
func (g *Guard) retry(ctx context.Context, p *v1alpha1.SubnetPool, failed *v1alpha1.Subnet, wants netip.Prefix) error {
	room, err := g.hasRoom(ctx, p, wants, true)
	if err != nil || !room {
		return err
	}

	return discard(ctx, g.client, failed.DeepCopy())
}

// createIn creates the backing Subnet of a pool if its parent contains the block.
func (g *Guard) createIn(ctx context.Context, p *v1alpha1.SubnetPool, wants netip.Prefix) error {
	room, err := g.hasRoom(ctx, p, wants, false)
	if err != nil || !room {
		return err
	}

	return g.create(ctx, p)
}

// rangeOf returns the addresses that the backing Subnet of a pool must contain: those
// that the pool has, or asks for if it has none.
func rangeOf(p *v1alpha1.SubnetPool) string {
	if has := p.Open(); has != "" {
		return has
	}

	return p.Spec.CIDR
}

// candidates returns the Subnets of the parent that back a pool or can be bound to it.
func (g *Guard) candidates(ctx context.Context, p *v1alpha1.SubnetPool, wants netip.Prefix) ([]v1alpha1.Subnet, error) {
	subnets, err := kube.BackingOf(ctx, g.client, p)
	if err != nil || len(subnets) > 0 || !isClaimed(p) {
		return subnets, err
	}
	// Older versions did not write spec.backs.
	near, err := kube.SubnetsNear(ctx, g.client, p.Namespace, p.ParentName(), wants)

	return slices.DeleteFunc(near, func(s v1alpha1.Subnet) bool { return !poolrules.Backs(&s, p) }), err
}

// A step is what to do about the backing Subnet of a pool.
type step int

const (
	stepNone step = iota
	stepBind
	stepRetry
	stepCreate
)

// choose returns the next step towards a backing Subnet, and the Subnet that it is
// about.
func choose(p *v1alpha1.SubnetPool, wants netip.Prefix, subnets []v1alpha1.Subnet) (*v1alpha1.Subnet, step) {
	var failed, bindable *v1alpha1.Subnet
	for i := range subnets {
		s := &subnets[i]
		switch {
		case s.Status.Phase == v1alpha1.SubnetFailed:
			failed = s
		case !contains(s.Spec.CIDR, wants):
			// The pool asked for other addresses before, and has a block with those. A
			// pool keeps its block, so a second one would never be released.
			if keeps(s, p) {
				return nil, stepNone
			}
		case s.Status.PoolUID == p.UID && protects(s), s.DeletionTimestamp != nil, s.Status.Phase != v1alpha1.SubnetAllocated:
			return nil, stepNone // it backs the pool, or prevents another one until it is gone, or is not decided
		default:
			bindable = s
		}
	}
	switch {
	case bindable != nil:
		return bindable, stepBind
	case isClaimed(p):
		return nil, stepNone // the SubnetPoolClaim gets one
	case failed != nil:
		return failed, stepRetry
	}

	return nil, stepCreate
}

// keeps reports whether a Subnet is for this very pool and no other, or becomes so.
func keeps(s *v1alpha1.Subnet, p *v1alpha1.SubnetPool) bool {
	if s.DeletionTimestamp != nil {
		return false
	}

	return s.Status.PoolUID == p.UID || s.Status.PoolUID == "" && s.Spec.Backs != nil && s.Spec.Backs.UID == p.UID
}

func protects(s *v1alpha1.Subnet) bool {
	return controllerutil.ContainsFinalizer(s, v1alpha1.Finalizer)
}

// contains reports whether a block lies inside of the range that a text names.
func contains(cidr string, block netip.Prefix) bool {
	outer, err := netip.ParsePrefix(cidr)

	return err == nil && outer.Bits() <= block.Bits() && outer.Contains(block.Addr())
}

// hasRoom reports whether the parent of a pool is open and contains a block and, if
// free is asked for, has no other Subnet there.
func (g *Guard) hasRoom(ctx context.Context, p *v1alpha1.SubnetPool, block netip.Prefix, free bool) (bool, error) {
	parent := &v1alpha1.SubnetPool{}
	err := g.client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: p.ParentName()}, parent, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if parent.DeletionTimestamp != nil || !contains(parent.Open(), block) || !contains(parent.Spec.CIDR, block) {
		return false, nil
	}
	if !free {
		return true, nil
	}
	near, err := kube.SubnetsNear(ctx, g.client, p.Namespace, parent.Name, block)

	return !slices.ContainsFunc(near, func(s v1alpha1.Subnet) bool {
		has, err := netip.ParsePrefix(s.Spec.CIDR)

		return err == nil && s.Status.Phase != v1alpha1.SubnetFailed && has.Overlaps(block)
	}), err
}

// create creates the backing Subnet of a pool. If its name is taken by another Subnet,
// a part of the pool's UID follows it.
func (g *Guard) create(ctx context.Context, p *v1alpha1.SubnetPool) error {
	s := backingSubnet(p)
	names := []string{s.Name, s.Name + "-" + string(p.UID[:min(uidDigits, len(p.UID))])}
	for _, name := range names {
		fresh := s.DeepCopy()
		fresh.Name = name
		err := g.client.Create(ctx, fresh)
		if err == nil {
			return nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("cannot create the backing Subnet of pool %s/%s: %w", p.Namespace, p.Name, err)
		}
		there := &v1alpha1.Subnet{}
		if err := g.reader.Get(ctx, client.ObjectKeyFromObject(fresh), there); err != nil {
			return fmt.Errorf("cannot read Subnet %s/%s: %w", p.Namespace, name, err)
		}
		if there.Spec.PoolRef == s.Spec.PoolRef && there.Spec.Backs != nil && there.Spec.Backs.Name == p.Name && there.Spec.CIDR == s.Spec.CIDR {
			return nil // the cache is behind
		}
	}

	return fmt.Errorf("cannot create the backing Subnet of pool %s/%s: other Subnets are called %s and %s", p.Namespace, p.Name, names[0], names[1])
}

// backingSubnet returns the Subnet that keeps the addresses of a child pool from others.
func backingSubnet(p *v1alpha1.SubnetPool) *v1alpha1.Subnet {
	id := v1alpha1.LabelValue(namePrefix, p.Name)

	return &v1alpha1.Subnet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: id, Finalizers: []string{v1alpha1.Finalizer},
			Labels: map[string]string{v1alpha1.ClusterIDLabel: id},
		},
		Spec: v1alpha1.SubnetSpec{
			PoolRef: p.ParentName(), CIDR: rangeOf(p), ClusterID: id,
			Backs: &v1alpha1.PoolReference{Name: p.Name, UID: p.UID},
		},
	}
}

// bind makes an Allocated Subnet the block of a pool, on condition that the Subnet has
// not changed. A Subnet has one pool at a time: one that another pool had is taken over
// only when that pool is gone.
func (g *Guard) bind(ctx context.Context, p *v1alpha1.SubnetPool, s *v1alpha1.Subnet) error {
	if uid := s.Status.PoolUID; uid != "" && uid != p.UID {
		if exists, err := poolExists(ctx, g.reader, s); err != nil || exists {
			return err
		}
	}
	before := s.DeepCopy()
	if controllerutil.AddFinalizer(s, v1alpha1.Finalizer) {
		if err := g.client.Patch(ctx, s, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return client.IgnoreNotFound(fmt.Errorf("cannot write the finalizer of Subnet %s/%s: %w", s.Namespace, s.Name, err))
		}
	}
	status := s.Status.DeepCopy()
	s.Status.PoolUID = p.UID
	_, err := kube.WriteStatus(ctx, g.client, s, *status, s.Status)

	return err
}
