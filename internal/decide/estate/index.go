package estate

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/pool"
)

// An index finds the objects of an estate by name, and what belongs together.
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
}

// contents are what was taken from a pool, by name. What Failed, and what is no
// prefix, takes nothing.
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

// own are the Subnets of a pool without those that hold the block of a child
// pool: whoever overlaps one of these overlaps the child, and that is said.
func (c *contents) own() blocks[v1alpha1.Subnet] {
	children := map[netip.Prefix][]*v1alpha1.SubnetPool{}
	for i, p := range c.children.prefixes {
		children[p] = append(children[p], c.children.of[i])
	}
	var own blocks[v1alpha1.Subnet]
	for i, s := range c.subnets.of {
		block := c.subnets.prefixes[i]
		if !slices.ContainsFunc(children[block], func(p *v1alpha1.SubnetPool) bool { return pool.Backs(s, p) }) {
			own.of, own.prefixes = append(own.of, s), append(own.prefixes, block)
		}
	}

	return own
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

func newIndex(e Estate) *index {
	x := &index{
		pools:      byName(e.Pools, func(o *v1alpha1.SubnetPool) metav1.Object { return o }),
		subnets:    byName(e.Subnets, func(o *v1alpha1.Subnet) metav1.Object { return o }),
		claims:     byName(e.Claims, func(o *v1alpha1.SubnetClaim) metav1.Object { return o }),
		poolClaims: byName(e.PoolClaims, func(o *v1alpha1.SubnetPoolClaim) metav1.Object { return o }),
		contents:   map[types.NamespacedName]*contents{},
		allocated:  map[types.NamespacedName][]*v1alpha1.Subnet{},
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

// inOrder yields objects by namespace and name, so that the same estate is
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

// claimOf returns the claim that a Subnet was taken for, if that is still there.
func (x *index) claimOf(s *v1alpha1.Subnet) *v1alpha1.SubnetClaim {
	if ref := s.Spec.ClaimRef; ref != nil {
		if c := x.claims[named(s.Namespace, ref.Name)]; c != nil && isSame(ref.UID, c.UID) {
			return c
		}
	}

	return nil
}

// isSame is true for the UIDs of one object. A manifest has none, and then the
// name decides.
func isSame(a, b types.UID) bool { return a == b || a == "" || b == "" }

func isAllocated(s *v1alpha1.Subnet) bool { return s.Status.Phase == v1alpha1.SubnetAllocated }

// around is what the rules for a pool need to know: those that it was taken
// from, and siblings that it overlaps. Who overlaps whom is given.
func (x *index) around(p *v1alpha1.SubnetPool, siblings []v1alpha1.SubnetPool) pool.Around {
	a := pool.Around{Pools: siblings}
	seen := map[string]bool{}
	for name := p.ParentName(); name != "" && !seen[name]; {
		seen[name] = true
		o := x.pools[named(p.Namespace, name)]
		if o == nil {
			break
		}
		a.Pools = append(a.Pools, *o)
		name = o.ParentName()
	}

	return a
}

// siblings returns, by name, the pools of the same parent that a pool overlaps.
func (x *index) siblings() map[types.NamespacedName][]v1alpha1.SubnetPool {
	found := map[types.NamespacedName][]v1alpha1.SubnetPool{}
	for _, in := range x.contents {
		for i, others := range touching(in.children.prefixes) {
			key := named(in.children.of[i].Namespace, in.children.of[i].Name)
			for _, o := range others {
				found[key] = append(found[key], *in.children.of[o])
			}
		}
	}

	return found
}
