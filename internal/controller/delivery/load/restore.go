package load

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/controller/delivery/status"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/kube"
)

// isLost reports whether slices of the current synthesis of a composition do not exist.
func isLost(read []enov1.ResourceSlice, err error, c *enov1.Composition) bool {
	if err != nil {
		return apierrors.IsNotFound(err)
	}

	return len(read) < len(c.Status.CurrentSynthesis.ResourceSlices)
}

// isTerminating reports whether an object cannot be created because its namespace is being deleted,
// or does not exist any more.
func isTerminating(err error) bool {
	_, gone := kube.MissingNamespace(err)

	return gone || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// RestoreAll restores all slices of a composition that do not exist. The view is of these slices.
func (l *Loader) RestoreAll(ctx context.Context, v *model.Composition, c *enov1.Composition) error {
	for _, s := range v.Slices {
		err := l.Reader.Get(ctx, s.NamespacedName, &enov1.ResourceSlice{})
		switch {
		case apierrors.IsNotFound(err):
			err = l.restore(ctx, v, s, c)
		case err != nil:
			err = fmt.Errorf("cannot read slice %s: %w", s.NamespacedName, err)
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// restore creates a slice again that another client has deleted in spite of its finalizer, with
// the states that are known: a write that found no slice was dropped. The caller has seen that the
// slice does not exist. A slice whose objects are all deleted is not needed any more, and of one that
// several deliveries share, none knows all manifests.
func (l *Loader) restore(ctx context.Context, v *model.Composition, s *model.Slice, c *enov1.Composition) error {
	s.Lock()
	defer s.Unlock()
	manifests, err := v.Manifests(s)
	if err != nil || len(manifests) == 0 || c.Abandoned() {
		return err
	}
	states := v.States(s)
	if v.Deleting && !slices.ContainsFunc(states, func(s enov1.ResourceState) bool { return !s.Deleted }) {
		return nil
	}
	restored := &enov1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: s.Name, Finalizers: []string{enov1.Finalizer}, Annotations: map[string]string{enov1.AnnotationRestored: "true"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c, enov1.GroupVersion.WithKind(enov1.CompositionKind))},
		},
		Spec: enov1.ResourceSliceSpec{SynthesisUUID: s.UUID, Resources: manifests},
	}
	// The digest comes first: if one of the two fails, the slice still does not exist, and both are
	// repeated. A slice that existed without its digest would be rejected.
	if err := l.recordDigest(ctx, c, restored); err != nil {
		return fmt.Errorf("cannot record the digest of slice %s, which is restored next: %w", s.NamespacedName, err)
	}
	if err := l.Client.Create(ctx, restored); err != nil {
		return fmt.Errorf("cannot restore slice %s: %w", s.NamespacedName, err)
	}
	l.Events.Record(v.Owner, nil, corev1.EventTypeWarning, "SliceRestored", fmt.Sprintf("ResourceSlice %s was deleted in spite of its finalizer, and is restored: only it records which objects were delivered. Do not delete slices by hand", s.Name))
	s.Initialized, s.Version, s.Rejected = false, restored.ResourceVersion, ""
	if slices.ContainsFunc(states, model.IsRecorded) { // otherwise they are written with the first one
		l.restoreStates(ctx, v, s, states)
	}

	return nil
}

// recordDigest writes the digest of a slice that is restored to the status of its composition, without which
// it would not belong to it: its manifests mean the same as before, and may be written differently.
func (l *Loader) recordDigest(ctx context.Context, c *enov1.Composition, restored *enov1.ResourceSlice) error {
	refs := c.Status.CurrentSynthesis.ResourceSlices
	i := slices.IndexFunc(refs, func(ref *enov1.ResourceSliceRef) bool { return ref.Name == restored.Name })
	digest := tenancy.Digest(&restored.Spec)
	if i < 0 || refs[i].Digest == "" || refs[i].Digest == digest {
		return nil
	}
	const current = "/status/currentSynthesis"
	ref := fmt.Sprintf("%s/resourceSlices/%d", current, i)
	data, err := json.Marshal([]status.Operation{
		{Op: "test", Path: current + "/uuid", Value: c.Status.CurrentSynthesis.UUID},
		{Op: "test", Path: ref + "/name", Value: restored.Name},
		{Op: "replace", Path: ref + "/digest", Value: digest},
	})
	if err != nil {
		return err
	}

	return l.Client.Status().Patch(ctx, c, client.RawPatch(types.JSONPatchType, data))
}

// restoreStates writes the states of a slice that was restored, at once if possible: a process
// that is killed must not repeat what was done. The lock of the slice is held.
func (l *Loader) restoreStates(ctx context.Context, v *model.Composition, s *model.Slice, states []enov1.ResourceState) {
	err := l.Status.Patch(ctx, s, []status.Operation{{Op: "add", Path: "/status", Value: enov1.ResourceSliceStatus{Resources: states}}})
	s.Initialized = err == nil
	for _, it := range v.Items {
		if it.Slice == s && err != nil {
			l.Publish(v, it, v.StateOf(it)) // until it succeeds
		}
	}
}
