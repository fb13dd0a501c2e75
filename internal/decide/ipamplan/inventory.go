package ipamplan

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/ledger"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/decide/ipam/poolblocks"
)

// An Inventory is what there is in pools, counted as the controllers count.
type Inventory struct {
	// Namespace is the one that was read, "" for all.
	Namespace string
	// Place describes where the pools were read from.
	Place string
	// Pools by namespace and name.
	Pools []*Pool
	byKey map[types.NamespacedName]*Pool
}

// A Pool is one pool and what there is in it.
type Pool struct {
	*v1alpha1.SubnetPool

	ledger.Figures // All is nil for a pool with an invalid CIDR

	// ledger is what the figures come from. Plans are tried on it.
	ledger *ledger.Pool
	// subnets that were taken from the pool, by name; those that failed are
	// apart, because they count as absent.
	subnets, Failed []*v1alpha1.Subnet
	// childPools were taken from the pool, by name.
	childPools []*v1alpha1.SubnetPool
	// Queue are the claims that wait for a block, the oldest first.
	Queue []*v1alpha1.SubnetClaim
	// Holders say who has a block.
	Holders map[netip.Prefix]Holder
	// twins is how many of the Subnets back a child pool, and count as that.
	twins int
	// Misfits are what is not counted.
	Misfits []Misfit
	// Behind is true if the status tells something else than the objects.
	Behind bool
}

// A Holder is a Subnet or a child pool. A child pool that a SubnetPoolClaim
// asked for is both: the Subnet keeps its block for it.
type Holder struct {
	Subnet *v1alpha1.Subnet
	Child  *v1alpha1.SubnetPool
}

func (h Holder) String() string {
	if h.Child != nil {
		return "child pool " + h.Child.Name
	}

	return "Subnet " + h.Subnet.Name
}

// A Misfit overlaps another block, lies outside of its pool, or is no block.
type Misfit struct {
	Holder

	Why string
}

// KeyOf returns the namespace and the name of an object.
func KeyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// NewInventory counts what the objects say. Manifests that people write have no
// status, so offline that alone does not make them behind.
func NewInventory(a *Objects, offline bool) *Inventory {
	inv := &Inventory{byKey: make(map[types.NamespacedName]*Pool, len(a.Pools))}

	for _, p := range Sorted(a.Pools) {
		s := &Pool{SubnetPool: p, ledger: newLedger(p)}
		inv.Pools, inv.byKey[KeyOf(p)] = append(inv.Pools, s), s
	}

	inv.takePools()
	inv.takeSubnets(Sorted(a.Subnets))

	for _, s := range inv.Pools {
		if s.Figures = s.ledger.Figures(ipamrules.MaxListedBlocks); s.All != nil {
			s.judge()
			s.Behind = s.disagrees(offline)
		}
	}

	inv.takeClaims(a)

	return inv
}

// parent is the pool that a pool was taken from, nil for a root and for one
// that is not there.
func (inv *Inventory) parent(p *v1alpha1.SubnetPool) *Pool {
	return inv.byKey[types.NamespacedName{Namespace: p.Namespace, Name: p.ParentName()}]
}

// newLedger returns the ledger of a pool without blocks. It is open, whether the pool
// is or not: a plan is about the pool as it is written.
func newLedger(p *v1alpha1.SubnetPool) *ledger.Pool {
	l := ledger.New()
	size, _ := poolblocks.RangeOf(p)
	l.SetRange(size)
	l.SetOpen(true)

	return l
}

func (inv *Inventory) takePools() {
	for _, s := range inv.Pools {
		parent := inv.parent(s.SubnetPool)
		if block, ok := poolblocks.DelegationOf(s.SubnetPool); ok && parent != nil {
			parent.childPools = append(parent.childPools, s.SubnetPool)
			parent.ledger.Put(block)
		}
	}
}

// takeSubnets puts those first that were found good: of two that overlap, the
// other is the misfit.
func (inv *Inventory) takeSubnets(all []*v1alpha1.Subnet) {
	slices.SortStableFunc(all, func(a, b *v1alpha1.Subnet) int { return cmp.Compare(rank(a), rank(b)) })

	for _, n := range all {
		s := inv.byKey[types.NamespacedName{Namespace: n.Namespace, Name: n.Spec.PoolRef}]
		if s == nil {
			continue
		}

		if n.Status.Phase == v1alpha1.SubnetFailed {
			s.Failed = append(s.Failed, n)

			continue
		}

		s.subnets = append(s.subnets, n)

		if b, ok := poolblocks.BlockOf(n); ok {
			s.ledger.Put(b)
		}
	}
}

func rank(n *v1alpha1.Subnet) int {
	if n.Status.Phase == v1alpha1.SubnetAllocated {
		return 0
	}

	return 1
}

// judge finds out which object has which block, and which ones do not fit.
func (s *Pool) judge() {
	s.Holders = make(map[netip.Prefix]Holder, s.All.Len())
	unfit := make(map[string]bool, len(s.Waiting))

	for _, b := range s.Waiting {
		unfit[b.ID] = true
	}

	var rest []Holder

	children := make(map[string]*v1alpha1.SubnetPool, len(s.childPools))

	for _, c := range s.childPools {
		b, _ := poolblocks.DelegationOf(c)
		children[b.ID] = c

		if unfit[b.ID] {
			rest = append(rest, Holder{Child: c})
		} else {
			s.Holders[b.Prefix] = Holder{Child: c}
		}
	}

	for _, n := range s.subnets {
		h := Holder{Subnet: n}

		b, ok := poolblocks.BlockOf(n)
		if !ok || unfit[b.ID] {
			rest = append(rest, h)

			continue
		}

		if h.Child = children[b.Backs]; h.Child == nil {
			h.Child = s.Holders[b.Prefix].Child
		}

		if h.Child != nil || b.Delegated {
			s.twins++
		}

		s.Holders[b.Prefix] = h
	}

	for _, h := range rest {
		s.Misfits = append(s.Misfits, Misfit{h, s.why(h.block())})
	}
}

// CIDR is the block as it is written.
func (h Holder) CIDR() string {
	if h.Child != nil {
		return h.Child.Spec.CIDR
	}

	return h.Subnet.Spec.CIDR
}

// block is not valid if the CIDR is not.
func (h Holder) block() netip.Prefix {
	prefix, err := netip.ParsePrefix(h.CIDR())
	if err != nil {
		return netip.Prefix{}
	}

	return prefix.Masked()
}

// why says what keeps a block from being counted.
func (s *Pool) why(block netip.Prefix) string {
	own := s.All.Prefix()

	switch {
	case !block.IsValid():
		return "it is not a CIDR"
	case own.Addr().BitLen() != block.Addr().BitLen():
		return fmt.Sprintf("the pool is of the other family, %s", own)
	case !own.Overlaps(block):
		return fmt.Sprintf("it is outside of the pool, %s", own)
	case block.Bits() < own.Bits():
		return fmt.Sprintf("it is larger than the pool, %s", own)
	}

	with, _ := s.All.Overlaps(block)

	return fmt.Sprintf("it overlaps %s of %s", with, s.Holders[with])
}

// takeClaims hands every claim that has no block to its pool, in the order in
// which the allocator serves them. A SubnetPoolClaim asks by a SubnetClaim of
// its own name; as long as there is none it waits itself.
func (inv *Inventory) takeClaims(a *Objects) {
	all := maps.Clone(a.Claims)

	for key, c := range a.PoolClaims {
		if _, asked := a.Claims[key]; !asked {
			all[key] = &v1alpha1.SubnetClaim{
				ObjectMeta: c.ObjectMeta,
				Spec:       v1alpha1.SubnetClaimSpec{PoolRef: c.Spec.ParentPoolRef, ClusterID: string(c.UID), BlockSize: &c.Spec.DesiredBlockSize},
				Status:     v1alpha1.SubnetClaimStatus{Phase: c.Status.Phase},
			}
		}
	}

	for _, c := range Sorted(all) {
		if c.UID == "" {
			// A ledger tells claims apart by it, and a manifest has none.
			c.UID = types.UID(c.Name)
		}

		s := inv.byKey[types.NamespacedName{Namespace: c.Namespace, Name: c.Spec.PoolRef}]
		if s != nil && waits(c) && !s.ledger.Serves(string(c.UID)) {
			s.Queue = append(s.Queue, c)
		}
	}

	for _, s := range inv.Pools {
		slices.SortStableFunc(s.Queue, func(a, b *v1alpha1.SubnetClaim) int {
			return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
		})
	}
}

// waits is false for claims that have what they asked for, that are on their
// way out, and that can never be served.
func waits(c *v1alpha1.SubnetClaim) bool {
	return c.DeletionTimestamp == nil && c.Status.Phase != v1alpha1.ClaimBound && c.Status.Phase != v1alpha1.ClaimError
}
