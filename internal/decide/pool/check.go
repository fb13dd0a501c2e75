package pool

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// Reasons to refuse a pool.
const (
	ReasonNotMasked     = "NotMasked"
	ReasonBlockSize     = "InvalidBlockSize"
	ReasonOutsideParent = "OutsideParent"
	ReasonOverlap       = "Overlap"
	ReasonCycle         = "ParentCycle"
	ReasonInUse         = "InUse"
	ReasonMapped        = "IPv4AsIPv6"
)

// ReasonParentNotFound warns: a parent may come later.
const ReasonParentNotFound = "ParentNotFound"

// Fields that problems are about.
const (
	fieldCIDR   = "spec.cidr"
	fieldParent = "spec.parent"
)

// Around is what a pool stands among.
type Around struct {
	// Pools of its namespace. The pool itself may be among them.
	Pools []v1alpha1.SubnetPool
	// Inside are the Subnets that live in it and must go on to.
	Inside []v1alpha1.Subnet
	// Beside are Subnets of its parent; those that it does not overlap may be
	// left out.
	Beside []v1alpha1.Subnet
}

// Admit judges a change from before to after; before is nil when the pool is
// new. It refuses only what the change makes wrong: what was wrong in the same
// way before passes, with a warning.
func Admit(before, after *v1alpha1.SubnetPool, a Around) verdict.Verdict {
	v := Check(after, a)
	if before == nil || v.Allowed() {
		return v
	}
	stored, narrower := Check(before, a).Problems, shrunk(before, after)
	old := func(p verdict.Problem) bool {
		return slices.ContainsFunc(stored, func(s verdict.Problem) bool {
			// Who takes fewer addresses of what is not his does not make it worse.
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

// shrunk says whether a pool has only addresses that it had before.
func shrunk(before, after *v1alpha1.SubnetPool) bool {
	had, bad := read(before)
	has, worse := read(after)

	return bad == nil && worse == nil && within(had, has)
}

// Check returns all problems and warnings of a pool as it is, however it came
// to be so.
func Check(p *v1alpha1.SubnetPool, a Around) verdict.Verdict {
	prefix, problem := read(p)
	if problem != nil {
		return verdict.Verdict{Problems: []verdict.Problem{*problem}}
	}
	c := &checker{pool: p, prefix: prefix, around: a, verdict: &verdict.Verdict{}}
	c.sizes()
	c.parent()
	c.siblings()
	c.beside()
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
		// The engine refuses it: one range would have two names.
		return prefix, &verdict.Problem{
			Reason: ReasonMapped, Field: fieldCIDR, Value: p.Spec.CIDR,
			Message: fmt.Sprintf("%s is IPv4 written as IPv6", prefix),
			Fix:     fmt.Sprintf("write %s", netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-mappedBits)),
		}
	}

	return prefix, nil
}

// mappedBits is how many bits stand before an IPv4 address written as IPv6.
const mappedBits = 96

// A checker goes through the rules for one pool.
type checker struct {
	pool    *v1alpha1.SubnetPool
	prefix  netip.Prefix
	around  Around
	verdict *verdict.Verdict
}

func (c *checker) refuse(reason, field, value, message, fix string) {
	c.verdict.Problems = append(c.verdict.Problems, verdict.Problem{Reason: reason, Field: field, Value: value, Message: message, Fix: fix})
}

// about names the other object that the last problem is about.
func (c *checker) about(name string) {
	c.verdict.Problems[len(c.verdict.Problems)-1].About = name
}

func (c *checker) warn(reason, field, message string) {
	c.verdict.Warnings = append(c.verdict.Warnings, verdict.Warning{Reason: reason, Field: field, Message: message})
}

// sizes refuses lengths that the family does not have. One that the pool cannot
// serve is only a warning: older definitions filled in 24 for every pool.
func (c *checker) sizes() {
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
		c.warn("", "spec.defaultBlockSize", fmt.Sprintf("a /%d does not fit into %s; the condition Exhausted speaks of all of it instead", *d, c.prefix))
	}
	if longest := c.pool.Spec.MaxBlockSize; longest != nil && int(*longest) < c.prefix.Bits() {
		c.warn("", "spec.maxBlockSize", fmt.Sprintf("no block of at most /%d fits into %s, so every claim will be refused", *longest, c.prefix))
	}
}

func family(p netip.Prefix) string {
	if p.Addr().Is4() {
		return "IPv4"
	}

	return "IPv6"
}

// named returns the pool of a name, nil if there is none.
func (c *checker) named(name string) *v1alpha1.SubnetPool {
	if i := slices.IndexFunc(c.around.Pools, func(p v1alpha1.SubnetPool) bool { return p.Name == name }); i >= 0 {
		return &c.around.Pools[i]
	}

	return nil
}

// parent asks that a pool lies inside of the one that it was taken from, and
// that nobody is taken from himself.
func (c *checker) parent() {
	name := c.pool.ParentName()
	if name == "" {
		return
	}
	if way := c.cycle(name); way != nil {
		c.refuse(ReasonCycle, fieldParent, name,
			fmt.Sprintf("pool %s would be taken from itself: %s", c.pool.Name, strings.Join(way, " -> ")), "name a parent that is not among its own children, or none")

		return
	}
	p := c.named(name)
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

// cycle follows parents from a name, and returns the way if it leads back.
func (c *checker) cycle(from string) []string {
	way := []string{c.pool.Name}
	for name := from; name != ""; {
		way = append(way, name)
		if name == c.pool.Name {
			return way
		}
		p := c.named(name)
		if p == nil || len(way) > len(c.around.Pools)+1 {
			return nil // the end, or a ring of others, which is theirs to mend
		}
		name = p.ParentName()
	}

	return nil
}

// siblings asks that pools with one parent, or none, do not overlap.
func (c *checker) siblings() {
	parent := c.pool.ParentName()
	for i := range c.around.Pools {
		o := &c.around.Pools[i]
		if o.Name == c.pool.Name || o.ParentName() != parent {
			continue
		}
		prefix, err := netip.ParsePrefix(o.Spec.CIDR)
		if err != nil || !prefix.Overlaps(c.prefix) {
			continue
		}
		kind, fix := "a root pool of this namespace too", "choose other addresses, or set spec.parent if one is taken from the other"
		if parent != "" {
			kind, fix = "also taken from "+parent, "choose addresses that no other child of "+parent+" has"
		}
		c.refuse(ReasonOverlap, fieldCIDR, c.pool.Spec.CIDR, fmt.Sprintf("%s overlaps %s of pool %s, which is %s", c.prefix, prefix, o.Name, kind), fix)
		c.about(o.Name)
	}
}

// Backs says whether a Subnet of the parent holds the very block that a child
// pool is made of: the one that the pool's SubnetPoolClaim took for it. Any
// other Subnet that a child pool overlaps is in its way.
func Backs(s *v1alpha1.Subnet, child *v1alpha1.SubnetPool) bool {
	owner := metav1.GetControllerOf(child)
	if owner == nil || owner.Kind != v1alpha1.SubnetPoolClaimKind || s.Spec.ClaimRef == nil {
		return false
	}
	// Older claims were given a name that begins with their owner's.
	if claim := s.Spec.ClaimRef.Name; claim != owner.Name && !strings.HasPrefix(claim, owner.Name+"-") {
		return false
	}
	has, err := netip.ParsePrefix(s.Spec.CIDR)
	wants, bad := read(child)

	return err == nil && bad == nil && has.Masked() == wants
}

// beside asks that a child pool takes nothing that a Subnet of the parent has.
func (c *checker) beside() {
	for i := range c.around.Beside {
		s := &c.around.Beside[i]
		prefix, err := netip.ParsePrefix(s.Spec.CIDR)
		if err != nil || s.Status.Phase == v1alpha1.SubnetFailed || !prefix.Overlaps(c.prefix) || Backs(s, c.pool) {
			continue
		}
		c.refuse(ReasonOverlap, fieldCIDR, c.pool.Spec.CIDR,
			fmt.Sprintf("%s overlaps %s, which Subnet %s has of the parent %s", c.prefix, prefix, s.Name, c.pool.ParentName()),
			"choose addresses that are free there; a SubnetPoolClaim finds some")
		c.about("Subnet " + s.Name)
	}
}

// inside asks that what lives in a pool lies in it.
func (c *checker) inside() {
	var out []string
	held := map[string]bool{} // a child pool and the Subnet that holds its block are one
	for i := range c.around.Inside {
		if s := &c.around.Inside[i]; s.Status.Phase != v1alpha1.SubnetFailed && c.leavesOut(s.Spec.CIDR) {
			out = append(out, fmt.Sprintf("%s of Subnet %s", s.Spec.CIDR, s.Name))
			held[s.Spec.CIDR] = true
		}
	}
	for i := range c.around.Pools {
		if p := &c.around.Pools[i]; p.Name != c.pool.Name && p.ParentName() == c.pool.Name && !held[p.Spec.CIDR] && c.leavesOut(p.Spec.CIDR) {
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

// leavesOut says whether a block is not in the pool. What is no prefix is
// nowhere.
func (c *checker) leavesOut(block string) bool {
	prefix, err := netip.ParsePrefix(block)

	return err == nil && !within(c.prefix, prefix)
}

func within(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}
