package audit

import (
	"crypto/sha1" //nolint:gosec // a name, not a secret
	"encoding/hex"
	"fmt"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
)

// A Migration gives a child pool that is in use the Subnet of its parent that holds its
// block.
type Migration struct {
	Child *v1alpha1.SubnetPool
	// Subnet to make Allocated. It has a UID if it exists, from a migration that did
	// not finish.
	Subnet *v1alpha1.Subnet
	// Conflict is why that cannot be done, "" if it can.
	Conflict string
}

// Migrate returns the migrations that an inventory needs, by namespace and name of the child
// pool. Pools of SubnetPoolClaims need none.
func Migrate(e Inventory) []Migration {
	x := newIndex(e)
	var all []Migration
	for p := range inOrder(x.pools) {
		if name, _ := madeFor(p); name != "" || p.DeletionTimestamp != nil || !x.used(p) || x.held[p] != nil {
			continue
		}
		parent := x.pools[named(p.Namespace, p.ParentName())]
		if parent == nil {
			continue // a root, or reported by Inspect
		}
		m := Migration{Child: p}
		prefix, err := netip.ParsePrefix(p.Spec.CIDR)
		if err != nil {
			m.Conflict = fmt.Sprintf("%q is not a CIDR", p.Spec.CIDR)
		} else {
			m.Subnet = x.backingFor(p, prefix.Masked())
			m.Conflict = x.conflict(p, parent, prefix.Masked())
		}
		all = append(all, m)
	}

	return all
}

// conflict returns why a block of a parent cannot be a child's alone.
func (x *index) conflict(child, parent *v1alpha1.SubnetPool, block netip.Prefix) string {
	if !inside(child.Spec.CIDR, parent.Spec.CIDR) {
		return fmt.Sprintf("%s is not inside of %s, which pool %s has", block, parent.Spec.CIDR, parent.Name)
	}
	in := x.in(parent.Namespace, parent.Name)
	for i, s := range in.subnets.of {
		if isAllocated(s) && in.subnets.prefixes[i].Overlaps(block) {
			return fmt.Sprintf("Subnet %s of pool %s has %s", s.Name, parent.Name, s.Spec.CIDR)
		}
	}
	for i, o := range in.children.of {
		if o != child && x.used(o) && in.children.prefixes[i].Overlaps(block) {
			return fmt.Sprintf("pool %s has %s, and is in use too", o.Name, o.Spec.CIDR)
		}
	}

	return ""
}

// backingFor returns the Subnet that will hold the block of a child pool: an existing one that is
// still Pending, or a new one.
func (x *index) backingFor(child *v1alpha1.SubnetPool, block netip.Prefix) *v1alpha1.Subnet {
	parent := child.ParentName()
	for _, s := range x.in(child.Namespace, parent).subnets.of {
		if s.Spec.Backs != nil && s.Spec.Backs.Name == child.Name && s.Spec.Backs.UID == child.UID && same(s.Spec.CIDR, child.Spec.CIDR) && s.DeletionTimestamp == nil {
			return s.DeepCopy()
		}
	}
	name := ipamrules.SubnetName(parent, block)
	if x.subnets[named(child.Namespace, name)] != nil {
		name += "-" + digest(string(child.UID))
	}
	clusterID := backingClusterID(child.Name)

	return &v1alpha1.Subnet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: child.Namespace, Name: name, Finalizers: []string{v1alpha1.Finalizer},
			Labels: map[string]string{v1alpha1.ClusterIDLabel: clusterID},
		},
		Spec: v1alpha1.SubnetSpec{
			PoolRef: parent, CIDR: block.String(), ClusterID: clusterID,
			Backs: &v1alpha1.PoolReference{Name: child.Name, UID: child.UID},
		},
	}
}

// backingClusterID is the clusterID of the Subnet that backs a child pool.
func backingClusterID(pool string) string {
	const most = 63
	if id := "pool." + pool; len(id) <= most {
		return id
	}

	return "pool." + digest(pool)
}

func digest(s string) string {
	const digits = 16
	sum := sha1.Sum([]byte(s)) //nolint:gosec // as above

	return hex.EncodeToString(sum[:])[:digits]
}
