package synthesis

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// Indexes of the cache.
const (
	bySynthesizer = "synthesis.synthesizer"
	byDependency  = "synthesis.dependency"
	byOwner       = "synthesis.owner"
)

func index(ctx context.Context, indexer client.FieldIndexer) error {
	for _, i := range []struct {
		object client.Object
		name   string
		keys   func(client.Object) []string
	}{
		{&enov1.Composition{}, bySynthesizer, func(o client.Object) []string {
			c, ok := o.(*enov1.Composition)
			if !ok {
				return nil
			}

			return []string{c.Spec.Synthesizer.Name}
		}},
		{&enov1.Composition{}, byDependency, func(o client.Object) []string {
			var keys []string
			for _, d := range dependencies(o) {
				keys = append(keys, d.String())
			}

			return keys
		}},
		{&enov1.ResourceSlice{}, byOwner, func(o client.Object) []string {
			if owner := owner(o); owner != nil {
				return []string{owner.Name}
			}

			return nil
		}},
	} {
		if err := indexer.IndexField(ctx, i.object, i.name, i.keys); err != nil {
			return fmt.Errorf("cannot index by %s: %w", i.name, err)
		}
	}

	return nil
}

// dependencies are the compositions that one names.
func dependencies(o client.Object) []types.NamespacedName {
	c, ok := o.(*enov1.Composition)
	if !ok {
		return nil
	}
	var keys []types.NamespacedName
	for _, d := range c.Spec.DependsOn {
		key := types.NamespacedName{Namespace: d.Namespace, Name: d.Name}
		if key.Namespace == "" {
			key.Namespace = c.Namespace
		}
		keys = append(keys, key)
	}

	return keys
}

// owner is the composition that a slice is of.
func owner(slice client.Object) *metav1.OwnerReference {
	o := metav1.GetControllerOf(slice)
	if o == nil || o.Kind != enov1.CompositionKind {
		return nil
	}

	return o
}

// compositionOf maps a slice to its composition.
func compositionOf(_ context.Context, o client.Object) []reconcile.Request {
	owner := owner(o)
	if owner == nil {
		return nil
	}

	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name}}}
}

// usersOf maps a Synthesizer to the compositions that use it.
func (r *Reconciler) usersOf(ctx context.Context, o client.Object) []reconcile.Request {
	return r.list(ctx, client.MatchingFields{bySynthesizer: o.GetName()})
}

// neighborsOf maps a composition to those that depend on it, which may be
// waiting for it to be ready, and to those that it depends on, which may be
// waiting for it to be gone.
func (r *Reconciler) neighborsOf(ctx context.Context, o client.Object) []reconcile.Request {
	all := r.list(ctx, client.MatchingFields{byDependency: client.ObjectKeyFromObject(o).String()})
	for _, key := range dependencies(o) {
		all = append(all, reconcile.Request{NamespacedName: key})
	}

	return all
}

func (r *Reconciler) list(ctx context.Context, which client.MatchingFields) []reconcile.Request {
	list := &enov1.CompositionList{}
	// The cache answers from memory; it fails only if it is not there.
	if err := r.client.List(ctx, list, which, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	all := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}

	return all
}

// cachedDigest marks the entry of the managed fields of a slice in the cache that has the digest of
// its spec. The API server accepts no such operation, so no user can write this entry.
const cachedDigest = metav1.ManagedFieldsOperationType("Digest")

// Slim reduces a slice before a cache keeps it: of every manifest, only the part remains that
// names its object, and of the spec its digest. A composition and its history would otherwise be in
// memory several times. Code that needs the manifests reads the slice from the API server.
func Slim(o any) (any, error) {
	if m, ok := o.(*metav1.PartialObjectMetadata); ok {
		m.ManagedFields = nil // delivery watches slices without their content
	}
	if s, ok := o.(*enov1.ResourceSlice); ok && digestOf(s) == "" {
		s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: tenancy.Digest(&s.Spec), Operation: cachedDigest}}
		for i := range s.Spec.Resources {
			s.Spec.Resources[i].Manifest = decide.Head(s.Spec.Resources[i].Manifest)
		}
	}

	return o, nil
}

// digestOf returns the digest of the spec of a slice in the cache.
func digestOf(s *enov1.ResourceSlice) string {
	if len(s.ManagedFields) != 1 || s.ManagedFields[0].Operation != cachedDigest {
		return ""
	}

	return s.ManagedFields[0].Manager
}
