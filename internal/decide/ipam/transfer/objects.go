package transfer

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	ipamaudit "github.com/arbor-control/arbor/internal/decide/ipam/audit"
)

// Objects returns the objects of rows: pools, claims with their block, and Subnets for
// blocks that no claim has. The claims have a record, because a row with a claim means that
// the claim has the block.
func Objects(rows []Row) ipamaudit.Inventory {
	var e ipamaudit.Inventory
	for _, r := range rows {
		switch {
		case r.IsPool():
			e.Pools = append(e.Pools, v1alpha1.SubnetPool{
				TypeMeta: typeMeta(v1alpha1.SubnetPoolKind), ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Pool},
				Spec: v1alpha1.SubnetPoolSpec{CIDR: r.CIDR.String(), Parent: r.Parent},
			})
		case r.Claim != "":
			c := v1alpha1.SubnetClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Claim},
				Spec:       v1alpha1.SubnetClaimSpec{PoolRef: r.Pool, ClusterID: r.ClusterID, RequestedCIDR: r.CIDR.String()},
			}
			record(&c, r.Pool+"/"+r.CIDR.String())
			e.Claims = append(e.Claims, c)
		default:
			e.Subnets = append(e.Subnets, v1alpha1.Subnet{
				TypeMeta: typeMeta(v1alpha1.SubnetKind), ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: ipamrules.SubnetName(r.Pool, r.CIDR)},
				Spec: v1alpha1.SubnetSpec{PoolRef: r.Pool, CIDR: r.CIDR.String(), ClusterID: r.ClusterID},
			})
		}
	}

	return e
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind}
}

// Portable returns an inventory as another cluster can take it: without what only this one
// knows, and with what keeps every claim's block. What Failed and what is being deleted is
// left out.
func Portable(e ipamaudit.Inventory) ipamaudit.Inventory {
	var out ipamaudit.Inventory
	for i := range e.Pools {
		p := e.Pools[i].DeepCopy()
		if uid, parent := string(p.UID), p.ParentName(); portable(&p.ObjectMeta) {
			if uid != "" {
				annotate(&p.ObjectMeta, v1alpha1.PoolUIDAnnotation, uid)
			}
			p.TypeMeta, p.Spec.Parent, p.Status = typeMeta(v1alpha1.SubnetPoolKind), parent, v1alpha1.SubnetPoolStatus{}
			out.Pools = append(out.Pools, *p)
		}
	}
	var records map[string]string
	out.Subnets, records = portableSubnets(e)
	for i := range e.PoolClaims {
		c := e.PoolClaims[i].DeepCopy()
		if portable(&c.ObjectMeta) {
			c.TypeMeta, c.Status = typeMeta(v1alpha1.SubnetPoolClaimKind), v1alpha1.SubnetPoolClaimStatus{}
			out.PoolClaims = append(out.PoolClaims, *c)
		}
	}
	for i := range e.Claims {
		c := e.Claims[i].DeepCopy()
		if portable(&c.ObjectMeta) {
			record(c, records[c.Namespace+"/"+c.Name])
			out.Claims = append(out.Claims, *c)
		}
	}
	slices.SortStableFunc(out.Pools, func(a, b v1alpha1.SubnetPool) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), netipCompare(a.Spec.CIDR, b.Spec.CIDR))
	})

	return out
}

// portableSubnets returns the Subnets, and the records of the claims that have one.
func portableSubnets(e ipamaudit.Inventory) (all []v1alpha1.Subnet, records map[string]string) {
	claims := map[string]*v1alpha1.SubnetClaim{}
	for i := range e.Claims {
		claims[e.Claims[i].Namespace+"/"+e.Claims[i].Name] = &e.Claims[i]
	}
	records = map[string]string{}
	for i := range e.Subnets {
		s := e.Subnets[i].DeepCopy()
		if s.Status.Phase == v1alpha1.SubnetFailed || !portable(&s.ObjectMeta) {
			continue
		}
		if ref := s.Spec.ClaimRef; ref != nil && claims[s.Namespace+"/"+ref.Name] != nil {
			c := claims[s.Namespace+"/"+ref.Name]
			// Another claim of this name may wait while the Subnet still exists.
			if ipamrules.ClaimWants(c, s) {
				records[s.Namespace+"/"+c.Name] = s.Spec.PoolRef + "/" + s.Spec.CIDR
			}
			// Subnets of former versions do not name the pool that they back; their claims do.
			if child := poolClaimOf(&c.ObjectMeta); s.Spec.Backs == nil && child != "" {
				s.Spec.Backs = &v1alpha1.PoolReference{Name: child}
			}
		}
		all = append(all, *unbound(s))
	}

	return all, records
}

// unbound removes the UIDs from a Subnet.
func unbound(s *v1alpha1.Subnet) *v1alpha1.Subnet {
	if s.Spec.ClaimRef != nil {
		s.Spec.ClaimRef.UID = ""
	}
	if s.Spec.Backs != nil {
		// It must not be deleted before its pool is bound to it.
		s.Spec.Backs.UID, s.Finalizers = "", []string{v1alpha1.Finalizer}
	}
	s.TypeMeta, s.Status = typeMeta(v1alpha1.SubnetKind), v1alpha1.SubnetStatus{}

	return s
}

// record sets the record of a claim to the block that it is bound to, or else to a given
// one, and removes its status.
func record(c *v1alpha1.SubnetClaim, block string) {
	if c.Status.Phase == v1alpha1.ClaimBound && c.Status.AllocatedCIDR != "" {
		block = ipamrules.ClaimRecord(c)
	}
	if block != "" {
		annotate(&c.ObjectMeta, v1alpha1.BlockAnnotation, block)
	}
	c.TypeMeta, c.Status = typeMeta(v1alpha1.SubnetClaimKind), v1alpha1.SubnetClaimStatus{}
}

func annotate(o *metav1.ObjectMeta, key, value string) {
	if o.Annotations == nil {
		o.Annotations = map[string]string{}
	}
	o.Annotations[key] = value
}

// lastApplied is what kubectl apply keeps on objects.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// portable keeps of the metadata of an object what a person could have written. It is false
// for an object that is being deleted.
func portable(o *metav1.ObjectMeta) bool {
	kept := metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, Labels: maps.Clone(o.Labels), Annotations: maps.Clone(o.Annotations)}
	delete(kept.Annotations, lastApplied)
	if name := poolClaimOf(o); name != "" {
		if kept.Labels == nil {
			kept.Labels = map[string]string{}
		}
		kept.Labels[v1alpha1.PoolClaimLabel] = v1alpha1.PoolClaimLabelValue(name)
	}
	going := o.DeletionTimestamp != nil
	*o = kept

	return !going
}

// poolClaimOf names the SubnetPoolClaim that an object was made for, "" if there is none. Older
// objects have it in an owner reference.
func poolClaimOf(o *metav1.ObjectMeta) string {
	if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == v1alpha1.SubnetPoolClaimKind {
		return owner.Name
	}

	return v1alpha1.PoolClaimOf(o)
}
