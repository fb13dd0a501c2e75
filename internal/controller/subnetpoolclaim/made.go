package subnetpoolclaim

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
)

// A nameTakenError means that another object has the name that one of a claim needs.
type nameTakenError struct{ kind, name string }

func (e *nameTakenError) Error() string {
	return fmt.Sprintf("there is a %s %s that does not belong to this claim: delete it, or create a claim with another name", e.kind, e.name)
}

// A notCreatedError means that the API server rejected an object.
type notCreatedError struct {
	kind, name string
	err        error
}

func (e *notCreatedError) Error() string {
	return fmt.Sprintf("cannot create %s %s: %v", e.kind, e.name, e.err)
}

func (e *notCreatedError) Unwrap() error { return e.err }

// madeFor returns the name of the SubnetPoolClaim that an object was made for, "" if
// there is none. The clusterID of a claim for a block cannot be edited, so it comes
// before the label. Former versions wrote an owner reference instead of the label.
func madeFor(o client.Object) string {
	if isOwnBlock(o, o.GetName()) {
		return o.GetName()
	}
	if name := v1alpha1.PoolClaimOf(o); name != "" {
		return name
	}
	if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == v1alpha1.SubnetPoolClaimKind {
		return owner.Name
	}

	return ""
}

// isOwnBlock reports whether an object is the claim for the block of a SubnetPoolClaim, by
// its name and clusterID.
func isOwnBlock(o client.Object, poolClaim string) bool {
	c, ok := o.(*v1alpha1.SubnetClaim)

	return ok && c.Name == poolClaim && c.Spec.ClusterID == clusterID(poolClaim)
}

// isLabel reports whether a label can have a value.
func isLabel(value string) bool { return len(validation.IsValidLabelValue(value)) == 0 }

// clusterID returns the clusterID of the block for a SubnetPoolClaim.
func clusterID(name string) string { return v1alpha1.LabelValue("pool-claim.", name) }

// block returns the claim for the parent's block, and creates it if it is missing.
func (r *Reconciler) block(ctx context.Context, c *v1alpha1.SubnetPoolClaim) (*v1alpha1.SubnetClaim, error) {
	blocks, err := r.blocks(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(blocks) == 0 {
		block, err := r.newBlock(ctx, c)
		if err != nil {
			return nil, err
		}

		return create(ctx, r, c, block, &v1alpha1.SubnetClaim{}, fitsBlock)
	}
	block := blocks[0].DeepCopy()
	if block.DeletionTimestamp != nil && block.Status.Phase != v1alpha1.ClaimBound {
		return block, r.replace(ctx, c, block)
	}
	before := block.DeepCopy()
	changed := take(block, c)
	recorded, err := r.record(ctx, c, block)
	if err != nil {
		return nil, err
	}
	if block.DeletionTimestamp == nil {
		changed = controllerutil.AddFinalizer(block, v1alpha1.Finalizer) || changed
	}
	if !changed && !recorded {
		return block, nil
	}

	return block, r.patch(ctx, block, before)
}

// record records the block of the pool on the claim for it, and reports whether it did:
// the pool of a backup can come after the claim.
func (r *Reconciler) record(ctx context.Context, c *v1alpha1.SubnetPoolClaim, block *v1alpha1.SubnetClaim) (bool, error) {
	if block.Status.Phase == v1alpha1.ClaimBound || block.Annotations[v1alpha1.BlockAnnotation] != "" {
		return false, nil
	}
	record, err := r.blockOfPool(ctx, c)
	if err != nil || record == "" {
		return false, err
	}
	metav1.SetMetaDataAnnotation(&block.ObjectMeta, v1alpha1.BlockAnnotation, record)

	return true, nil
}

// replace frees the claim for a block that is being deleted before it was bound, unless
// there is a pool. The event of its end creates the next one.
func (r *Reconciler) replace(ctx context.Context, c *v1alpha1.SubnetPoolClaim, block *v1alpha1.SubnetClaim) error {
	for _, list := range []func() ([]v1alpha1.SubnetPool, error){
		func() ([]v1alpha1.SubnetPool, error) { return r.pools(ctx, c) }, // also pools of former versions, without the label
		func() ([]v1alpha1.SubnetPool, error) { return r.livePools(ctx, client.ObjectKeyFromObject(c)) },
	} {
		if pools, err := list(); err != nil || len(pools) > 0 {
			return err
		}
	}

	return r.free(ctx, block)
}

// newBlock returns the claim for the parent's block. If the pool is there already, from
// a backup, the claim asks for the block of that pool.
func (r *Reconciler) newBlock(ctx context.Context, c *v1alpha1.SubnetPoolClaim) (*v1alpha1.SubnetClaim, error) {
	block := &v1alpha1.SubnetClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, Name: c.Name, Finalizers: []string{v1alpha1.Finalizer},
			Labels: map[string]string{v1alpha1.PoolClaimLabel: v1alpha1.PoolClaimLabelValue(c.Name)},
		},
		Spec: v1alpha1.SubnetClaimSpec{PoolRef: c.Spec.ParentPoolRef, ClusterID: clusterID(c.Name), BlockSize: &c.Spec.DesiredBlockSize},
	}
	record, err := r.blockOfPool(ctx, c)
	if err != nil {
		return nil, err
	}
	if record != "" {
		block.Annotations = map[string]string{v1alpha1.BlockAnnotation: record}
	}

	return block, nil
}

// blockOfPool returns the record of the block that the pool of a claim is made of, "" if
// there is no pool, or if its range cannot be in such a block. The pool may have been made
// smaller since.
func (r *Reconciler) blockOfPool(ctx context.Context, c *v1alpha1.SubnetPoolClaim) (string, error) {
	pools, err := r.pools(ctx, c)
	if err != nil || len(pools) == 0 {
		return "", err
	}
	has, err := netip.ParsePrefix(pools[0].Spec.CIDR)
	if err != nil || has.Bits() < int(c.Spec.DesiredBlockSize) {
		return "", nil //nolint:nilerr // it has no block of this size
	}
	block, err := has.Addr().Prefix(int(c.Spec.DesiredBlockSize))
	if err != nil {
		return "", nil //nolint:nilerr // the size is of another family
	}

	return c.Spec.ParentPoolRef + "/" + block.String(), nil
}

// pool returns the pool of a block, and creates it if it is missing.
func (r *Reconciler) pool(ctx context.Context, c *v1alpha1.SubnetPoolClaim, block *v1alpha1.SubnetClaim) (*v1alpha1.SubnetPool, error) {
	pools, err := r.pools(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(pools) == 0 {
		parent := &v1alpha1.SubnetPool{}
		if err := r.reader.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Spec.ParentPoolRef}, parent); err != nil {
			return nil, &notCreatedError{"SubnetPool", c.Name, fmt.Errorf("cannot read the parent pool: %w", err)}
		}

		return create(ctx, r, c, newPool(c, parent, block.Status.AllocatedCIDR), &v1alpha1.SubnetPool{}, fitsPool)
	}
	pool := pools[0].DeepCopy()
	before := pool.DeepCopy()
	if !take(pool, c) {
		return pool, nil
	}

	return pool, r.patch(ctx, pool, before)
}

// newPool returns the pool of a block. While the parent is being restored, the pool is
// too: Subnets of a pool that was lost may still arrive.
func newPool(c *v1alpha1.SubnetPoolClaim, parent *v1alpha1.SubnetPool, cidr string) *v1alpha1.SubnetPool {
	p := &v1alpha1.SubnetPool{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, Name: c.Name,
			Labels: map[string]string{v1alpha1.PoolClaimLabel: v1alpha1.PoolClaimLabelValue(c.Name), v1alpha1.IPAMLabel: "true"},
		},
		Spec: v1alpha1.SubnetPoolSpec{CIDR: cidr, Parent: c.Spec.ParentPoolRef},
	}
	if isLabel(c.Spec.ParentPoolRef) {
		p.Labels[v1alpha1.ParentLabel] = c.Spec.ParentPoolRef
	}
	if ipamrules.IsRestoring(parent) {
		p.Annotations = map[string]string{v1alpha1.PoolUIDAnnotation: parent.Annotations[v1alpha1.PoolUIDAnnotation]}
	}

	return p
}

// take labels an object that a former version made for a claim, or whose label was edited,
// and removes its owner reference. It reports whether that changed anything.
func take(o client.Object, c *v1alpha1.SubnetPoolClaim) bool {
	value := v1alpha1.PoolClaimLabelValue(c.Name)
	if o.GetName() != c.Name && !strings.HasPrefix(o.GetName(), value+"-") {
		return false // the owner reference is all that connects them
	}
	kept := slices.DeleteFunc(slices.Clone(o.GetOwnerReferences()), func(r metav1.OwnerReference) bool { return r.Kind == v1alpha1.SubnetPoolClaimKind })
	labels := o.GetLabels()
	if len(kept) == len(o.GetOwnerReferences()) && labels[v1alpha1.PoolClaimLabel] == value {
		return false
	}
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1alpha1.PoolClaimLabel] = value
	o.SetLabels(labels)
	o.SetOwnerReferences(kept)

	return true
}

// belongs reports whether an object was made for a claim. The UID of an owner reference
// must be the claim's; with the label, UIDs do not matter.
func belongs(o client.Object, c *v1alpha1.SubnetPoolClaim) bool {
	return isOwnBlock(o, c.Name) || v1alpha1.PoolClaimOf(o) == c.Name || metav1.IsControlledBy(o, c)
}

// fitsBlock reports whether a claim for a block asks for what a SubnetPoolClaim needs.
func fitsBlock(b *v1alpha1.SubnetClaim, c *v1alpha1.SubnetPoolClaim) bool {
	return b.Spec.PoolRef == c.Spec.ParentPoolRef && b.Spec.BlockSize != nil && *b.Spec.BlockSize == c.Spec.DesiredBlockSize
}

// fitsPool reports whether a pool is a child of the pool that a SubnetPoolClaim names.
func fitsPool(p *v1alpha1.SubnetPool, c *v1alpha1.SubnetPoolClaim) bool {
	return p.ParentName() == c.Spec.ParentPoolRef
}

// blocks lists the claims for blocks of a SubnetPoolClaim, the one of its own name
// first. They belong to the cache.
func (r *Reconciler) blocks(ctx context.Context, c *v1alpha1.SubnetPoolClaim) ([]v1alpha1.SubnetClaim, error) {
	list := &v1alpha1.SubnetClaimList{}
	if err := r.list(ctx, client.ObjectKeyFromObject(c), list); err != nil {
		return nil, err
	}

	return chosen(c, list.Items, func(b *v1alpha1.SubnetClaim) (client.Object, bool) { return b, fitsBlock(b, c) }), nil
}

// pools lists the pools of a SubnetPoolClaim, the one of its own name first. They
// belong to the cache.
func (r *Reconciler) pools(ctx context.Context, c *v1alpha1.SubnetPoolClaim) ([]v1alpha1.SubnetPool, error) {
	list := &v1alpha1.SubnetPoolList{}
	if err := r.list(ctx, client.ObjectKeyFromObject(c), list); err != nil {
		return nil, err
	}

	return chosen(c, list.Items, func(p *v1alpha1.SubnetPool) (client.Object, bool) { return p, fitsPool(p, c) }), nil
}

// list lists what was made for a SubnetPoolClaim of this name. It belongs to the cache.
func (r *Reconciler) list(ctx context.Context, key types.NamespacedName, list client.ObjectList) error {
	err := r.client.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{madeForIndexKey: key.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("cannot list what belongs to SubnetPoolClaim %s: %w", key, err)
	}

	return nil
}

// chosen returns the items that belong to a claim and fit its spec, the one of its own
// name first.
func chosen[T any](c *v1alpha1.SubnetPoolClaim, items []T, fits func(*T) (client.Object, bool)) []T {
	var first, rest []T
	for i := range items {
		switch o, ok := fits(&items[i]); {
		case !ok || !belongs(o, c):
		case o.GetName() == c.Name:
			first = append(first, items[i])
		default:
			rest = append(rest, items[i])
		}
	}

	return append(first, rest...)
}
