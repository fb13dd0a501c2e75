package audit

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
)

// An index finds the objects of an inventory by name, and what belongs together.
type index struct {
	pools      map[types.NamespacedName]*v1alpha1.SubnetPool
	subnets    map[types.NamespacedName]*v1alpha1.Subnet
	claims     map[types.NamespacedName]*v1alpha1.SubnetClaim
	poolClaims map[types.NamespacedName]*v1alpha1.SubnetPoolClaim

	// contents are by pool, also of pools that are not there. The name "" has
	// the roots of a namespace.
	contents map[types.NamespacedName]*contents
	// allocated are the Subnets that were taken for a claim.
	allocated map[types.NamespacedName][]*v1alpha1.Subnet
	// held are child pools with the Allocated Subnets that they are made of. An open pool
	// needs one that is bound to it.
	held map[*v1alpha1.SubnetPool]*v1alpha1.Subnet
}

// contents are the blocks that were taken from a pool, by name. Failed Subnets and invalid CIDRs
// take nothing.
type contents struct {
	subnets  blocks[v1alpha1.Subnet]
	children blocks[v1alpha1.SubnetPool]
}

// blocks are objects, each with the prefix that it takes, masked.
type blocks[T any] struct {
	of       []*T
	prefixes []netip.Prefix
}

func (b *blocks[T]) add(o *T, cidr string) {
	if prefix, err := netip.ParsePrefix(cidr); err == nil {
		b.of, b.prefixes = append(b.of, o), append(b.prefixes, prefix.Masked())
	}
}

// own are the Subnets of a pool without those that back a child pool of the same
// block: what overlaps one of these overlaps the child, and that is reported. It also
// returns all that back a child pool.
func (c *contents) own() (blocks[v1alpha1.Subnet], map[*v1alpha1.Subnet]*v1alpha1.SubnetPool) {
	backing := c.backing()

	return c.subnets.only(func(s *v1alpha1.Subnet) bool {
		return backing[s] == nil || !same(s.Spec.CIDR, backing[s].Spec.CIDR)
	}), backing
}

// backing are the Subnets of a pool that child pools are made of, with those pools.
func (c *contents) backing() map[*v1alpha1.Subnet]*v1alpha1.SubnetPool {
	byName, byUID, byBlock := map[string]int{}, map[types.UID]int{}, map[netip.Prefix][]int{}
	for i, p := range c.children.of {
		byName[p.Name], byUID[p.UID] = i, i
		byBlock[c.children.prefixes[i]] = append(byBlock[c.children.prefixes[i]], i)
	}
	found := map[*v1alpha1.Subnet]*v1alpha1.SubnetPool{}
	for i, s := range c.subnets.of {
		block := c.subnets.prefixes[i]
		child, ok := byUID[s.Status.PoolUID]
		if ok = ok && s.Status.PoolUID != ""; !ok && s.Spec.Backs != nil {
			child, ok = byName[s.Spec.Backs.Name] // after a restore the UID is old
		}
		if ok && contains(block, c.children.prefixes[child]) {
			found[s] = c.children.of[child]
		}
		for _, stored := range byBlock[block] {
			if p := c.children.of[stored]; found[s] == nil && ipamrules.Backs(s, p) {
				found[s] = p
			}
		}
	}

	return found
}

func contains(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

// only returns the blocks of some.
func (b *blocks[T]) only(some func(*T) bool) blocks[T] {
	var kept blocks[T]
	for i, o := range b.of {
		if some(o) {
			kept.of, kept.prefixes = append(kept.of, o), append(kept.prefixes, b.prefixes[i])
		}
	}

	return kept
}

func newIndex(e Inventory) *index {
	x := &index{
		pools:      byName(e.Pools, func(o *v1alpha1.SubnetPool) metav1.Object { return o }),
		subnets:    byName(e.Subnets, func(o *v1alpha1.Subnet) metav1.Object { return o }),
		claims:     byName(e.Claims, func(o *v1alpha1.SubnetClaim) metav1.Object { return o }),
		poolClaims: byName(e.PoolClaims, func(o *v1alpha1.SubnetPoolClaim) metav1.Object { return o }),
		contents:   map[types.NamespacedName]*contents{},
		allocated:  map[types.NamespacedName][]*v1alpha1.Subnet{},
		held:       map[*v1alpha1.SubnetPool]*v1alpha1.Subnet{},
	}
	for p := range inOrder(x.pools) {
		x.in(p.Namespace, p.ParentName()).children.add(p, p.Spec.CIDR)
	}
	for s := range inOrder(x.subnets) {
		if s.Status.Phase == v1alpha1.SubnetFailed {
			continue
		}
		x.in(s.Namespace, s.Spec.PoolRef).subnets.add(s, s.Spec.CIDR)
		if c := x.claimOf(s); c != nil && isAllocated(s) {
			key := named(c.Namespace, c.Name)
			x.allocated[key] = append(x.allocated[key], s)
		}
	}
	for _, in := range x.contents {
		for s, child := range in.backing() {
			if isAllocated(s) && (child.Open() == "" || isSame(s.Status.PoolUID, child.UID)) {
				x.held[child] = s
			}
		}
	}

	return x
}

func named(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func byName[T any](all []T, object func(*T) metav1.Object) map[types.NamespacedName]*T {
	found := make(map[types.NamespacedName]*T, len(all))
	for i := range all {
		o := object(&all[i])
		found[named(o.GetNamespace(), o.GetName())] = &all[i]
	}

	return found
}

// inOrder yields objects by namespace and name, so that the same inventory is
// always described in the same words.
func inOrder[T any](all map[types.NamespacedName]*T) func(yield func(*T) bool) {
	keys := slices.SortedFunc(maps.Keys(all), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})

	return func(yield func(*T) bool) {
		for _, key := range keys {
			if !yield(all[key]) {
				return
			}
		}
	}
}

// in returns the contents of a pool.
func (x *index) in(namespace, name string) *contents {
	key := named(namespace, name)
	if x.contents[key] == nil {
		x.contents[key] = &contents{}
	}

	return x.contents[key]
}

// claimOf returns the claim that has a Subnet, nil if there is none. After a restore
// the UID in the spec is old, and the claim of that name takes the Subnet.
func (x *index) claimOf(s *v1alpha1.Subnet) *v1alpha1.SubnetClaim {
	ref := s.Spec.ClaimRef
	if ref == nil {
		return nil
	}
	c := x.claims[named(s.Namespace, ref.Name)]
	if c != nil && (isSame(cmp.Or(s.Status.ClaimUID, ref.UID), c.UID) || isUnclaimed(s) && adopts(c, s)) {
		return c
	}

	return nil
}

// isUnclaimed is true for a Subnet that was decided on without the claim that it names.
func isUnclaimed(s *v1alpha1.Subnet) bool { return s.Status.UID != "" && s.Status.ClaimUID == "" }

// adopts is true if a claim takes a Subnet of its name that no claim has.
func adopts(c *v1alpha1.SubnetClaim, s *v1alpha1.Subnet) bool {
	if c.Spec.PoolRef != s.Spec.PoolRef || c.Spec.ClusterID != s.Spec.ClusterID {
		return false
	}
	block, err := netip.ParsePrefix(s.Spec.CIDR)
	if c.Spec.BlockSize != nil {
		return err == nil && int(*c.Spec.BlockSize) == block.Bits()
	}

	return same(c.Spec.RequestedCIDR, s.Spec.CIDR)
}

// madeFor returns the name of the SubnetPoolClaim that a claim or a pool was made for, or "". Older
// objects record it in an owner reference.
func madeFor(o metav1.Object) (name string, uid types.UID) {
	if name := v1alpha1.PoolClaimOf(o); name != "" {
		return name, ""
	}
	if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == v1alpha1.SubnetPoolClaimKind {
		return owner.Name, owner.UID
	}

	return "", ""
}

// isSame is true for the UIDs of one object. A manifest has none, and then the
// name decides.
func isSame(a, b types.UID) bool { return a == b || a == "" || b == "" }

// isAllocated is true for a Subnet whose addresses may be used. A status with the UID of another
// Subnet, from a backup, does not count.
func isAllocated(s *v1alpha1.Subnet) bool {
	return s.Status.Phase == v1alpha1.SubnetAllocated && isSame(s.Status.UID, s.UID)
}

// isLost is true for a pool whose range Arbor has rejected.
func isLost(p *v1alpha1.SubnetPool) bool {
	return p.Status.Lost != 0 && p.Status.Lost == p.Generation && p.DeletionTimestamp == nil
}

// around returns the neighbors that the rules for a pool need: the given pools that it overlaps,
// and the ancestors of all of them.
func (x *index) around(p *v1alpha1.SubnetPool, others []*v1alpha1.SubnetPool) ipamrules.PoolNeighbors {
	all := slices.Concat(others, x.ancestors(p))
	for _, o := range others {
		all = append(all, x.ancestors(o)...)
	}
	a, seen := ipamrules.PoolNeighbors{}, map[*v1alpha1.SubnetPool]bool{}
	for _, o := range all {
		if !seen[o] {
			seen[o] = true
			a.Pools = append(a.Pools, *o)
		}
	}

	return a
}

// ancestors are the pools that a pool was taken from, its parent first. Where parents
// form a ring, each pool is there once.
func (x *index) ancestors(p *v1alpha1.SubnetPool) []*v1alpha1.SubnetPool {
	names, _, _ := ipamrules.Ancestors(p.ParentName(), func(name string) (*v1alpha1.SubnetPool, error) {
		return x.pools[named(p.Namespace, name)], nil
	})
	var found []*v1alpha1.SubnetPool
	for _, name := range names {
		if o := x.pools[named(p.Namespace, name)]; o != nil {
			found = append(found, o)
		}
	}

	return found
}
