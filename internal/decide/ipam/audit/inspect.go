package audit

import (
	"fmt"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// Fixes of more than one finding.
const (
	fixManager = "see whether a manager runs with --controllers=subnets"
	fixSubnet  = "see who uses it; delete the Subnet, and its claim, if nobody does"
	fixClaim   = "delete the claim and make another"
	fixInUse   = "see which addresses are in use, then " + fixClaim
)

// Inspect returns everything that is wrong in an inventory, by namespace, kind and
// name.
func Inspect(e Inventory) []Finding {
	x := &inspector{index: newIndex(e)}
	overlapping := x.overlapping()
	for p := range inOrder(x.pools) {
		x.pool(p, overlapping[p])
	}
	for s := range inOrder(x.subnets) {
		x.subnet(s)
	}
	for key, in := range x.contents {
		if key.Name != "" {
			x.shared(in)
		}
	}
	for c := range inOrder(x.claims) {
		x.claim(c)
	}
	for c := range inOrder(x.poolClaims) {
		x.poolClaim(c)
	}
	x.backed()
	x.owners()

	return x.sorted()
}

// An inspector checks an inventory.
type inspector struct {
	*index
	findings
}

// pool asks that a pool keeps to the rules, that it has the parent and the claim
// that it was made for, that Arbor opens it, and that its status is true.
func (x *inspector) pool(p *v1alpha1.SubnetPool, others []*v1alpha1.SubnetPool) {
	o := Object{v1alpha1.SubnetPoolKind, p.Namespace, p.Name}
	v := ipamrules.CheckPool(p, x.around(p, others))
	v.Problems = append(v.Problems, sharing(p, others, v.Problems)...)
	v.Warnings = slices.DeleteFunc(v.Warnings, func(w verdict.Warning) bool { return w.Reason == ipamrules.ReasonParentNotFound })
	x.verdict(o, v)

	x.parentless(o, p)
	x.owner(o, p, p.Name)
	x.lost(o, p)
	x.closed(o, p, others)
	x.status(o, p)
}

// parentless reports a pool whose parent does not exist.
func (x *inspector) parentless(o Object, p *v1alpha1.SubnetPool) {
	parent := p.ParentName()
	if parent == "" || x.pools[named(p.Namespace, parent)] != nil {
		return
	}
	message := fmt.Sprintf("it is closed and allocates no blocks: it waits for its parent %s, which does not exist", parent)
	fix := fmt.Sprintf("create pool %s with a CIDR that contains %s", parent, p.Spec.CIDR)
	switch {
	case p.Open() != "":
		message = fmt.Sprintf("its parent %s does not exist, so nothing prevents %s from being allocated a second time", parent, p.Spec.CIDR)
		fix = fmt.Sprintf("create pool %s again with a CIDR that contains %s", parent, p.Spec.CIDR)
	case !x.used(p):
		fix += "; if the name is wrong, delete this pool and create it with another spec.parent"
	}
	x.add(SeverityError, o, verdict.Problem{Reason: ipamrules.ReasonParentNotFound, Field: fieldParent, Value: parent, Message: message, Fix: fix})
}

// owner reports an object of a pool, or a pool, whose SubnetPoolClaim is gone.
func (x *inspector) owner(o Object, made metav1.Object, poolName string) {
	name, uid := madeFor(made)
	if name == "" || made.GetDeletionTimestamp() != nil {
		return
	}
	field := fieldOwners
	if v1alpha1.PoolClaimOf(made) == name {
		field = fieldPoolClaim
	}
	if c := x.poolClaims[named(o.Namespace, name)]; c == nil || !isSame(uid, c.UID) {
		x.orphaned(o, poolName, verdict.Problem{
			Reason: ReasonPoolClaimNotFound, Field: field, Value: name,
			Message: fmt.Sprintf("SubnetPoolClaim %s, for which it was made, is gone", name),
			Fix:     fmt.Sprintf("delete this %s, if nobody uses its addresses", o.Kind),
		})
	}
}

// subnet checks that a Subnet was decided on, is inside of its pool and has its claim.
func (x *inspector) subnet(s *v1alpha1.Subnet) {
	if s.Status.Phase == v1alpha1.SubnetFailed || s.DeletionTimestamp != nil {
		return
	}
	o := Object{v1alpha1.SubnetKind, s.Namespace, s.Name}
	x.orphan(o, s)
	p := x.pools[named(s.Namespace, s.Spec.PoolRef)]
	switch {
	case !isAllocated(s):
		x.unjudged(o, s, p)
	case p == nil:
		x.add(SeverityError, o, verdict.Problem{
			Reason: ReasonPoolNotFound, Field: fieldPoolRef, Value: s.Spec.PoolRef,
			Message: fmt.Sprintf("its pool %s does not exist", s.Spec.PoolRef),
			Fix:     fmt.Sprintf("make pool %s again, with a CIDR that contains %s", s.Spec.PoolRef, s.Spec.CIDR),
		})
	default:
		for _, wrong := range ipamrules.CheckSubnet(s, ipamrules.SubnetNeighbors{Pool: p}).Problems {
			wrong.Fix = fixSubnet // its spec cannot be changed any more
			x.add(SeverityError, o, wrong)
		}
	}
}

// unjudged warns of a Subnet that is still Pending. No manager decides on one that was never
// stored.
func (x *inspector) unjudged(o Object, s *v1alpha1.Subnet, p *v1alpha1.SubnetPool) {
	if s.Generation == 0 {
		return
	}
	message, fix := "it was not judged yet, so nobody may use it", fixManager
	if p == nil {
		message, fix = fmt.Sprintf("it waits for its pool %s, which does not exist", s.Spec.PoolRef), "make that pool, or delete the Subnet"
	}
	x.add(SeverityWarning, o, verdict.Problem{Reason: ReasonNotJudged, Field: fieldPhase, Value: string(s.Status.Phase), Message: message, Fix: fix})
}

// orphan asks that the claim is there that a Subnet was taken for.
func (x *inspector) orphan(o Object, s *v1alpha1.Subnet) {
	if s.Spec.ClaimRef == nil || x.claimOf(s) != nil {
		return
	}
	name := s.Spec.ClaimRef.Name
	if isUnclaimed(s) {
		x.add(SeverityWarning, o, verdict.Problem{
			Reason: ReasonUnclaimed, Field: fieldClaimRef, Value: name,
			Message: fmt.Sprintf("no claim has this block, and SubnetClaim %s, for which it was taken, is not here; %s stays taken", name, s.Spec.CIDR),
			Fix:     fmt.Sprintf("create SubnetClaim %s with clusterID %s again; to free the block, delete that claim afterwards", name, s.Spec.ClusterID),
		})

		return
	}
	reason, message := ReasonClaimNotFound, fmt.Sprintf("SubnetClaim %s, for which it was taken, is gone", name)
	if x.claims[named(s.Namespace, name)] != nil {
		reason, message = ReasonClaimReplaced, fmt.Sprintf("SubnetClaim %s, for which it was taken, is gone; the one of that name is another", name)
	}
	x.orphaned(o, s.Spec.PoolRef, verdict.Problem{
		Reason: reason, Field: fieldClaimRef, Value: name, Message: message,
		Fix: fmt.Sprintf("delete the Subnet, if nobody uses %s", s.Spec.CIDR),
	})
}

// orphaned reports an object whose claim is gone. While its pool is being restored this is
// only a warning, because the claim may arrive or take the object back at any moment.
func (x *inspector) orphaned(o Object, poolName string, wrong verdict.Problem) {
	severity := SeverityError
	if p := x.pools[named(o.Namespace, poolName)]; p != nil && ipamrules.IsRestoring(p) {
		severity = SeverityWarning
		wrong.Message = fmt.Sprintf("pool %s is being restored, and no claim %s has taken this %s back yet", p.Name, wrong.Value, o.Kind)
		wrong.Fix = fmt.Sprintf("wait; if everything is restored, run arbor pools restored %s", p.Name)
	}
	x.add(severity, o, wrong)
}

// shared finds Allocated Subnets of one pool that have addresses in common, and
// those that have some which are delegated to a child pool.
func (x *inspector) shared(in *contents) {
	own, backing := in.own()
	taken := own.only(isAllocated)
	nested(taken.prefixes, func(i, outer int) {
		s, other := taken.of[i], taken.of[outer]
		x.add(SeverityError, Object{v1alpha1.SubnetKind, s.Namespace, s.Name}, verdict.Problem{
			Reason: ReasonOverlap, Field: fieldCIDR, Value: s.Spec.CIDR,
			Message: fmt.Sprintf("%s overlaps %s of Subnet %s, and both are Allocated", taken.prefixes[i], taken.prefixes[outer], other.Name),
			Fix:     "see who uses these addresses, and delete the claim of the other",
		})
	})
	delegated := in.children.only(func(c *v1alpha1.SubnetPool) bool { return !isLost(c) || c.Open() != "" })
	for i, c := range crossing(taken.prefixes, delegated.prefixes) {
		if c < 0 || backing[taken.of[i]] != nil {
			continue
		}
		s, child := taken.of[i], delegated.of[c]
		x.add(SeverityError, Object{v1alpha1.SubnetKind, s.Namespace, s.Name}, verdict.Problem{
			Reason: ReasonDelegated, Field: fieldCIDR, Value: s.Spec.CIDR,
			Message: fmt.Sprintf("%s overlaps %s of the child pool %s, which hands it out too", taken.prefixes[i], child.Spec.CIDR, child.Name),
			Fix:     fmt.Sprintf("see who uses these addresses; delete the Subnet, or pool %s", child.Name),
		})
	}
}

// same reports whether two CIDRs are one prefix.
func same(a, b string) bool {
	one, err := netip.ParsePrefix(a)
	if err != nil {
		return a == b
	}
	two, err := netip.ParsePrefix(b)

	return err == nil && one.Masked() == two.Masked()
}

// inside reports whether a CIDR is inside of another.
func inside(inner, outer string) bool {
	in, err := netip.ParsePrefix(inner)
	if err != nil {
		return false
	}
	out, err := netip.ParsePrefix(outer)

	return err == nil && contains(out.Masked(), in.Masked())
}
