package synthesis

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
)

// heal forces a synthesis of a composition if a slice of its current synthesis is lost.
func (r *Reconciler) heal(ctx context.Context, v decide.View) error {
	c := v.Composition
	lost := slices.ContainsFunc(v.Current, func(s *enov1.ResourceSlice) bool { return s == nil || s.DeletionTimestamp != nil })
	if !lost || !v.AwaitsSlices(r.now()).IsZero() || c.DeletionTimestamp != nil || c.Status.InFlightSynthesis != nil || c.Annotations[enov1.AnnotationForceResynthesis] == c.Status.CurrentSynthesis.UUID {
		return nil
	}
	changed := c.DeepCopy()
	if changed.Annotations == nil {
		changed.Annotations = map[string]string{}
	}
	changed.Annotations[enov1.AnnotationForceResynthesis] = c.Status.CurrentSynthesis.UUID
	if err := r.client.Patch(ctx, changed, client.MergeFrom(c)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("cannot force a synthesis of Composition %s/%s: %w", c.Namespace, c.Name, err))
	}
	r.reportLost(v)

	return nil
}

// collect deletes slices that no synthesis needs. A slice can be newer than the
// composition that the cache has, so the last word is that of the API server.
func (r *Reconciler) collect(ctx context.Context, c *enov1.Composition, all []*enov1.ResourceSlice) error {
	// Those without owner reference are of a composition that is being deleted.
	all = slices.DeleteFunc(slices.Clone(all), func(s *enov1.ResourceSlice) bool { return owner(s) == nil })
	if !slices.ContainsFunc(all, func(s *enov1.ResourceSlice) bool { return !owns(c.UID, s) }) && len(decide.Garbage(&c.Status, all)) == 0 {
		return nil
	}
	live := &enov1.Composition{}
	if err := r.reader.Get(ctx, client.ObjectKeyFromObject(c), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	garbage := decide.Garbage(&live.Status, all)
	for _, s := range all {
		if owns(live.UID, s) && !slices.Contains(garbage, s) {
			continue
		}
		if err := r.remove(ctx, s); err != nil {
			return err
		}
	}

	return nil
}

func owns(uid types.UID, s *enov1.ResourceSlice) bool {
	o := owner(s)

	return o != nil && o.UID == uid
}

// release releases a composition. Its slices are released first, since their reason would not be
// known without it.
func (r *Reconciler) release(ctx context.Context, c *enov1.Composition, all []*enov1.ResourceSlice) error {
	for _, s := range all {
		if err := r.remove(ctx, s); err != nil {
			return err
		}
	}

	return r.finalizer(ctx, c, controllerutil.RemoveFinalizer)
}

// forget deletes what a deleted composition left behind: slices that were being written when it was
// deleted, or all if another client removed its finalizer.
func (r *Reconciler) forget(ctx context.Context, key types.NamespacedName) error {
	if err := r.inputs.drop(ctx, key); err != nil {
		return err
	}
	all, err := r.slices(ctx, key)
	if err != nil || len(all) == 0 {
		return err
	}
	if err := r.reader.Get(ctx, key, &enov1.Composition{}); !apierrors.IsNotFound(err) {
		return err // the cache is behind
	}
	for _, s := range all {
		if err := r.remove(ctx, s); err != nil {
			return err
		}
	}

	return nil
}

// remove deletes a slice. Its finalizer is removed first: in the other order, the resource version
// that was read would be outdated for the second write.
func (r *Reconciler) remove(ctx context.Context, s *enov1.ResourceSlice) error {
	if slices.Contains(s.Finalizers, enov1.Finalizer) {
		changed := s.DeepCopy()
		controllerutil.RemoveFinalizer(changed, enov1.Finalizer)
		if err := r.client.Patch(ctx, changed, client.MergeFromWithOptions(s, client.MergeFromWithOptimisticLock{})); err != nil {
			return client.IgnoreNotFound(fmt.Errorf("cannot remove the finalizer of ResourceSlice %s/%s: %w", s.Namespace, s.Name, err))
		}
	}
	if s.DeletionTimestamp != nil {
		return nil
	}
	if err := r.client.Delete(ctx, s, client.Preconditions{UID: &s.UID}); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("cannot delete ResourceSlice %s/%s: %w", s.Namespace, s.Name, err))
	}

	return nil
}

// finalizer changes that of a composition.
func (r *Reconciler) finalizer(ctx context.Context, c *enov1.Composition, change func(client.Object, string) bool) error {
	changed := c.DeepCopy()
	if !change(changed, enov1.Finalizer) {
		return nil
	}
	if err := r.client.Patch(ctx, changed, client.MergeFromWithOptions(c, client.MergeFromWithOptimisticLock{})); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("cannot change the finalizers of Composition %s/%s: %w", c.Namespace, c.Name, err))
	}

	return nil
}
