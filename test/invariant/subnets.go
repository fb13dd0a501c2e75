package invariant

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	ipamaudit "github.com/arbor-control/arbor/internal/decide/ipam/audit"
)

// kindOf are the reasons of an audit, by what they break. All other findings are about a status.
var kindOf = map[string]Invariant{
	ipamaudit.ReasonOverlap:           NoOverlap,
	ipamaudit.ReasonDelegated:         NoOverlap,
	ipamaudit.ReasonSeveralSubnets:    NoOverlap,
	ipamaudit.ReasonSubnetLost:        NothingLost,
	ipamaudit.ReasonPoolNotFound:      NoOrphans,
	ipamaudit.ReasonClaimNotFound:     NoOrphans,
	ipamaudit.ReasonClaimReplaced:     NoOrphans,
	ipamaudit.ReasonPoolClaimNotFound: NoOrphans,
	ipamaudit.ReasonBlockNotFound:     NoOrphans,
}

// audit checks all pools, Subnets and claims together, as arbor pools check does.
func (c *checker) audit() {
	for _, f := range ipamaudit.Inspect(c.Inventory) {
		i, ok := kindOf[f.Reason]
		if !ok {
			i = StatusTrue
		}
		c.addf(i, Object(f.Object), "%s: %s", f.Reason, f.Message)
	}
}

// claims asks that none of them waits, and that each has the block of its status.
func (c *checker) claims() {
	for i := range c.Inventory.Claims {
		claim := &c.Inventory.Claims[i]
		c.bound(Object{v1alpha1.SubnetClaimKind, claim.Namespace, claim.Name}, claim, claim.Status.Phase, claim.Status.Message)
		told := c.ledger.Blocks[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}]
		if told != "" && claim.Status.AllocatedCIDR != told {
			c.addf(NothingLost, Object{v1alpha1.SubnetClaimKind, claim.Namespace, claim.Name}, "had %s and has %q now", told, claim.Status.AllocatedCIDR)
		}
	}
	for i := range c.Inventory.PoolClaims {
		claim := &c.Inventory.PoolClaims[i]
		c.bound(Object{v1alpha1.SubnetPoolClaimKind, claim.Namespace, claim.Name}, claim, claim.Status.Phase, claim.Status.Message)
	}
}

func (c *checker) bound(o Object, claim client.Object, phase v1alpha1.ClaimPhase, message string) {
	if claim.GetDeletionTimestamp() == nil && phase != v1alpha1.ClaimBound {
		c.addf(Bound, o, "is %q: %s", phase, message)
	}
}

// all returns every object of the snapshot.
func (c *checker) all() map[Object]client.Object {
	all := map[Object]client.Object{}
	put := func(kind string, o client.Object) { all[Object{kind, o.GetNamespace(), o.GetName()}] = o }
	for i := range c.Inventory.Pools {
		put(v1alpha1.SubnetPoolKind, &c.Inventory.Pools[i])
	}
	for i := range c.Inventory.Subnets {
		put(v1alpha1.SubnetKind, &c.Inventory.Subnets[i])
	}
	for i := range c.Inventory.Claims {
		put(v1alpha1.SubnetClaimKind, &c.Inventory.Claims[i])
	}
	for i := range c.Inventory.PoolClaims {
		put(v1alpha1.SubnetPoolClaimKind, &c.Inventory.PoolClaims[i])
	}
	for i := range c.PodGroups {
		put(v2alpha2.PodGroupKind, &c.PodGroups[i])
	}
	c.delivered(put)

	return all
}

// held compares with the ledger what is there.
func (c *checker) held() {
	all := c.all()
	for o, held := range c.ledger.Held {
		switch _, there := all[o]; {
		case held && !there:
			c.addf(NothingLost, o, "was acknowledged and is not there")
		case !held && there:
			c.addf(NothingStuck, o, "was deleted and is there still")
		}
	}
}

// going asks that nothing waits to go. Blocks that Failed wait for nothing.
func (c *checker) going() {
	for o, is := range c.all() {
		if is.GetDeletionTimestamp() != nil {
			c.addf(NothingStuck, o, "must be deleted and has the finalizers %v", is.GetFinalizers())
		}
	}
	for _, s := range c.Inventory.Subnets {
		if s.Status.Phase == v1alpha1.SubnetFailed {
			c.addf(NothingStuck, Object{v1alpha1.SubnetKind, s.Namespace, s.Name}, "Failed and is there still")
		}
	}
}
