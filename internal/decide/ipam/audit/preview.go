package audit

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// Preview returns what would be refused, or could never be served, if all of an
// inventory were applied, and only what is wrong with objects because of each
// other: what is wrong with one alone, the rules for its kind say. What is merely
// absent is not reported, since it may be in the cluster. Statuses are not
// looked at, except that what Failed takes nothing.
func Preview(e Inventory) []Finding {
	x := newIndex(e)
	var f findings
	overlapping := x.overlapping()
	for p := range inOrder(x.pools) {
		v := ipamrules.CheckPool(p, x.around(p, overlapping[p]))
		v.Problems = append(v.Problems, sharing(p, overlapping[p], v.Problems)...)
		f.verdict(Object{v1alpha1.SubnetPoolKind, p.Namespace, p.Name}, without(v, ipamrules.CheckPool(p, ipamrules.PoolNeighbors{})))
	}
	around := x.aroundSubnets()
	for s := range inOrder(x.subnets) {
		v := ipamrules.CheckSubnet(s, around[s])
		f.verdict(Object{v1alpha1.SubnetKind, s.Namespace, s.Name}, without(v, ipamrules.CheckSubnet(s, ipamrules.SubnetNeighbors{})))
	}
	for c := range inOrder(x.claims) {
		x.request(&f, Object{v1alpha1.SubnetClaimKind, c.Namespace, c.Name}, c, "spec.blockSize")
	}
	for c := range inOrder(x.poolClaims) {
		// Its block is taken by a claim like this.
		inner := &v1alpha1.SubnetClaim{Spec: v1alpha1.SubnetClaimSpec{PoolRef: c.Spec.ParentPoolRef, BlockSize: &c.Spec.DesiredBlockSize}}
		inner.Namespace = c.Namespace
		x.request(&f, Object{v1alpha1.SubnetPoolClaimKind, c.Namespace, c.Name}, inner, "spec.desiredBlockSize")
	}

	return f.sorted()
}

// without is a verdict less what another says too. That another is alone in the
// world, so among it is that everything is absent.
func without(v, alone verdict.Verdict) verdict.Verdict {
	v.Problems = slices.DeleteFunc(v.Problems, func(p verdict.Problem) bool { return slices.Contains(alone.Problems, p) })
	v.Warnings = slices.DeleteFunc(v.Warnings, func(w verdict.Warning) bool { return slices.Contains(alone.Warnings, w) })

	return v
}

// aroundSubnets is what the rules for each Subnet need to know.
func (x *index) aroundSubnets() map[*v1alpha1.Subnet]ipamrules.SubnetNeighbors {
	found := map[*v1alpha1.Subnet]ipamrules.SubnetNeighbors{}
	for key, in := range x.contents {
		for _, s := range in.subnets.of {
			found[s] = ipamrules.SubnetNeighbors{Pool: x.pools[key]}
		}
		own, _ := in.own()
		touches, crosses := touching(own.prefixes), crossing(own.prefixes, in.children.prefixes)
		for i, s := range own.of {
			a := found[s]
			for _, o := range touches[i] {
				a.Others = append(a.Others, *own.of[o])
			}
			if c := crosses[i]; c >= 0 {
				a.Children = append(a.Children, *in.children.of[c])
			}
			found[s] = a
		}
	}

	return found
}

// request reports whether a claim can never have what it asks for from a pool that is
// there.
func (x *index) request(f *findings, o Object, c *v1alpha1.SubnetClaim, sizeField string) {
	p := x.pools[named(c.Namespace, c.Spec.PoolRef)]
	if p == nil || c.Spec.BlockSize == nil && c.Spec.RequestedCIDR == "" {
		return
	}
	prefix, err := netip.ParsePrefix(p.Spec.CIDR)
	if err != nil {
		return
	}
	if _, rejection := ipamrules.ReadClaim(c, p, prefix); rejection != nil {
		field, value := "spec.requestedCIDR", c.Spec.RequestedCIDR
		if c.Spec.BlockSize != nil {
			field, value = sizeField, strconv.Itoa(int(*c.Spec.BlockSize))
		}
		f.add(SeverityError, o, verdict.Problem{Reason: rejection.Reason, Field: field, Value: value, Message: rejection.Message})
	}
}
