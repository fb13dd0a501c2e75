package load

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/controller/delivery/status"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// readers is how many slices of a composition are read at a time. Nothing is applied before all
// of them are read.
const readers = 4

// Load reads the slices of a composition, past the cache, which has no manifests.
func (l *Loader) Load(ctx context.Context, c *enov1.Composition, old *model.Composition) (*model.Composition, error) {
	all, err := l.slices(ctx, c, c.Status.CurrentSynthesis, c.DeletionTimestamp != nil)
	if isLost(all, err, c) && old.IsOfSlices(c) && !old.Foreign {
		switch failed := l.RestoreAll(ctx, old, c); {
		case failed == nil:
			all, err = l.slices(ctx, c, c.Status.CurrentSynthesis, c.DeletionTimestamp != nil)
		case !isTerminating(failed):
			return nil, failed // only the old view has the manifests
		}
	}
	if err != nil {
		return nil, err
	}
	v := l.NewView(c, all)
	if len(all) < len(c.Status.CurrentSynthesis.ResourceSlices) {
		v.ReloadAt = l.Now().Add(model.ReloadDelay)
	}
	v.InheritFrom(old)
	if old == nil {
		v.RestorePatchStates(c)
		l.RestoreDenials(v, c)
		if err := l.readHistory(ctx, c, v); err != nil {
			return nil, err
		}
	}
	v.RestoreReport(c)
	if err := l.GuardPruning(ctx, v, old, c); err != nil {
		return nil, err
	}

	return v, nil
}

// readHistory reads earlier syntheses: what the one before desired, if this one is not done yet,
// and which of the objects that must be deleted were delivered. A tombstone may have been carried
// over from one to the other before a worker had it.
func (l *Loader) readHistory(ctx context.Context, c *enov1.Composition, v *model.Composition) error {
	last := c.Status.PreviousSynthesis
	if last == nil {
		return nil
	}
	if c.Status.CurrentSynthesis.Reconciled == nil && !v.Deleting || v.HasUnprovenDeletion() {
		if err := l.readSynthesis(ctx, c, last, v, func(it *model.Item, r *decide.Resource) { it.Previous = model.PackResource(r) }); err != nil {
			return err
		}
	}
	for i := range c.Status.History {
		if !v.HasUnprovenDeletion() {
			return nil
		}
		if err := l.readSynthesis(ctx, c, &c.Status.History[i], v, func(*model.Item, *decide.Resource) {}); err != nil {
			return err
		}
	}

	return nil
}

// readSynthesis reads one synthesis, and hands over what it desired.
func (l *Loader) readSynthesis(ctx context.Context, c *enov1.Composition, from *enov1.Synthesis, v *model.Composition, desired func(*model.Item, *decide.Resource)) error {
	all, err := l.slices(ctx, c, from, true)
	if err != nil {
		return err
	}
	for _, s := range all {
		for i, m := range s.Spec.Resources {
			r, _ := l.ReadManifest(m, c.Annotations) // errors of an earlier synthesis do not matter any more
			if r == nil || v.ByID[r.Identity] == nil {
				continue
			}
			it := v.ByID[r.Identity]
			if i < len(s.Status.Resources) {
				it.Memory.RestoreUID(s.Status.Resources[i].UID)
			}
			if !r.Tombstone {
				desired(it, r)
			}
		}
	}

	return nil
}

// slices reads those of a synthesis. Those that are lost are an error, unless some are enough.
func (l *Loader) slices(ctx context.Context, c *enov1.Composition, s *enov1.Synthesis, some bool) ([]enov1.ResourceSlice, error) {
	read := make([]*enov1.ResourceSlice, len(s.ResourceSlices))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, ref := range s.ResourceSlices {
		group.Go(func() error {
			one, err := l.slice(ctx, c, ref)
			if some && (apierrors.IsNotFound(err) || model.IsRejected(err)) {
				l.reportLeft(c, s, err)

				return nil
			}
			if err != nil {
				return fmt.Errorf("cannot read slice %s of composition %s: %w", ref.Name, client.ObjectKeyFromObject(c), err)
			}
			read[i] = one

			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all := make([]enov1.ResourceSlice, 0, len(read))
	for _, one := range read {
		if one != nil {
			all = append(all, *one)
		}
	}

	return all, nil
}

// FirstAttempts is how long after its start a manager has attempted everything at least once.
const FirstAttempts = 90 * time.Second

// RestoreDenials keeps the condition about permissions that an earlier manager has written until this
// one has attempted everything.
func (l *Loader) RestoreDenials(v *model.Composition, c *enov1.Composition) {
	if l.Scope.Restricts() && meta.IsStatusConditionTrue(c.Status.Conditions, enov1.ConditionAccessDenied) {
		v.Denials.UnsureUntil = l.Now().Add(FirstAttempts)
		l.RequeueAfter(v.Name, FirstAttempts+status.Gather)
	}
}

// GuardPruning decides whether tombstones of a view wait for a confirmation. It is for
// views that nothing works on yet.
func (l *Loader) GuardPruning(ctx context.Context, v, old *model.Composition, c *enov1.Composition) error {
	// If another delivery has some of the manifests, only the two together could decide.
	if !l.PruneGuard.Enabled() || v.Deleting || v.Shared {
		return nil
	}
	set, pending := v.Pruned()
	if !pending {
		v.PruneSet = set

		return nil
	}
	var err error
	if set.Before, err = l.countBefore(ctx, c, set); err != nil {
		return err
	}
	v.PruneSet = set
	reason := l.PruneGuard.Blocks(set.Counts)
	confirmed := c.Annotations[enov1.AnnotationConfirmPrune]
	switch {
	case reason == "":
	case confirmed == set.Digest, old != nil && old.PruneSet.Covers(set, confirmed):
		v.PruneSet.Confirmed = confirmed
	default:
		v.PruneSet.Blocked = reason
	}

	return nil
}

// countBefore counts the objects of the synthesis before the current one, together with
// those that still wait to be deleted since an earlier one. It reads slices only if the
// number matters.
func (l *Loader) countBefore(ctx context.Context, c *enov1.Composition, set model.PruneSet) (int, error) {
	seen := make(map[decide.Identity]bool, len(set.Objects))
	for _, o := range set.Objects {
		seen[o.Identity] = true
	}
	if set.Manifests == 0 || !l.PruneGuard.NeedsShare() || c.Status.PreviousSynthesis == nil {
		return len(seen), nil
	}
	all, err := l.slices(ctx, c, c.Status.PreviousSynthesis, true)
	if err != nil {
		return 0, err
	}
	for _, s := range all {
		for _, m := range s.Spec.Resources {
			r, _ := l.ReadManifest(m, nil) // invalid settings do not matter here
			if r != nil && !m.Deleted && !r.IsPatch() {
				seen[r.Identity] = true
			}
		}
	}

	return len(seen), nil
}

// ReadableObjects are the objects in the slices of a composition that can be read.
func (l *Loader) ReadableObjects(ctx context.Context, c *enov1.Composition) []decide.Identity {
	seen := map[decide.Identity]bool{}
	var all []decide.Identity
	syntheses := []*enov1.Synthesis{c.Status.CurrentSynthesis, c.Status.PreviousSynthesis}
	for i := range c.Status.History {
		syntheses = append(syntheses, &c.Status.History[i])
	}
	for _, s := range syntheses {
		if s == nil {
			continue
		}
		for _, ref := range s.ResourceSlices {
			slice, err := l.slice(ctx, c, ref)
			if err != nil {
				continue
			}
			for _, m := range slice.Spec.Resources {
				r, _ := l.ReadManifest(m, c.Annotations) // invalid settings do not matter here
				if r == nil || m.Deleted || r.IsPatch() || seen[r.Identity] {
					continue
				}
				seen[r.Identity] = true
				all = append(all, model.ClaimsOf(r)...)
			}
		}
	}

	return all
}

// VersionOf is what a view of a composition as it is now would be of.
func (l *Loader) VersionOf(c *enov1.Composition) model.Version {
	v := model.Version{
		UID: c.UID, SliceNames: model.SlicesOf(c.Status.CurrentSynthesis), Settings: model.SettingsOf(c),
		Deleting: c.DeletionStarted(), Abandoned: c.Abandoned(), Account: l.Scope.AccountOf(c, l.DefaultAccount),
	}
	if text, ok := c.Annotations[enov1.AnnotationSuspend]; ok && !v.Deleting {
		v.Suspended = decide.ParseSuspension(text).String()
	}
	v.Foreign = !l.Selector.Matches(labels.Set(c.Labels))
	if l.Filter != nil { // it may ask for any of them
		v.Settings += fmt.Sprint(c.Labels, c.Annotations)
	}

	return v
}

// NewView makes a view of a composition and its slices.
func (l *Loader) NewView(c *enov1.Composition, all []enov1.ResourceSlice) *model.Composition {
	v := model.New(c, l.VersionOf(c))
	for n := range all {
		v.AddSlice(&all[n], func(m enov1.Manifest) (*decide.Resource, error) { return l.ReadManifest(m, c.Annotations) })
	}
	v.CollectWants()
	l.applyFilter(v, c, all)
	v.Complete(c, all)

	return v
}
