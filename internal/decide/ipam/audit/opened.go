package audit

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

const fixMigrate = "stop the manager, and run arbor pools migrate"

// lost reports a pool whose range Arbor has rejected.
func (x *inspector) lost(o Object, p *v1alpha1.SubnetPool) {
	if !isLost(p) {
		return
	}
	severity, effect := SeverityError, "it hands out nothing"
	if open := p.Open(); open != "" {
		severity, effect = SeverityWarning, fmt.Sprintf("it goes on handing out what lies in %s too", open)
	}
	why := "for a reason that its condition Ready does not say"
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); c != nil && c.Reason != "" {
		why = c.Reason + ": " + c.Message
	}
	x.add(severity, o, verdict.Problem{
		Reason: ReasonNotOpened, Field: fieldLost, Value: strconv.FormatInt(p.Status.Lost, 10),
		Message: fmt.Sprintf("Arbor does not open %s, so %s: %s", p.Spec.CIDR, effect, why),
		Fix:     "remove the reason, or write another spec.cidr",
	})
}

// closed reports a root in use that shares addresses with another one in use. Neither was
// opened by a manager that opens pools, and neither will be.
func (x *inspector) closed(o Object, p *v1alpha1.SubnetPool, others []*v1alpha1.SubnetPool) {
	root := func(p *v1alpha1.SubnetPool) bool {
		return p.ParentName() == "" && p.Open() == "" && p.Generation != 0 && x.used(p)
	}
	i := slices.IndexFunc(others, root)
	if !root(p) || i < 0 {
		return
	}
	x.add(SeverityWarning, o, verdict.Problem{
		Reason: ReasonStaysClosed, Field: fieldCIDR, Value: p.Spec.CIDR,
		Message: fmt.Sprintf("both it and pool %s are in use, so Arbor opens neither: claims that are bound keep their blocks, and no new ones are handed out", others[i].Name),
		Fix:     "make one of them smaller, or release everything in one of them",
	})
}

// used is true if Allocated Subnets are taken from a pool.
func (x *index) used(p *v1alpha1.SubnetPool) bool {
	return slices.ContainsFunc(x.in(p.Namespace, p.Name).subnets.of, isAllocated)
}

// backed asks that each child pool that is open or in use has a Subnet of its parent that
// holds its block, and that each such Subnet has its child pool.
func (x *inspector) backed() {
	for p := range inOrder(x.pools) {
		parent := named(p.Namespace, p.ParentName())
		if p.Generation == 0 || p.DeletionTimestamp != nil || x.pools[parent] == nil || p.Open() == "" && !x.used(p) || x.held[p] != nil {
			continue
		}
		severity, effect := SeverityError, fmt.Sprintf("it may be handed out by %s again", parent.Name)
		if p.Open() == "" {
			severity, effect = SeverityWarning, fmt.Sprintf("although Subnets are taken from it: pool %s hands out no new blocks until one does", parent.Name)
		}
		x.add(severity, Object{v1alpha1.SubnetPoolKind, p.Namespace, p.Name}, verdict.Problem{
			Reason: ReasonNotBacked, Field: fieldParent, Value: parent.Name,
			Message: fmt.Sprintf("no Allocated Subnet of pool %s holds %s, %s", parent.Name, p.Spec.CIDR, effect), Fix: fixMigrate,
		})
	}
	for s := range inOrder(x.subnets) {
		x.childOf(s)
	}
}

// childOf asks that the pool is there that a Subnet holds a block for. That of a claim
// may come later.
func (x *inspector) childOf(s *v1alpha1.Subnet) {
	if s.Spec.Backs == nil || s.DeletionTimestamp != nil || !isAllocated(s) || x.claimOf(s) != nil {
		return
	}
	p, left := x.pools[named(s.Namespace, s.Spec.Backs.Name)], x.in(s.Namespace, s.Spec.Backs.Name).subnets.of
	message, fix := fmt.Sprintf("it holds %s for the child pool %s, which does not exist", s.Spec.CIDR, s.Spec.Backs.Name), fixManager
	switch {
	case p != nil && isSame(s.Status.PoolUID, p.UID):
		return
	case p != nil:
		message = fmt.Sprintf("it holds %s for a child pool %s of UID %q, but the pool of that name has UID %q", s.Spec.CIDR, p.Name, s.Status.PoolUID, p.UID)
	case len(left) > 0:
		message += fmt.Sprintf("; %d Subnets are still taken from that pool, such as %s", len(left), left[0].Name)
		fix = fmt.Sprintf("make pool %s again, or release those Subnets", s.Spec.Backs.Name)
	}
	x.add(SeverityWarning, Object{v1alpha1.SubnetKind, s.Namespace, s.Name}, verdict.Problem{
		Reason: ReasonChildNotFound, Field: fieldBacks, Value: s.Spec.Backs.Name, Message: message, Fix: fix,
	})
}

// owners warns of owner references between objects of the address API: after a restore the
// garbage collector takes owners of another UID for deleted. There may be one on every
// object, so it is reported once for a kind and namespace.
func (x *inspector) owners() {
	first, more := map[Object]Object{}, map[Object]int{}
	note := func(kind string, o metav1.Object) {
		if !slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
			return r.Kind == v1alpha1.SubnetClaimKind || r.Kind == v1alpha1.SubnetPoolClaimKind
		}) {
			return
		}
		key := Object{Kind: kind, Namespace: o.GetNamespace()}
		if more[key]++; more[key] == 1 {
			first[key] = Object{kind, o.GetNamespace(), o.GetName()}
		}
	}
	noteAll(x.pools, v1alpha1.SubnetPoolKind, note)
	noteAll(x.subnets, v1alpha1.SubnetKind, note)
	noteAll(x.claims, v1alpha1.SubnetClaimKind, note)
	for key, o := range first {
		which := "it has"
		if n := more[key] - 1; n > 0 {
			which = fmt.Sprintf("it and %d more of this kind and namespace have", n)
		}
		x.add(SeverityWarning, o, verdict.Problem{
			Reason: ReasonOwnerReferences, Field: fieldOwners,
			Message: which + " an owner reference to a claim: after a restore with new UIDs the garbage collector deletes what has one",
			Fix:     "the manager removes it after an upgrade; restore older backups with arbor pools import",
		})
	}
}

func noteAll[T any, O interface {
	*T
	metav1.Object
}](all map[types.NamespacedName]*T, kind string, note func(string, metav1.Object),
) {
	for o := range inOrder(all) {
		note(kind, O(o))
	}
}
