package audit_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/decide/ipam/audit"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// random is a prefix of a small range of either family, so that many overlap.
func random(r *rand.Rand) string {
	address, bits := netip.AddrFrom4([4]byte{10, 0, byte(r.UintN(4)), byte(r.UintN(256))}), 22+r.IntN(11)
	if r.IntN(4) == 0 {
		address, bits = netip.AddrFrom16([16]byte{0: 0xfd, 14: byte(r.UintN(4)), 15: byte(r.UintN(256))}), 118+r.IntN(11)
	}
	p, err := address.Prefix(bits)
	if err != nil {
		panic(err)
	}
	if r.IntN(20) == 0 {
		return fmt.Sprintf("%s/%d", address, bits) // not masked
	}

	return p.String()
}

// wild is an estate without sense: pools with parents and without, Subnets of
// some of them and of none.
func wild(r *rand.Rand) audit.Inventory {
	var e audit.Inventory
	for i := range r.IntN(8) {
		p := v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Namespace: "net", Name: fmt.Sprintf("p%d", i)}, Spec: v1alpha1.SubnetPoolSpec{CIDR: random(r)}}
		if r.IntN(2) == 0 {
			p.Spec.Parent = fmt.Sprintf("p%d", (i+1+r.IntN(8))%9) // not itself
		}
		if r.IntN(3) == 0 {
			p.OwnerReferences = ownedBy(p.Name)
		}
		e.Pools = append(e.Pools, p)
	}
	phases := []v1alpha1.SubnetPhase{v1alpha1.SubnetAllocated, v1alpha1.SubnetAllocated, v1alpha1.SubnetPending, v1alpha1.SubnetFailed}
	for i := range r.IntN(40) {
		s := subnetOf(fmt.Sprintf("p%d", r.IntN(4)), fmt.Sprintf("s%d", i), random(r), phases[r.IntN(4)])
		if r.IntN(2) == 0 {
			s.Spec.ClaimRef = &v1alpha1.ClaimReference{Name: fmt.Sprintf("p%d", r.IntN(8))}
		}
		e.Subnets = append(e.Subnets, s)
	}

	return e
}

// about returns the names of those of a kind of whom something is said.
func about(all []audit.Finding, kind string, reasons ...string) []string {
	found := map[string]bool{}
	for _, f := range all {
		if f.Object.Kind == kind && slices.Contains(reasons, f.Reason) {
			found[f.Object.Name] = true
		}
	}

	return slices.Sorted(maps.Keys(found))
}

func masked(s string) netip.Prefix { return netip.MustParsePrefix(s).Masked() }

// allWithAll finds the Subnets that lie in another Allocated one of their pool,
// each with the smallest, and those that overlap a child of it. Those that hold
// the block of a child do not count.
func allWithAll(e audit.Inventory) (nested map[string]string, delegated []string) {
	nested = map[string]string{}
	before := func(o, s *v1alpha1.Subnet) bool { // of equal ones, by name
		a, b := masked(o.Spec.CIDR), masked(s.Spec.CIDR)

		return a.Bits() < b.Bits() || a == b && o.Name < s.Name
	}
	for i := range e.Subnets {
		s, best := &e.Subnets[i], -1
		if s.Status.Phase != v1alpha1.SubnetAllocated || backs(e, s) {
			continue
		}
		for j := range e.Subnets {
			o := &e.Subnets[j]
			if o.Status.Phase == v1alpha1.SubnetAllocated && o.Spec.PoolRef == s.Spec.PoolRef && i != j && !backs(e, o) &&
				masked(o.Spec.CIDR).Overlaps(masked(s.Spec.CIDR)) && before(o, s) && (best < 0 || before(&e.Subnets[best], o)) {
				best = j
			}
		}
		if best >= 0 {
			nested[s.Name] = e.Subnets[best].Name
		}
		for j := range e.Pools {
			if c := &e.Pools[j]; c.ParentName() == s.Spec.PoolRef && masked(c.Spec.CIDR).Overlaps(masked(s.Spec.CIDR)) {
				delegated = append(delegated, s.Name)

				break
			}
		}
	}
	slices.Sort(delegated)

	return nested, delegated
}

// backs is true for a Subnet that holds the block of a child pool.
func backs(e audit.Inventory, s *v1alpha1.Subnet) bool {
	return slices.ContainsFunc(e.Pools, func(c v1alpha1.SubnetPool) bool { return c.ParentName() == s.Spec.PoolRef && ipamrules.Backs(s, &c) })
}

// TestTwin compares with what compares all with all.
func TestTwin(t *testing.T) {
	for seed := range uint64(300) {
		e := wild(rand.New(rand.NewPCG(seed, 7)))
		found := audit.Inspect(e)
		nested, delegated := allWithAll(e)
		got := map[string]string{}
		for _, f := range found {
			if f.Object.Kind == v1alpha1.SubnetKind && f.Reason == audit.ReasonOverlap {
				var one, two, name string
				if _, err := fmt.Sscanf(f.Message, "%s overlaps %s of Subnet %s and both", &one, &two, &name); err != nil {
					t.Fatal(err)
				}
				got[f.Object.Name] = name[:len(name)-1]
			}
		}
		if diff := cmp.Diff(nested, got); diff != "" {
			t.Fatalf("seed %d: Subnets that lie in others (-want +got):\n%s", seed, diff)
		}
		if diff := cmp.Diff(delegated, about(found, v1alpha1.SubnetKind, audit.ReasonDelegated)); diff != "" {
			t.Fatalf("seed %d: Subnets in child pools (-want +got):\n%s", seed, diff)
		}
		foreseen(t, seed, e)
	}
}

// foreseen compares what is said of whom with the rules, each asked about
// everything that there is.
func foreseen(t *testing.T, seed uint64, e audit.Inventory) {
	t.Helper()
	var pools, subnets []string
	for i := range e.Pools {
		p := &e.Pools[i]
		v := ipamrules.CheckPool(p, ipamrules.PoolNeighbors{Pools: e.Pools})
		// A child pool outside of its parent is a problem of the child.
		v.Problems = slices.DeleteFunc(v.Problems, func(p verdict.Problem) bool { return p.Reason == ipamrules.ReasonInUse })
		if more(v, ipamrules.CheckPool(p, ipamrules.PoolNeighbors{})) || shares(e, p) {
			pools = append(pools, p.Name)
		}
	}
	for i := range e.Subnets {
		s := &e.Subnets[i]
		var a ipamrules.SubnetNeighbors
		if j := slices.IndexFunc(e.Pools, func(p v1alpha1.SubnetPool) bool { return p.Name == s.Spec.PoolRef }); j >= 0 {
			a.Pool = &e.Pools[j]
		}
		for _, o := range e.Subnets {
			if o.Spec.PoolRef == s.Spec.PoolRef && !backs(e, s) && !backs(e, &o) {
				a.Others = append(a.Others, o)
			}
		}
		for _, p := range e.Pools {
			if p.ParentName() == s.Spec.PoolRef && !backs(e, s) {
				a.Children = append(a.Children, p)
			}
		}
		if s.Status.Phase != v1alpha1.SubnetFailed && more(ipamrules.CheckSubnet(s, a), ipamrules.CheckSubnet(s, ipamrules.SubnetNeighbors{})) {
			subnets = append(subnets, s.Name)
		}
	}
	slices.Sort(subnets)
	var names [2][]string
	for _, f := range audit.Preview(e) {
		at := slices.Index([]string{v1alpha1.SubnetPoolKind, v1alpha1.SubnetKind}, f.Object.Kind)
		if f.Severity == audit.SeverityError && !slices.Contains(names[at], f.Object.Name) {
			names[at] = append(names[at], f.Object.Name)
		}
	}
	if diff := cmp.Diff([2][]string{pools, subnets}, names); diff != "" {
		t.Fatalf("seed %d: refused pools and Subnets (-want +got):\n%s", seed, diff)
	}
}

// shares says whether a pool overlaps one that is neither above nor below it.
func shares(e audit.Inventory, p *v1alpha1.SubnetPool) bool {
	return slices.ContainsFunc(e.Pools, func(o v1alpha1.SubnetPool) bool {
		return o.Name != p.Name && !slices.Contains(ancestors(e, p), o.Name) && !slices.Contains(ancestors(e, &o), p.Name) &&
			masked(o.Spec.CIDR).Overlaps(masked(p.Spec.CIDR))
	})
}

// more says whether a verdict has problems that another has not.
func more(v, alone verdict.Verdict) bool {
	return slices.ContainsFunc(v.Problems, func(p verdict.Problem) bool { return !slices.Contains(alone.Problems, p) })
}

func ancestors(e audit.Inventory, p *v1alpha1.SubnetPool) []string {
	var names []string
	for name := p.ParentName(); name != "" && !slices.Contains(names, name); {
		names = append(names, name)
		i := slices.IndexFunc(e.Pools, func(o v1alpha1.SubnetPool) bool { return o.Name == name })
		if i < 0 {
			break
		}
		name = e.Pools[i].ParentName()
	}

	return names
}

// large has as many Subnets as a /8 has /24s, in pools of a /16 each.
func large() audit.Inventory {
	var e audit.Inventory
	for i := range 256 {
		subnets := map[string]string{}
		p := v1alpha1.SubnetPool{ObjectMeta: meta(fmt.Sprintf("p%d", i)), Spec: v1alpha1.SubnetPoolSpec{CIDR: fmt.Sprintf("10.%d.0.0/16", i), Parent: "root"}}
		for j := range 256 {
			s := subnetOf(p.Name, fmt.Sprintf("s-%d-%d", i, j), fmt.Sprintf("10.%d.%d.0/24", i, j), v1alpha1.SubnetAllocated)
			e.Subnets = append(e.Subnets, s)
			subnets[s.Spec.CIDR] = s.Spec.ClusterID
		}
		count(&p, subnets)
		e.Pools = append(e.Pools, p)
		e.Subnets = append(e.Subnets, backing(p.Name, p.Spec.CIDR))
	}
	blocks := make([]string, len(e.Pools))
	for i := range e.Pools {
		blocks[i] = e.Pools[i].Spec.CIDR
	}
	e.Pools = append(e.Pools, counted("root", "10.0.0.0/8", "", nil, blocks...))

	return e
}

// TestLarge is about shape, not speed: all with all would take minutes.
func TestLarge(t *testing.T) {
	e := large()
	began := time.Now()
	if found := audit.Inspect(e); len(found) > 0 {
		t.Errorf("%d findings, such as %+v", len(found), found[0])
	}
	if found := audit.Preview(e); len(found) > 0 {
		t.Errorf("%d findings, such as %+v", len(found), found[0])
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("%d Subnets took %s", len(e.Subnets), took)
	}

	// Everybody in one pool, and all with one block.
	for i := range e.Subnets {
		e.Subnets[i].Spec.PoolRef, e.Subnets[i].Spec.CIDR = "root", "10.0.0.0/24"
	}
	began = time.Now()
	if found := about(audit.Inspect(e), v1alpha1.SubnetKind, audit.ReasonOverlap); len(found) != len(e.Subnets)-1 {
		t.Errorf("%d of %d Subnets overlap", len(found), len(e.Subnets))
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("%d Subnets of one block took %s", len(e.Subnets), took)
	}
}

func BenchmarkInspect65536(b *testing.B) {
	e := large()
	for b.Loop() {
		audit.Inspect(e)
	}
}
