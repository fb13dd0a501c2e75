package release_test

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
)

// lost returns what is wrong with a change from s to o: a block is released whose claim
// has it, or may still come.
func (x *walk) lost(s state, o objects) string {
	for at := firstSubnet; at < x.store.used; at++ {
		if s.objects[at] == 0 || s.objects[at] == o[at] {
			continue
		}
		old := x.store.all[s.objects[at]].(*v1alpha1.Subnet)
		if o[at] != 0 && x.store.all[o[at]].GetDeletionTimestamp() == nil || old.Status.Phase == v1alpha1.SubnetFailed || old.DeletionTimestamp != nil {
			continue
		}
		if old.Spec.ClaimRef == nil {
			if found := x.lostPool(s, old); found != "" {
				return found
			}

			continue
		}
		name := old.Spec.ClaimRef.Name
		c := x.server(s).claim(name)
		deleted := s.deleted>>x.store.slots["claim/"+name]&1 == 1
		switch {
		case c == nil && !deleted:
			return fmt.Sprintf("Subnet %s is deleted, and claim %s may still come", old.Name, name)
		case c != nil && (!deleted || old.Status.ClaimUID == c.UID) && ipamrules.ClaimWants(c, old):
			return fmt.Sprintf("Subnet %s is deleted, and claim %s has it", old.Name, name)
		}
	}

	return ""
}

// lostPool returns what is wrong with the deletion of the Subnet of a pool that was made by
// hand: the pool has it, or may still come. A Subnet that was not restored has lost its
// pool, which was deleted.
func (x *walk) lostPool(s state, old *v1alpha1.Subnet) string {
	p := x.server(s).pool(old.Spec.Backs.Name)
	if p != nil && (old.Status.PoolUID == p.UID || overlap(ipamrules.BackedRange(p), old.Spec.CIDR)) {
		return fmt.Sprintf("Subnet %s is deleted, and pool %s has it", old.Name, p.Name)
	}
	for i, a := range x.arrivals {
		if p == nil && old.UID != types.UID(old.Name+beforeSuffix) && a.slot == labSlot && s.arrived>>i&1 == 0 {
			return fmt.Sprintf("Subnet %s is deleted, and pool %s may still come", old.Name, old.Spec.Backs.Name)
		}
	}

	return ""
}

// wrong returns what must never be.
func (x *walk) wrong(s state) string {
	for at := firstClaim; at < x.store.used; at++ {
		f := &x.store.facts[s.objects[at]]
		if at < firstSubnet && f.has {
			if had, ok := x.had[f.name]; ok && f.cidr != had {
				return fmt.Sprintf("claim %s has %s instead of %s", f.name, f.cidr, had)
			}
		}
		if at >= firstSubnet && (f.claim == x.store.slots["claim/"+fresh] || f.holder == fresh+restoredSuffix) && !x.quiet(s, f.pool) {
			return fmt.Sprintf("the new claim gets %s before the restore is over", f.cidr)
		}
	}
	for _, of := range [][2]int{{firstClaim, firstSubnet}, {firstSubnet, x.store.used}} {
		if found := x.shared(s, of[0], of[1]); found != "" {
			return found
		}
	}

	return ""
}

// shared returns two claims that are bound, or two Subnets that are Allocated, with the
// same addresses of a pool.
func (x *walk) shared(s state, from, to int) string {
	for i := from; i < to; i++ {
		f := &x.store.facts[s.objects[i]]
		for j := from; j < i && f.has; j++ {
			if g := &x.store.facts[s.objects[j]]; g.has && g.pool == f.pool && g.block.Overlaps(f.block) {
				return fmt.Sprintf("%s and %s share %s", g.name, f.name, f.cidr)
			}
		}
	}

	return ""
}

// wrongAtEnd returns what must not be when everything has arrived and nothing happens
// any more.
func (x *walk) wrongAtEnd(s state) string {
	on := x.server(s)
	if !on.complete {
		return "nothing happens although not everything has arrived"
	}
	names := []string{"a", "c", lab}
	if x.byHand {
		names = names[:2]
		if p := on.pool(lab); p != nil && on.pool(root) != nil && p.Open() != x.had[lab] {
			return "pool lab does not get its block back"
		}
	}
	for _, name := range names {
		of := root
		if name == "c" {
			of = lab
		}
		if found := wrongClaim(on, name, of, x.had[name]); found != "" {
			return found
		}
	}
	for _, name := range []string{root, lab} {
		if p := on.pool(name); p != nil && on.pool(root) != nil && ipamrules.IsRestoring(p) {
			return fmt.Sprintf("the restore of pool %s does not end", name)
		}
	}
	if c, ok := get[*v1alpha1.SubnetPoolClaim](on, poolClaimSlot); ok && on.pool(root) != nil {
		made := on.pool(lab)
		if c.Status.Phase != v1alpha1.ClaimBound || made == nil || made.Open() != x.had[lab] {
			return "the pool claim does not have its pool"
		}
	}

	return wrongNew(on)
}

// wrongClaim returns what is wrong with a claim of the backup.
func wrongClaim(on *server, name, of, had string) string {
	c, p := on.claim(name), on.pool(of)
	i := slices.IndexFunc(on.subnets(of), func(o *v1alpha1.Subnet) bool { return o.Spec.CIDR == had && o.DeletionTimestamp == nil })
	switch {
	case c == nil && p != nil && i < 0 && !listed(on.missing, "subnet/"+name):
		return fmt.Sprintf("the block of claim %s, which did not come back, is free", name)
	case c == nil || p == nil:
		return ""
	case c.Status.Phase != v1alpha1.ClaimBound:
		return fmt.Sprintf("claim %s does not get its block back: %s", name, on.allocate(c))
	case i < 0 || !allocated(on.subnets(of)[i]) || on.subnets(of)[i].Status.ClaimUID != c.UID:
		return fmt.Sprintf("claim %s is bound, and does not have its Subnet", name)
	}

	return ""
}

// wrongNew returns what is wrong with the new claim: it has no block without a reason.
func wrongNew(on *server) string {
	c := on.claim(fresh)
	if c == nil || c.Status.Phase == v1alpha1.ClaimBound {
		return ""
	}
	switch reason := on.allocate(c); {
	case reason == ipamrules.ReasonTaken && on.newCIDR != "", reason == ipamrules.ReasonClusterIDInUse && on.newCluster != "",
		reason == ipamrules.ReasonPoolNotFound && on.pool(c.Spec.PoolRef) == nil:
		return ""
	default:
		return "the new claim waits: " + reason
	}
}

// wrongReason returns what is wrong with the status of the new claim when the manager has
// nothing else to do: while its pool is restored, the status reports that.
func (x *walk) wrongReason(s state) string {
	on := x.server(s)
	c := on.claim(fresh)
	if c == nil || c.Status.Phase == v1alpha1.ClaimBound {
		return ""
	}
	p := on.pool(c.Spec.PoolRef)
	if p == nil || p.Open() == "" || !ipamrules.IsRestoring(p) {
		return ""
	}
	if reason := on.allocate(c); reason != ipamrules.ReasonPoolRestoring {
		return fmt.Sprintf("the new claim reports %q while the pool is restored", reason)
	}

	return ""
}
