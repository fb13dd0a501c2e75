package transfer

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	ipamaudit "github.com/arbor-control/arbor/internal/decide/ipam/audit"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// A Step is what Plan decided about one object.
type Step struct {
	Kind, Namespace, Name string
	// CIDR of a pool or a block, "" if the object does not name one.
	CIDR string
	// Exists is true if the object is in the cluster and is the same.
	Exists bool
	// Conflict is why the object cannot be created, "" if it can.
	Conflict string
	// Waits is why a claim without a block waits after its creation, "" if no reason is known.
	Waits string
	// Object to create: a *SubnetPool, *Subnet, *SubnetPoolClaim or *SubnetClaim.
	Object metav1.Object
}

// Plan compares the objects to import with those of a cluster. It returns a step for each
// object to import, in the order of creation.
//
// A claim with a record has a block, and it is a conflict if the claim cannot have that
// block. A claim without a block is never in conflict because of one: it waits after the
// import, as it did in the cluster that it comes from. It also takes no block from another
// object, and is created after the claims that have one.
func Plan(want, have ipamaudit.Inventory) []Step {
	p := &planner{have: have, wrong: map[ipamaudit.Object]string{}}
	p.index()
	p.objects(want)
	p.foresee(want)
	p.take()
	p.allClaims(want.Claims)

	return p.all
}

// A planner compares what is wanted with what there is.
type planner struct {
	have ipamaudit.Inventory
	// merged has the objects of the cluster and those to create, except for claims.
	merged ipamaudit.Inventory
	// wrong is what the rules report, by object.
	wrong map[ipamaudit.Object]string
	all   []Step

	pools      map[types.NamespacedName]*v1alpha1.SubnetPool
	subnets    map[types.NamespacedName]*v1alpha1.Subnet
	claims     map[types.NamespacedName]*v1alpha1.SubnetClaim
	poolClaims map[types.NamespacedName]*v1alpha1.SubnetPoolClaim
	// same are the Subnets by pool, block and clusterID.
	same map[string]bool
	// held are the blocks of Subnets by pool, clusterID and claim.
	held map[string]netip.Prefix
	// owners are the claims that have a block, by pool and clusterID.
	owners map[string]string
	taken  *taken
}

func key(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func join(parts ...string) string { return strings.Join(parts, "|") }

func (p *planner) index() {
	p.pools, p.subnets = map[types.NamespacedName]*v1alpha1.SubnetPool{}, map[types.NamespacedName]*v1alpha1.Subnet{}
	p.claims, p.poolClaims = map[types.NamespacedName]*v1alpha1.SubnetClaim{}, map[types.NamespacedName]*v1alpha1.SubnetPoolClaim{}
	p.same, p.held, p.owners, p.taken = map[string]bool{}, map[string]netip.Prefix{}, map[string]string{}, newTaken()
	for i := range p.have.Pools {
		p.pools[key(&p.have.Pools[i])] = &p.have.Pools[i]
	}
	for i := range p.have.Subnets {
		s := &p.have.Subnets[i]
		p.subnets[key(s)] = s
		if s.Status.Phase != v1alpha1.SubnetFailed {
			p.same[blockKey(s)] = true
		}
	}
	for i := range p.have.Claims {
		p.claims[key(&p.have.Claims[i])] = &p.have.Claims[i]
	}
	for i := range p.have.PoolClaims {
		p.poolClaims[key(&p.have.PoolClaims[i])] = &p.have.PoolClaims[i]
	}
	p.merged = ipamaudit.Inventory{Pools: append([]v1alpha1.SubnetPool{}, p.have.Pools...), Subnets: append([]v1alpha1.Subnet{}, p.have.Subnets...)}
}

func blockKey(s *v1alpha1.Subnet) string {
	return join(s.Namespace, s.Spec.PoolRef, s.Spec.CIDR, s.Spec.ClusterID)
}

// objects compares each object, except for claims, with the one of its name.
func (p *planner) objects(want ipamaudit.Inventory) {
	for i := range want.Pools {
		o := &want.Pools[i]
		s := Step{Kind: v1alpha1.SubnetPoolKind, CIDR: o.Spec.CIDR, Object: o}
		if is := p.pools[key(o)]; is == nil {
			s.Conflict = first(ipamrules.CheckPool(o, ipamrules.PoolNeighbors{}).Problems)
			p.pools[key(o)] = o
			p.merged.Pools = append(p.merged.Pools, *o)
		} else {
			s.Exists = true
			if is.Spec.CIDR != o.Spec.CIDR || is.ParentName() != o.ParentName() {
				s.Conflict = fmt.Sprintf("there is a pool of that name with %s%s", is.Spec.CIDR, of(is.ParentName()))
			}
		}
		p.add(s)
	}
	for i := range want.Subnets {
		p.subnet(&want.Subnets[i])
	}
	for i := range want.PoolClaims {
		o := &want.PoolClaims[i]
		s := Step{Kind: v1alpha1.SubnetPoolClaimKind, Object: o}
		if is := p.poolClaims[key(o)]; is != nil {
			s.Exists = true
			if is.Spec != o.Spec {
				s.Conflict = fmt.Sprintf("there is a SubnetPoolClaim of that name for a /%d of pool %s", is.Spec.DesiredBlockSize, is.Spec.ParentPoolRef)
			}
		}
		p.add(s)
	}
}

// first is the first thing that is wrong with an object by itself.
func first(problems []verdict.Problem) string {
	if len(problems) == 0 {
		return ""
	}

	return problems[0].Message
}

func of(parent string) string {
	if parent == "" {
		return ""
	}

	return " of " + parent
}

func (p *planner) add(s Step) {
	s.Namespace, s.Name = s.Object.GetNamespace(), s.Object.GetName()
	p.all = append(p.all, s)
}

func (p *planner) subnet(o *v1alpha1.Subnet) {
	s := Step{Kind: v1alpha1.SubnetKind, CIDR: o.Spec.CIDR, Object: o}
	is := p.subnets[key(o)]
	switch {
	case is != nil && (is.Spec.PoolRef != o.Spec.PoolRef || is.Spec.CIDR != o.Spec.CIDR || is.Spec.ClusterID != o.Spec.ClusterID):
		s.Conflict = fmt.Sprintf("there is a Subnet of that name with %s of pool %s for %s", is.Spec.CIDR, is.Spec.PoolRef, is.Spec.ClusterID)
	case is != nil, p.same[blockKey(o)]:
		s.Exists = true
	case p.pools[types.NamespacedName{Namespace: o.Namespace, Name: o.Spec.PoolRef}] == nil:
		s.Conflict = noPool(o.Spec.PoolRef)
	default:
		s.Conflict = first(ipamrules.CheckSubnet(o, ipamrules.SubnetNeighbors{}).Problems)
		p.subnets[key(o)] = o
		p.merged.Subnets = append(p.merged.Subnets, *o)
		p.same[blockKey(o)] = true
	}
	p.add(s)
}

func noPool(name string) string { return fmt.Sprintf("there is no pool %s", name) }

// foresee applies the rules for pools, Subnets and claims, and makes what they report the
// conflicts of the steps so far.
func (p *planner) foresee(want ipamaudit.Inventory) {
	e := p.merged
	e.Claims = want.Claims
	for _, f := range ipamaudit.Preview(e) {
		if p.wrong[f.Object] == "" && f.Severity == ipamaudit.SeverityError {
			p.wrong[f.Object] = f.Message
		}
	}
	for i := range p.all {
		if s := &p.all[i]; s.Conflict == "" && !s.Exists {
			s.Conflict = p.wrong[ipamaudit.Object{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}]
		}
	}
}

// take records which blocks are taken, and by what, if everything without a conflict is
// created.
func (p *planner) take() {
	for i := range p.have.Subnets {
		p.takeSubnet(&p.have.Subnets[i])
	}
	for i := range p.have.Pools {
		p.takePool(&p.have.Pools[i])
	}
	for _, s := range p.all {
		if s.Conflict != "" || s.Exists {
			continue
		}
		switch o := s.Object.(type) {
		case *v1alpha1.Subnet:
			p.takeSubnet(o)
		case *v1alpha1.SubnetPool:
			p.takePool(o)
		}
	}
	for i := range p.have.Claims {
		if c := &p.have.Claims[i]; c.Status.AllocatedCIDR != "" || p.hasBlock(c) {
			p.owners[ownerKey(c)] = c.Name
		}
	}
}

func (p *planner) takeSubnet(s *v1alpha1.Subnet) {
	block, err := netip.ParsePrefix(s.Spec.CIDR)
	if err != nil || s.Status.Phase == v1alpha1.SubnetFailed {
		return
	}
	p.taken.add(types.NamespacedName{Namespace: s.Namespace, Name: s.Spec.PoolRef}, block.Masked(), "Subnet "+s.Name)
	if ref := s.Spec.ClaimRef; ref != nil {
		p.held[join(s.Namespace, s.Spec.PoolRef, s.Spec.ClusterID, ref.Name)] = block.Masked()
	}
}

func (p *planner) takePool(child *v1alpha1.SubnetPool) {
	if block, err := netip.ParsePrefix(child.Spec.CIDR); err == nil && child.ParentName() != "" {
		p.taken.add(types.NamespacedName{Namespace: child.Namespace, Name: child.ParentName()}, block.Masked(), childPool(child.Name))
	}
}

func childPool(name string) string { return "the child pool " + name }

func ownerKey(c *v1alpha1.SubnetClaim) string {
	return join(c.Namespace, c.Spec.PoolRef, c.Spec.ClusterID)
}

// hasBlock reports whether a claim has a block, by its record or by its Subnet.
func (p *planner) hasBlock(c *v1alpha1.SubnetClaim) bool {
	_, recorded := ipamrules.RecordedBlock(c)

	return recorded || p.hasSubnet(c)
}

// hasSubnet reports whether there is a Subnet for a claim, with the block that it asks for.
func (p *planner) hasSubnet(c *v1alpha1.SubnetClaim) bool {
	held, ok := p.held[join(c.Namespace, c.Spec.PoolRef, c.Spec.ClusterID, c.Name)]
	block, exact := ipamrules.ExactBlock(c)

	return ok && (!exact || held == block)
}

// allClaims adds the steps of claims, those with a block first.
func (p *planner) allClaims(all []v1alpha1.SubnetClaim) {
	for _, having := range []bool{true, false} {
		for i := range all {
			if p.hasBlock(&all[i]) == having {
				p.claim(&all[i], having)
			}
		}
	}
}

// claim adds the step of a claim that has a block, or only asks for one.
func (p *planner) claim(c *v1alpha1.SubnetClaim, having bool) {
	s := Step{Kind: v1alpha1.SubnetClaimKind, CIDR: exactBlock(c), Object: c}
	if is := p.claims[key(c)]; is != nil {
		s.Exists, s.Conflict = true, differs(is, c)
		p.add(s)

		return
	}
	p.claims[key(c)] = c
	why := p.prevents(c)
	switch {
	case !having:
		s.Waits = why
	case why != "":
		s.Conflict = why
	default:
		p.owners[ownerKey(c)] = c.Name
		if block, ok := ipamrules.ExactBlock(c); ok {
			p.taken.add(types.NamespacedName{Namespace: c.Namespace, Name: c.Spec.PoolRef}, block, "SubnetClaim "+c.Name)
		}
	}
	p.add(s)
}

// exactBlock is the only block that a claim can get, "" if it can get any.
func exactBlock(c *v1alpha1.SubnetClaim) string {
	block, ok := ipamrules.ExactBlock(c)
	if !ok {
		return ""
	}

	return block.String()
}

// prevents returns why a claim cannot have the block that it asks for, "" if it can.
func (p *planner) prevents(c *v1alpha1.SubnetClaim) string {
	in := types.NamespacedName{Namespace: c.Namespace, Name: c.Spec.PoolRef}
	wrong := p.wrong[ipamaudit.Object{Kind: v1alpha1.SubnetClaimKind, Namespace: c.Namespace, Name: c.Name}]
	block, exact := ipamrules.ExactBlock(c)
	switch owner, owned := p.owners[ownerKey(c)]; {
	case owned:
		return fmt.Sprintf("SubnetClaim %s has the block of cluster %s in pool %s", owner, c.Spec.ClusterID, c.Spec.PoolRef)
	case p.pools[in] == nil:
		return noPool(c.Spec.PoolRef)
	case wrong != "" || !exact || p.hasSubnet(c):
		return wrong
	}
	other, object := p.taken.overlapping(in, block)
	if object == "" || object == childPool(ipamrules.ChildPoolOf(c)) {
		return ""
	}

	return fmt.Sprintf("%s overlaps %s of %s", block, other, object)
}

// differs returns how a claim differs from the one of the same name.
func differs(is, want *v1alpha1.SubnetClaim) string {
	if is.Spec.PoolRef != want.Spec.PoolRef || is.Spec.ClusterID != want.Spec.ClusterID {
		return fmt.Sprintf("there is a SubnetClaim of that name for %s of pool %s", is.Spec.ClusterID, is.Spec.PoolRef)
	}
	has, block := cmp.Or(is.Status.AllocatedCIDR, exactBlock(is)), exactBlock(want)
	if block != "" && has != "" && has != block {
		return fmt.Sprintf("there is a SubnetClaim of that name with %s", has)
	}

	return ""
}
