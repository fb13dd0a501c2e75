package poolstatus

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/kube"
)

// gatherFacts reads what the decision about a pool depends on from a cache.
func gatherFacts(ctx context.Context, cache client.Reader, pool *v1alpha1.SubnetPool, prefix netip.Prefix) (ipamrules.PoolFacts, error) {
	g := &gatherer{cache: cache, pool: pool, prefix: prefix, pools: map[string]*v1alpha1.SubnetPool{}}
	var facts ipamrules.PoolFacts
	near, err := kube.PoolsNear(ctx, cache, pool.Namespace, prefix)
	if err != nil {
		return facts, err
	}
	for i := range near {
		facts.Others = append(facts.Others, ipamrules.OtherPoolOf(&near[i]))
	}
	// In one order, so that a message does not change from one reconciliation to the
	// next.
	slices.SortFunc(facts.Others, func(a, b ipamrules.OtherPool) int { return strings.Compare(a.Name, b.Name) })
	if facts.Strays, err = g.strays(ctx); err != nil {
		return facts, err
	}
	if facts.Outside, err = cachedOutside(ctx, cache, pool, prefix); err != nil {
		return facts, err
	}
	if pool.ParentName() == "" {
		return facts, nil
	}
	parent, err := g.named(ctx, pool.ParentName())
	if err != nil || parent == nil {
		return facts, err
	}
	facts.HasParent = true
	facts.Backing, err = g.backing(ctx, parent)

	return facts, err
}

// A gatherer reads the surroundings of one pool.
type gatherer struct {
	cache  client.Reader
	pool   *v1alpha1.SubnetPool
	prefix netip.Prefix
	// pools are those that were read by name, nil if they do not exist.
	pools map[string]*v1alpha1.SubnetPool
}

// named returns the pool of a name, nil if it does not exist.
func (g *gatherer) named(ctx context.Context, name string) (*v1alpha1.SubnetPool, error) {
	if p, known := g.pools[name]; known {
		return p, nil
	}
	p := &v1alpha1.SubnetPool{}
	err := g.cache.Get(ctx, client.ObjectKey{Namespace: g.pool.Namespace, Name: name}, p, client.UnsafeDisableDeepCopy)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("cannot read pool %s/%s: %w", g.pool.Namespace, name, err)
	case err != nil:
		p = nil
	}
	g.pools[name] = p

	return p, nil
}

// strays returns the Allocated Subnets that overlap the pool's range although no open
// pool contains them.
func (g *gatherer) strays(ctx context.Context) ([]ipamrules.StraySubnet, error) {
	near, err := kube.SubnetsAt(ctx, g.cache, g.pool.Namespace, g.prefix)
	if err != nil {
		return nil, err
	}
	above, err := g.ancestors(ctx)
	if err != nil {
		return nil, err
	}
	var found []ipamrules.StraySubnet
	delegated := g.delegated(near)
	for i := range near {
		s := &near[i]
		block, ok := g.overlaps(s)
		if !ok || s.Spec.PoolRef == g.pool.Name {
			continue
		}
		if above[s.Spec.PoolRef] && contains(block, g.prefix) && s.Status.PoolUID != "" {
			continue // the block that this pool or an ancestor is made of
		}
		stray, ok, err := g.stray(ctx, s, block)
		if err != nil {
			return nil, err
		}
		if ok {
			stray.Backed = slices.ContainsFunc(delegated, func(b netip.Prefix) bool { return contains(b, block) })
			found = append(found, stray)
		}
	}
	slices.SortFunc(found, func(a, b ipamrules.StraySubnet) int { return strings.Compare(a.Name, b.Name) })

	return found, nil
}

// overlaps returns the block of an Allocated Subnet that overlaps the pool's range.
func (g *gatherer) overlaps(s *v1alpha1.Subnet) (netip.Prefix, bool) {
	block, err := netip.ParsePrefix(s.Spec.CIDR)

	return block.Masked(), err == nil && allocated(s) && block.Overlaps(g.prefix)
}

// delegated returns the blocks that the pool keeps for its child pools.
func (g *gatherer) delegated(near []v1alpha1.Subnet) []netip.Prefix {
	var blocks []netip.Prefix
	for i := range near {
		s := &near[i]
		block, ok := g.overlaps(s)
		if ok && s.Spec.PoolRef == g.pool.Name && protected(s) && s.Status.PoolUID != "" {
			blocks = append(blocks, block)
		}
	}

	return blocks
}

// stray describes a Subnet of another pool. It is false if that pool is open and
// contains the Subnet.
func (g *gatherer) stray(ctx context.Context, s *v1alpha1.Subnet, block netip.Prefix) (ipamrules.StraySubnet, bool, error) {
	of, err := g.named(ctx, s.Spec.PoolRef)
	stray := ipamrules.StraySubnet{Name: s.Name, CIDR: s.Spec.CIDR, Pool: s.Spec.PoolRef}
	if err != nil || of == nil {
		return stray, true, err
	}
	stray.Exists, stray.Parent = true, of.ParentName()
	open, err := netip.ParsePrefix(of.Open())

	return stray, err != nil || !contains(open, block), nil //nolint:nilerr // a pool without a valid range contains nothing
}

// ancestors returns the names of the pools above the pool.
func (g *gatherer) ancestors(ctx context.Context) (map[string]bool, error) {
	names, _, err := ipamrules.Ancestors(g.pool.ParentName(), func(name string) (*v1alpha1.SubnetPool, error) { return g.named(ctx, name) })
	above := map[string]bool{}
	for _, name := range names {
		above[name] = true
	}

	return above, err
}

// backing returns the Subnet that backs a child pool, or why there is none.
func (g *gatherer) backing(ctx context.Context, parent *v1alpha1.SubnetPool) (ipamrules.Backing, error) {
	subnets, err := kube.BackingOf(ctx, g.cache, g.pool)
	if err != nil {
		return ipamrules.Backing{}, err
	}
	var other ipamrules.Backing
	var failed *v1alpha1.Subnet
	undecided := false
	for i := range subnets {
		s := &subnets[i]
		block, err := netip.ParsePrefix(s.Spec.CIDR)
		switch {
		case err != nil:
		case s.Status.Phase == v1alpha1.SubnetFailed:
			failed = s
		case !g.backedBy(s):
			undecided = undecided || g.mayBack(s, block)
		case contains(block, g.prefix):
			return ipamrules.Backing{Prefix: block.Masked()}, nil
		default:
			other.Prefix = block.Masked()
		}
	}
	switch {
	case undecided:
		return ipamrules.Backing{}, nil
	case other.Prefix.IsValid():
		return other, nil
	}

	return g.unbacked(parent, failed), nil
}

// backedBy reports whether the pool can be opened in a Subnet of its parent.
func (g *gatherer) backedBy(s *v1alpha1.Subnet) bool {
	return allocated(s) && protected(s) && s.Status.PoolUID == g.pool.UID
}

// mayBack reports whether the pool may be opened in a Subnet later. A former block of its
// name that is being deleted decides nothing elsewhere.
func (g *gatherer) mayBack(s *v1alpha1.Subnet, block netip.Prefix) bool {
	return s.DeletionTimestamp == nil || contains(block, g.prefix)
}

// unbacked returns why a pool has no Subnet: it has failed, nil if there is none, or the
// parent does not contain it. Otherwise the Subnet is still to be created.
func (g *gatherer) unbacked(parent *v1alpha1.SubnetPool, failed *v1alpha1.Subnet) ipamrules.Backing {
	if failed != nil {
		return rejected(failed)
	}
	open, err := netip.ParsePrefix(parent.Open())
	if err != nil || contains(open, g.prefix) {
		return ipamrules.Backing{}
	}

	return ipamrules.Backing{Reason: ipamrules.ReasonOutsideBlock, Message: fmt.Sprintf(
		"%s is not inside of %s, which the parent %s has: choose a part of that, or another parent", g.prefix, open, parent.Name)}
}

// allocated reports whether a Subnet has its block. A status with the UID of another
// Subnet comes from a backup and counts as none; older versions wrote no UID.
func allocated(s *v1alpha1.Subnet) bool {
	return s.Status.Phase == v1alpha1.SubnetAllocated && (s.Status.UID == "" || s.Status.UID == s.UID)
}

// protected reports whether a Subnet stays as long as the pool that it backs.
func protected(s *v1alpha1.Subnet) bool {
	return s.DeletionTimestamp == nil && slices.Contains(s.Finalizers, v1alpha1.Finalizer)
}

// rejected returns why a pool has no block: the parent did not give it one.
func rejected(s *v1alpha1.Subnet) ipamrules.Backing {
	b := ipamrules.Backing{Reason: ipamrules.ReasonOutsideBlock, Message: "the parent " + s.Spec.PoolRef + " has no such block"}
	c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil {
		return b
	}
	b.Message += ": " + c.Message
	switch c.Reason {
	case ipamrules.ReasonOverlap:
		b.Reason = ipamrules.ReasonOverlap
	case ipamrules.ReasonPoolDeleting:
		b.Reason = ipamrules.ReasonNoParent
	}

	return b
}
