package ipam

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// Fields that problems are about.
const (
	fieldCIDR   = "spec.cidr"
	fieldParent = "spec.parent"
)

// PoolNeighbors are the objects that a pool is checked against.
type PoolNeighbors struct {
	// Pools of its namespace: at least those whose spec.cidr or status.cidr
	// overlaps what it has or asks for, and the ancestors of all of these, and its
	// own, as far as they exist. A parent that is not among them does not exist.
	// The pool itself may be among them.
	Pools []v1alpha1.SubnetPool
	// Inside are the Subnets of the pool. They must stay inside of it.
	Inside []v1alpha1.Subnet
	// ParentSubnets are Subnets of its parent. Those that it does not overlap may be left out,
	// except for the one that backs it.
	ParentSubnets []v1alpha1.Subnet
}

// AdmitPool checks a change from before to after; before is nil when the pool is new. It rejects
// only problems that the change introduces: a problem that existed in the same way before is a
// warning.
func AdmitPool(before, after *v1alpha1.SubnetPool, a PoolNeighbors) verdict.Verdict {
	v := a.tolerateMissing(after, CheckPool(after, a))
	if before == nil || v.Allowed() {
		return v
	}
	stored, narrower := CheckPool(before, a).Problems, shrunk(before, after)
	old := func(p verdict.Problem) bool {
		return slices.ContainsFunc(stored, func(s verdict.Problem) bool {
			// A pool that now takes fewer addresses of another object does not make the problem
			// worse.
			return s == p || narrower && p.About != "" && s.Reason == p.Reason && s.About == p.About
		})
	}
	kept := slices.Collect(func(yield func(verdict.Problem) bool) {
		for _, p := range v.Problems {
			if old(p) && !yield(p) {
				return
			}
		}
	})
	v.Problems = slices.DeleteFunc(v.Problems, old)
	if len(kept) > 0 {
		v.Warnings = append(v.Warnings, verdict.Stored("pool breaks", kept))
	}

	return v
}

// tolerateMissing turns overlaps with a pool whose parent does not exist into warnings. A
// backup can bring the parent back later, and without it the pool is not opened.
func (a PoolNeighbors) tolerateMissing(p *v1alpha1.SubnetPool, v verdict.Verdict) verdict.Verdict {
	exists := func(name string) bool {
		return name == p.Name || slices.ContainsFunc(a.Pools, func(o v1alpha1.SubnetPool) bool { return o.Name == name })
	}
	missing := func(o *v1alpha1.SubnetPool) bool { return o.ParentName() != "" && !exists(o.ParentName()) }
	tolerated := func(problem verdict.Problem) bool {
		return problem.Reason == ReasonOverlap && (missing(p) || slices.ContainsFunc(a.Pools, func(o v1alpha1.SubnetPool) bool { return o.Name == problem.About && missing(&o) }))
	}
	kept := v.Problems[:0:0]
	for _, problem := range v.Problems {
		if !tolerated(problem) {
			kept = append(kept, problem)

			continue
		}
		v.Warnings = append(v.Warnings, verdict.Warning{
			Reason: problem.Reason, Field: problem.Field, Message: problem.Message + "; the one without its parent is not opened before that exists",
		})
	}
	v.Problems = kept

	return v
}

// shrunk reports whether a pool has only addresses that it had before.
func shrunk(before, after *v1alpha1.SubnetPool) bool {
	had, bad := read(before)
	has, worse := read(after)

	return bad == nil && worse == nil && within(had, has)
}

// CheckPool returns all problems and warnings of a pool as it is, however it came
// to be so.
func CheckPool(p *v1alpha1.SubnetPool, a PoolNeighbors) verdict.Verdict {
	prefix, problem := read(p)
	if problem != nil {
		return verdict.Verdict{Problems: []verdict.Problem{*problem}}
	}
	c := &poolChecker{pool: p, prefix: prefix, around: a, byName: map[string]*v1alpha1.SubnetPool{}, verdict: &verdict.Verdict{}}
	for i := range a.Pools {
		c.byName[a.Pools[i].Name] = &a.Pools[i]
	}
	c.sizes()
	c.parent()
	c.siblings()
	c.parentSubnets()
	c.inside()

	return *c.verdict
}

// read returns a pool's prefix, or what is wrong with it.
func read(p *v1alpha1.SubnetPool) (netip.Prefix, *verdict.Problem) {
	prefix, err := netip.ParsePrefix(p.Spec.CIDR)
	if err != nil {
		return prefix, &verdict.Problem{
			Reason: ReasonInvalidCIDR, Field: fieldCIDR, Value: p.Spec.CIDR,
			Message: fmt.Sprintf("%q is not a CIDR", p.Spec.CIDR), Fix: "write an address and a length, such as 10.0.0.0/16 or fd00::/48",
		}
	}
	if prefix != prefix.Masked() {
		return prefix, &verdict.Problem{
			Reason: ReasonNotMasked, Field: fieldCIDR, Value: p.Spec.CIDR,
			Message: fmt.Sprintf("%s has bits set behind its length", prefix), Fix: fmt.Sprintf("write %s", prefix.Masked()),
		}
	}
	if prefix.Addr().Is4In6() && prefix.Bits() >= mappedBits {
		// The engine does not accept it, because one range would have two names.
		return prefix, &verdict.Problem{
			Reason: ReasonMapped, Field: fieldCIDR, Value: p.Spec.CIDR,
			Message: fmt.Sprintf("%s is IPv4 written as IPv6", prefix),
			Fix:     fmt.Sprintf("write %s", netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-mappedBits)),
		}
	}

	return prefix, nil
}

// mappedBits is how many bits precede an IPv4 address written as IPv6.
const mappedBits = 96

// A poolChecker checks the rules for one pool.
type poolChecker struct {
	pool    *v1alpha1.SubnetPool
	prefix  netip.Prefix
	around  PoolNeighbors
	byName  map[string]*v1alpha1.SubnetPool // around.Pools
	verdict *verdict.Verdict
}

func (c *poolChecker) refuse(reason, field, value, message, fix string) {
	c.verdict.Problems = append(c.verdict.Problems, verdict.Problem{Reason: reason, Field: field, Value: value, Message: message, Fix: fix})
}

// about sets the name of the other object that the last problem is about.
func (c *poolChecker) about(name string) {
	c.verdict.Problems[len(c.verdict.Problems)-1].About = name
}

func (c *poolChecker) warn(reason, field, message string) {
	c.verdict.Warnings = append(c.verdict.Warnings, verdict.Warning{Reason: reason, Field: field, Message: message})
}

// sizes rejects lengths that the family does not have. One that the pool cannot serve is only a
// warning: older CRDs set 24 as the default for every pool.
func (c *poolChecker) sizes() {
	most := c.prefix.Addr().BitLen()
	for _, size := range []struct {
		field string
		value *int32
	}{
		{"spec.defaultBlockSize", c.pool.Spec.DefaultBlockSize},
		{"spec.minBlockSize", c.pool.Spec.MinBlockSize},
		{"spec.maxBlockSize", c.pool.Spec.MaxBlockSize},
	} {
		if size.value != nil && int(*size.value) > most {
			c.refuse(ReasonBlockSize, size.field, strconv.Itoa(int(*size.value)),
				fmt.Sprintf("%s has no prefix of length %d", family(c.prefix), *size.value), fmt.Sprintf("choose a length of at most %d", most))
		}
	}
	if d := c.pool.Spec.DefaultBlockSize; d != nil && int(*d) < c.prefix.Bits() {
		c.warn("", "spec.defaultBlockSize", fmt.Sprintf("a /%d does not fit into %s; the condition Exhausted is about the whole pool instead", *d, c.prefix))
	}
	if longest := c.pool.Spec.MaxBlockSize; longest != nil && int(*longest) < c.prefix.Bits() {
		c.warn("", "spec.maxBlockSize", fmt.Sprintf("no block of at most /%d fits into %s, so every claim will fail", *longest, c.prefix))
	}
}

func family(p netip.Prefix) string {
	if p.Addr().Is4() {
		return "IPv4"
	}

	return "IPv6"
}

// parent checks that a pool is inside of its parent, and not its own ancestor.
func (c *poolChecker) parent() {
	name := c.pool.ParentName()
	if name == "" {
		return
	}
	if way := c.cycle(); way != nil {
		c.refuse(ReasonCycle, fieldParent, name,
			fmt.Sprintf("pool %s would be taken from itself: %s", c.pool.Name, strings.Join(way, " -> ")), "name a parent that is not among its own children, or none")

		return
	}
	p := c.byName[name]
	if p == nil {
		c.warn(ReasonParentNotFound, fieldParent, fmt.Sprintf("there is no pool %s in this namespace yet", name))

		return
	}
	if prefix, bad := read(p); bad == nil && !within(prefix, c.prefix) {
		c.refuse(ReasonOutsideParent, fieldCIDR, c.pool.Spec.CIDR,
			fmt.Sprintf("%s is not inside of %s, which its parent %s has", c.prefix, prefix, name), fmt.Sprintf("choose a part of %s, or another parent", prefix))
		c.about(name)
	}
}

// cycle returns the path of parents from the pool back to itself, or nil. A cycle that the pool is
// not in is not its problem.
func (c *poolChecker) cycle() []string {
	path, back, _ := Ancestors(c.pool.Name, func(name string) (*v1alpha1.SubnetPool, error) {
		if name == c.pool.Name {
			return c.pool, nil
		}

		return c.byName[name], nil
	})
	if back != 0 {
		return nil
	}

	return append(path, c.pool.Name)
}

// parentOf returns the name of a pool's parent if that exists. A pool whose parent
// does not exist counts as a root, or it would be compared with no pool at all.
func (c *poolChecker) parentOf(p *v1alpha1.SubnetPool) string {
	if name := p.ParentName(); name == c.pool.Name || c.byName[name] != nil {
		return name
	}

	return ""
}

// siblings checks that pools with one parent, or without any, do not overlap.
func (c *poolChecker) siblings() {
	parent := c.parentOf(c.pool)
	for i := range c.around.Pools {
		o := &c.around.Pools[i]
		if o.Name == c.pool.Name || c.parentOf(o) != parent {
			continue
		}
		prefix, overlaps := c.overlaps(o)
		if !overlaps {
			continue
		}
		kind, fix := "a root pool of this namespace too", "choose other addresses, or set spec.parent if one is taken from the other"
		switch {
		case parent != "":
			kind, fix = "also taken from "+parent, "choose addresses that no other child of "+parent+" has"
		case c.pool.ParentName() != "":
			kind, fix = "a root pool of this namespace", "create the parent "+c.pool.ParentName()+" first, or choose other addresses"
		case o.ParentName() != "":
			kind = "taken from " + o.ParentName() + ", a pool that does not exist"
		}
		c.refuse(ReasonOverlap, fieldCIDR, c.pool.Spec.CIDR, fmt.Sprintf("%s overlaps %s of pool %s, which is %s", c.prefix, prefix, o.Name, kind), fix)
		c.about(o.Name)
	}
}

// overlaps returns the range of another pool that overlaps: the one that it requests, unless that
// was rejected, or the one that it has.
func (c *poolChecker) overlaps(o *v1alpha1.SubnetPool) (netip.Prefix, bool) {
	ranges := []string{o.Spec.CIDR, o.Open()}
	if IsLost(o) {
		ranges = ranges[1:]
	}
	for _, cidr := range ranges {
		if prefix, err := netip.ParsePrefix(cidr); err == nil && prefix.Overlaps(c.prefix) {
			return prefix, true
		}
	}

	return netip.Prefix{}, false
}

// parentSubnets checks that a child pool does not overlap a Subnet of the parent.
func (c *poolChecker) parentSubnets() {
	for i := range c.around.ParentSubnets {
		s := &c.around.ParentSubnets[i]
		prefix, err := netip.ParsePrefix(s.Spec.CIDR)
		if err != nil || s.Status.Phase == v1alpha1.SubnetFailed {
			continue
		}
		if Backs(s, c.pool) {
			c.block(s, prefix)

			continue
		}
		if !prefix.Overlaps(c.prefix) {
			continue
		}
		c.refuse(ReasonOverlap, fieldCIDR, c.pool.Spec.CIDR,
			fmt.Sprintf("%s overlaps %s, which Subnet %s has of the parent %s", c.prefix, prefix, s.Name, c.pool.ParentName()),
			"choose addresses that are free there; a SubnetPoolClaim finds some")
		c.about("Subnet " + s.Name)
	}
}

// block checks that a child stays inside of the Subnet that backs it, which cannot grow.
func (c *poolChecker) block(s *v1alpha1.Subnet, prefix netip.Prefix) {
	if within(prefix, c.prefix) {
		return
	}
	c.refuse(ReasonOutsideBlock, fieldCIDR, c.pool.Spec.CIDR,
		fmt.Sprintf("%s is not inside of %s, which Subnet %s keeps for this pool in the parent %s", c.prefix, prefix, s.Name, c.pool.ParentName()),
		fmt.Sprintf("choose a part of %s, or create another child pool", prefix))
	c.about("Subnet " + s.Name)
}

// inside checks that the pool contains all its Subnets and child pools.
func (c *poolChecker) inside() {
	var out []string
	var left []*v1alpha1.Subnet
	for i := range c.around.Inside {
		if s := &c.around.Inside[i]; s.Status.Phase != v1alpha1.SubnetFailed && c.leavesOut(s.Spec.CIDR) {
			out = append(out, fmt.Sprintf("%s of Subnet %s", s.Spec.CIDR, s.Name))
			left = append(left, s)
		}
	}
	// A child pool and the Subnet that backs it are one.
	named := func(p *v1alpha1.SubnetPool) bool {
		return slices.ContainsFunc(left, func(s *v1alpha1.Subnet) bool { return Backs(s, p) })
	}
	for i := range c.around.Pools {
		if p := &c.around.Pools[i]; p.Name != c.pool.Name && p.ParentName() == c.pool.Name && c.leavesOut(p.Spec.CIDR) && !named(p) {
			out = append(out, fmt.Sprintf("%s of child pool %s", p.Spec.CIDR, p.Name))
		}
	}
	if len(out) == 0 {
		return
	}
	slices.Sort(out)
	message := fmt.Sprintf("%s leaves out %s, which is in use", c.prefix, out[0])
	if len(out) > 1 {
		message = fmt.Sprintf("%s leaves out %d blocks that are in use, such as %s", c.prefix, len(out), out[0])
	}
	c.refuse(ReasonInUse, fieldCIDR, c.pool.Spec.CIDR, message, "choose a CIDR that contains everything that was taken from the pool, or release that first")
}

// leavesOut reports whether a block is outside of the pool. A text that is not a prefix is never
// outside.
func (c *poolChecker) leavesOut(block string) bool {
	prefix, err := netip.ParsePrefix(block)

	return err == nil && !within(c.prefix, prefix)
}

func within(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}
