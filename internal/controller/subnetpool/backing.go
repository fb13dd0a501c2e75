package subnetpool

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/kube"
)

// uidDigits are the part of a pool's UID that follows a name which is taken.
const uidDigits = 8

// back sees to it that a child pool has a Subnet of its parent.
func (g *Guard) back(ctx context.Context, p *v1alpha1.SubnetPool) error {
	wants, err := netip.ParsePrefix(ipamrules.BackedRange(p))
	if p.ParentName() == "" || err != nil || wants != wants.Masked() {
		return nil //nolint:nilerr // a pool without a valid range is refused for that
	}
	subnets, err := g.candidates(ctx, p, wants)
	if err != nil {
		return err
	}
	message := ""
	switch s, step := ipamrules.DecideBacking(p, wants, subnets); step {
	case ipamrules.BindBlock:
		err = g.bind(ctx, p, s.DeepCopy())
	case ipamrules.RetryBlock:
		err = g.retry(ctx, p, s, wants)
	case ipamrules.CreateBlock:
		if err = g.createIn(ctx, p, wants); err != nil {
			message = err.Error()
		}
	case ipamrules.KeepBlock:
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

// candidates returns the Subnets of the parent that back a pool or can be bound to it.
func (g *Guard) candidates(ctx context.Context, p *v1alpha1.SubnetPool, wants netip.Prefix) ([]v1alpha1.Subnet, error) {
	subnets, err := kube.BackingOf(ctx, g.client, p)
	if err != nil || len(subnets) > 0 || !ipamrules.IsClaimed(p) {
		return subnets, err
	}
	// Older versions did not write spec.backs.
	near, err := kube.SubnetsNear(ctx, g.client, p.Namespace, p.ParentName(), wants)

	return slices.DeleteFunc(near, func(s v1alpha1.Subnet) bool { return !ipamrules.Backs(&s, p) }), err
}

func protects(s *v1alpha1.Subnet) bool {
	return controllerutil.ContainsFinalizer(s, v1alpha1.Finalizer)
}

// hasRoom reports whether the parent of a pool is open and contains a block and, if
// free is asked for, has no other Subnet there.
func (g *Guard) hasRoom(ctx context.Context, p *v1alpha1.SubnetPool, block netip.Prefix, free bool) (bool, error) {
	parent := &v1alpha1.SubnetPool{}
	err := g.client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: p.ParentName()}, parent, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if parent.DeletionTimestamp != nil || !ipamrules.Contains(parent.Open(), block) || !ipamrules.Contains(parent.Spec.CIDR, block) {
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
	s := ipamrules.BackingSubnet(p)
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

// bind makes an Allocated Subnet the block of a pool, on condition that the Subnet has
// not changed. A Subnet has one pool at a time: one that another pool had is taken over
// only when that pool is gone. The pool is read from the API server: the status must name
// only a pool that exists at the same time as the Subnet.
func (g *Guard) bind(ctx context.Context, p *v1alpha1.SubnetPool, s *v1alpha1.Subnet) error {
	if err := g.confirm(ctx, p); err != nil {
		return err
	}
	if uid := s.Status.PoolUID; uid != "" && uid != p.UID {
		if has, err := liveChild(ctx, g.reader, s); err != nil || has != nil && has.UID == uid {
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

// confirm returns a conflict if the API server no longer has a pool, or deletes it.
func (g *Guard) confirm(ctx context.Context, p *v1alpha1.SubnetPool) error {
	live, err := kube.Find(ctx, g.reader, &v1alpha1.SubnetPool{}, p.Namespace, p.Name)
	if err != nil {
		return err
	}
	if live == nil || live.UID != p.UID || live.DeletionTimestamp != nil {
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("subnetpools").GroupResource(), p.Name, errors.New("the cache is behind"))
	}

	return nil
}
