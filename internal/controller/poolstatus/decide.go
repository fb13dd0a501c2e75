package poolstatus

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/kube"
)

const (
	// reasonNoBlock means that a pool waits for the block of its SubnetPoolClaim.
	reasonNoBlock = "NoBlock"
	// reasonParentNotReady means that the parent of a pool is not open.
	reasonParentNotReady = "ParentNotReady"
	// reasonNotCreated means that the API server rejected the backing Subnet of a pool.
	reasonNotCreated = "NotCreated"
)

// decide decides whether a pool, as the cache has it, gets the range of its spec. What the decision
// depends on is read after the pool.
func (r *Reconciler) decide(ctx context.Context, pool *v1alpha1.SubnetPool) (ipamrules.PoolDecision, error) {
	if !undecided(pool) {
		return ipamrules.PoolDecision{}, nil
	}
	prefix, err := netip.ParsePrefix(pool.Spec.CIDR)
	if err != nil {
		return ipamrules.DecidePool(pool, ipamrules.PoolFacts{}), nil //nolint:nilerr // an invalid range is the decision
	}
	facts, err := gatherFacts(ctx, r.client, pool, prefix.Masked())
	if err != nil {
		return ipamrules.PoolDecision{}, err
	}
	decision := ipamrules.DecidePool(pool, facts)
	switch decision.Action {
	case ipamrules.Keep:
		return r.explain(ctx, pool, facts)
	case ipamrules.NeedsList:
	case ipamrules.Grant, ipamrules.Reject, ipamrules.Clear:
		return decision, nil
	}
	facts.Outside, err = liveOutside(ctx, r.reader, pool, prefix.Masked())
	if err != nil {
		return ipamrules.PoolDecision{}, err
	}

	return ipamrules.DecidePool(pool, facts), nil
}

// explain returns why a pool is not decided yet, if it waits for its backing Subnet. The pool is
// not rejected for that: the parent must keep its addresses until the SubnetPoolClaim is restored,
// or the Subnet can be created.
func (r *Reconciler) explain(ctx context.Context, pool *v1alpha1.SubnetPool, facts ipamrules.PoolFacts) (ipamrules.PoolDecision, error) {
	if pool.ParentName() == "" || !facts.HasParent || facts.Backing.Prefix.IsValid() {
		return ipamrules.PoolDecision{}, nil
	}
	subnets, err := kube.BackingOf(ctx, r.client, pool)
	if err != nil || len(subnets) > 0 {
		return ipamrules.PoolDecision{}, err
	}
	if parent, err := r.closedParent(ctx, pool); err != nil || parent.Reason != "" {
		return parent, err
	}
	claim, obstacle := v1alpha1.PoolClaimOf(pool), r.obstacles.of(client.ObjectKeyFromObject(pool))
	switch {
	case obstacle != "":
		return ipamrules.PoolDecision{Reason: reasonNotCreated, Message: obstacle}, nil
	case claim == "":
		return ipamrules.PoolDecision{}, nil
	}

	return ipamrules.PoolDecision{Reason: reasonNoBlock, Message: fmt.Sprintf("no Subnet of the parent %s backs this pool: SubnetPoolClaim %s gets one; "+
		"create that again if it does not exist", pool.ParentName(), claim)}, nil
}

// closedParent returns why a child pool waits if its parent has no addresses yet, and a decision
// without a reason if it has.
func (r *Reconciler) closedParent(ctx context.Context, pool *v1alpha1.SubnetPool) (ipamrules.PoolDecision, error) {
	read := func(name string) (*v1alpha1.SubnetPool, error) {
		if name == pool.Name {
			return pool, nil
		}

		return kube.Find(ctx, r.client, &v1alpha1.SubnetPool{}, pool.Namespace, name)
	}
	parent, err := read(pool.ParentName())
	if err != nil || parent == nil || parent.Open() != "" {
		return ipamrules.PoolDecision{}, err
	}
	path, back, err := ipamrules.Ancestors(pool.Name, read)
	if err != nil {
		return ipamrules.PoolDecision{}, err
	}
	if back >= 0 {
		return ipamrules.PoolDecision{Reason: ipamrules.ReasonCycle, Message: fmt.Sprintf(
			"its parents form a cycle, %s -> %s: delete these pools, and create them with other parents", strings.Join(path, " -> "), path[back])}, nil
	}

	return ipamrules.PoolDecision{Reason: reasonParentNotReady, Message: fmt.Sprintf("the parent %s has no addresses yet: see its condition Ready", parent.Name)}, nil
}

// undecided reports whether a pool asks for a range that it does not have, rejected or not.
func undecided(p *v1alpha1.SubnetPool) bool {
	return p.DeletionTimestamp == nil && p.Spec.CIDR != p.Open()
}

// cachedOutside looks in the cache for Subnets of a pool that are not inside of a range, and
// returns the first by name. A Subnet that the cache shows needs no live list. That there is none,
// only the API server knows.
func cachedOutside(ctx context.Context, cache client.Reader, pool *v1alpha1.SubnetPool, prefix netip.Prefix) (ipamrules.SubnetListing, error) {
	list := &v1alpha1.SubnetList{}
	fields := client.MatchingFields{kube.SubnetPoolRefIndexKey: pool.Name}
	if err := cache.List(ctx, list, client.InNamespace(pool.Namespace), fields, client.UnsafeDisableDeepCopy); err != nil {
		return ipamrules.SubnetListing{}, fmt.Errorf("cannot list Subnets: %w", err)
	}
	var first *v1alpha1.Subnet
	for i := range list.Items {
		if s := &list.Items[i]; isOutside(s, prefix) && (first == nil || s.Name < first.Name) {
			first = s
		}
	}

	return ipamrules.SubnetListing{Example: example(first)}, nil
}

// liveOutside asks the API server for Subnets of a pool that are not inside of a range.
func liveOutside(ctx context.Context, live client.Reader, pool *v1alpha1.SubnetPool, prefix netip.Prefix) (ipamrules.SubnetListing, error) {
	var first *v1alpha1.Subnet
	err := kube.LiveSubnets(ctx, live, pool.Namespace, pool.Name, func(s *v1alpha1.Subnet) bool {
		if isOutside(s, prefix) {
			first = s
		}

		return first == nil
	})

	return ipamrules.SubnetListing{Live: true, Example: example(first)}, err
}

// isOutside reports whether a Subnet has addresses that are not in a range. Text that is
// not a prefix has no addresses.
func isOutside(s *v1alpha1.Subnet, prefix netip.Prefix) bool {
	block, err := netip.ParsePrefix(s.Spec.CIDR)

	return err == nil && s.Status.Phase != v1alpha1.SubnetFailed && !contains(prefix, block)
}

func example(s *v1alpha1.Subnet) string {
	if s == nil {
		return ""
	}

	return fmt.Sprintf("%s of Subnet %s", s.Spec.CIDR, s.Name)
}

func contains(outer, inner netip.Prefix) bool {
	return outer.IsValid() && outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}
