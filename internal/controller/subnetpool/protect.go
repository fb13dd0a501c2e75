package subnetpool

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/kube"
)

// protect writes the finalizer, the record of the UID and the label of the
// SubnetPoolClaim in one patch, and reports whether there was anything to write.
func (g *Guard) protect(ctx context.Context, p *v1alpha1.SubnetPool) (bool, error) {
	before := p.DeepCopy()
	if !protected(p) {
		return false, nil
	}

	return true, g.patch(ctx, p, before)
}

// protected adds what every pool has, and reports whether anything was missing.
func protected(p *v1alpha1.SubnetPool) bool {
	before := p.ObjectMeta.DeepCopy()
	controllerutil.AddFinalizer(p, v1alpha1.Finalizer)
	if p.Annotations[v1alpha1.PoolUIDAnnotation] == "" {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1alpha1.PoolUIDAnnotation, string(p.UID))
	}
	disown(p)

	return !equality.Semantic.DeepEqual(*before, p.ObjectMeta)
}

// disown replaces the owner reference to a SubnetPoolClaim by a label. After a restore
// the claim has another UID, and the garbage collector would delete the pool. The owner
// reference stays if a label could not name the claim: nothing else connects the two.
func disown(p *v1alpha1.SubnetPool) {
	i := slices.IndexFunc(p.OwnerReferences, ipamrules.IsPoolClaim)
	if i < 0 {
		return
	}
	if p.Labels[v1alpha1.PoolClaimLabel] == "" {
		name := p.OwnerReferences[i].Name
		value := v1alpha1.PoolClaimLabelValue(name)
		if p.Name != name && !strings.HasPrefix(p.Name, value+"-") {
			return
		}
		metav1.SetMetaDataLabel(&p.ObjectMeta, v1alpha1.PoolClaimLabel, value)
	}
	p.OwnerReferences = slices.DeleteFunc(p.OwnerReferences, ipamrules.IsPoolClaim)
}

// patch writes the metadata of a pool, on condition that it has not changed.
func (g *Guard) patch(ctx context.Context, p, before *v1alpha1.SubnetPool) error {
	base := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := g.client.Patch(ctx, p, base); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("cannot write the metadata of pool %s/%s: %w", p.Namespace, p.Name, err))
	}

	return nil
}

// release removes the finalizer from a pool that is being deleted and is empty.
func (g *Guard) release(ctx context.Context, p *v1alpha1.SubnetPool) error {
	if !controllerutil.ContainsFinalizer(p, v1alpha1.Finalizer) {
		return nil
	}
	if used, err := g.used(ctx, p); err != nil || used {
		return err
	}
	before := p.DeepCopy()
	controllerutil.RemoveFinalizer(p, v1alpha1.Finalizer)

	return g.patch(ctx, p, before)
}

// few is how many Subnets of a pool are read first.
const few = 20

// used reports whether a pool has Subnets or child pools. The cache is asked first: a pool that it
// shows to be used needs no other answer. That there is no Subnet, only the API server knows. An
// open child pool has a Subnet here, so this covers child pools that the cache has not seen.
func (g *Guard) used(ctx context.Context, p *v1alpha1.SubnetPool) (bool, error) {
	// Each Subnet that is deleted leads here, so a pool with many must not cost a list of
	// all of them each time.
	for _, limit := range []client.Limit{few, 0} {
		subnets := &v1alpha1.SubnetList{}
		fields := client.MatchingFields{kube.SubnetPoolRefIndexKey: p.Name}
		if err := g.client.List(ctx, subnets, client.InNamespace(p.Namespace), fields, limit, client.UnsafeDisableDeepCopy); err != nil {
			return false, fmt.Errorf("cannot list Subnets: %w", err)
		}
		if slices.ContainsFunc(subnets.Items, func(s v1alpha1.Subnet) bool { return s.Status.Phase != v1alpha1.SubnetFailed }) {
			return true, nil
		}
	}
	children, err := kube.ChildPools(ctx, g.client, p.Namespace, p.Name)
	if err != nil {
		return false, err
	}
	ring, err := g.ring(ctx, p)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(children, func(c v1alpha1.SubnetPool) bool { return !ring[c.Name] }) {
		return true, nil
	}
	used := false
	err = kube.LiveSubnets(ctx, g.reader, p.Namespace, p.Name, func(s *v1alpha1.Subnet) bool {
		used = s.Status.Phase != v1alpha1.SubnetFailed

		return !used
	})

	return used, err
}

// ring returns the names of the pools that p is above and below at once, p itself
// included, if all of them are being deleted. None of them would ever be the first to
// be empty.
func (g *Guard) ring(ctx context.Context, p *v1alpha1.SubnetPool) (map[string]bool, error) {
	names, back, err := ipamrules.Ancestors(p.Name, func(name string) (*v1alpha1.SubnetPool, error) {
		if name == p.Name {
			return p, nil
		}
		above, err := kube.Find(ctx, g.client, &v1alpha1.SubnetPool{}, p.Namespace, name)
		if above != nil && above.DeletionTimestamp == nil {
			above = nil // not a ring
		}

		return above, err
	})
	ring := map[string]bool{p.Name: true}
	if err != nil || back != 0 {
		return ring, err
	}
	for _, name := range names {
		ring[name] = true
	}

	return ring, nil
}
