package delivery

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
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// readers is how many slices of a composition are read at a time. Nothing is applied before all
// of them are read.
const readers = 4

// load reads the slices of a composition, past the cache, which has no manifests.
func (l *loader) load(ctx context.Context, c *enov1.Composition, old *view) (*view, error) {
	all, err := l.slices(ctx, c, c.Status.CurrentSynthesis, c.DeletionTimestamp != nil)
	if isLost(all, err, c) && old.isOfSlices(c) && !old.elsewhere {
		switch failed := l.restoreAll(ctx, old, c); {
		case failed == nil:
			all, err = l.slices(ctx, c, c.Status.CurrentSynthesis, c.DeletionTimestamp != nil)
		case !isTerminating(failed):
			return nil, failed // only the old view has the manifests
		}
	}
	if err != nil {
		return nil, err
	}
	v := l.newView(c, all)
	if len(all) < len(c.Status.CurrentSynthesis.ResourceSlices) {
		v.reloadAt = l.now().Add(reloadDelay)
	}
	v.adopt(old)
	if old == nil {
		v.recallHooks(c)
		l.recallDenials(v, c)
		if err := l.recall(ctx, c, v); err != nil {
			return nil, err
		}
	}
	v.remembers(c)
	if err := l.guardPruning(ctx, v, old, c); err != nil {
		return nil, err
	}

	return v, nil
}

// recall finds out what earlier syntheses tell: what was desired by the one before,
// if this one is not done yet, and which of the objects that are to go were
// delivered. A tombstone may have been carried over from one to the other before
// anybody came to it.
func (l *loader) recall(ctx context.Context, c *enov1.Composition, v *view) error {
	last := c.Status.PreviousSynthesis
	if last == nil {
		return nil
	}
	if c.Status.CurrentSynthesis.Reconciled == nil && !v.deleting || v.unproven() {
		if err := l.recallFrom(ctx, c, last, v, func(it *item, r *decide.Resource) { it.previous = pack(r) }); err != nil {
			return err
		}
	}
	for i := range c.Status.History {
		if !v.unproven() {
			return nil
		}
		if err := l.recallFrom(ctx, c, &c.Status.History[i], v, func(*item, *decide.Resource) {}); err != nil {
			return err
		}
	}

	return nil
}

// recallFrom reads one synthesis, and hands over what it desired.
func (l *loader) recallFrom(ctx context.Context, c *enov1.Composition, from *enov1.Synthesis, v *view, desired func(*item, *decide.Resource)) error {
	all, err := l.slices(ctx, c, from, true)
	if err != nil {
		return err
	}
	for _, s := range all {
		for i, m := range s.Spec.Resources {
			r, _ := l.readManifest(m, c.Annotations) // what is wrong with it is of no interest any more
			if r == nil || v.byID[r.Identity] == nil {
				continue
			}
			it := v.byID[r.Identity]
			if i < len(s.Status.Resources) {
				it.memory.left(s.Status.Resources[i].UID)
			}
			if !r.Tombstone {
				desired(it, r)
			}
		}
	}

	return nil
}

// slices reads those of a synthesis. Those that are lost are an error, unless some are enough.
func (l *loader) slices(ctx context.Context, c *enov1.Composition, s *enov1.Synthesis, some bool) ([]enov1.ResourceSlice, error) {
	read := make([]*enov1.ResourceSlice, len(s.ResourceSlices))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, ref := range s.ResourceSlices {
		group.Go(func() error {
			one, err := l.slice(ctx, c, ref)
			if some && (apierrors.IsNotFound(err) || isRejected(err)) {
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

// firstAttempts is how long after its start a manager has attempted everything at least once.
const firstAttempts = 90 * time.Second

// recallDenials keeps the condition about permissions that an earlier manager has written until this
// one has attempted everything.
func (l *loader) recallDenials(v *view, c *enov1.Composition) {
	if l.scope.Restricts() && meta.IsStatusConditionTrue(c.Status.Conditions, enov1.ConditionAccessDenied) {
		v.denials.unsureUntil = l.now().Add(firstAttempts)
		l.requeueAfter(v.name, firstAttempts+gather)
	}
}

// guardPruning decides whether tombstones of a view wait for a confirmation. It is for
// views that nothing works on yet.
func (l *loader) guardPruning(ctx context.Context, v, old *view, c *enov1.Composition) error {
	// If another delivery has some of the manifests, only the two together could decide.
	if !l.pruneGuard.Enabled() || v.deleting || v.shared {
		return nil
	}
	set, pending := v.pruned()
	if !pending {
		v.pruning = set

		return nil
	}
	var err error
	if set.Before, err = l.countBefore(ctx, c, set); err != nil {
		return err
	}
	v.pruning = set
	reason := l.pruneGuard.Blocks(set.Counts)
	confirmed := c.Annotations[enov1.AnnotationConfirmPrune]
	switch {
	case reason == "":
	case confirmed == set.digest, old != nil && old.pruning.covers(set, confirmed):
		v.pruning.confirmed = confirmed
	default:
		v.pruning.blocked = reason
	}

	return nil
}

// countBefore counts the objects of the synthesis before the current one, together with
// those that still wait to be deleted since an earlier one. It reads slices only if the
// number matters.
func (l *loader) countBefore(ctx context.Context, c *enov1.Composition, set pruneSet) (int, error) {
	seen := make(map[decide.Identity]bool, len(set.objects))
	for _, o := range set.objects {
		seen[o.Identity] = true
	}
	if set.Manifests == 0 || !l.pruneGuard.NeedsShare() || c.Status.PreviousSynthesis == nil {
		return len(seen), nil
	}
	all, err := l.slices(ctx, c, c.Status.PreviousSynthesis, true)
	if err != nil {
		return 0, err
	}
	for _, s := range all {
		for _, m := range s.Spec.Resources {
			r, _ := l.readManifest(m, nil) // invalid settings do not matter here
			if r != nil && !m.Deleted && !r.IsPatch() {
				seen[r.Identity] = true
			}
		}
	}

	return len(seen), nil
}

// remains are the objects in the slices of a composition that can be read.
func (l *loader) remains(ctx context.Context, c *enov1.Composition) []decide.Identity {
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
				r, _ := l.readManifest(m, c.Annotations) // invalid settings do not matter here
				if r == nil || m.Deleted || r.IsPatch() || seen[r.Identity] {
					continue
				}
				seen[r.Identity] = true
				all = append(all, claimsOf(r)...)
			}
		}
	}

	return all
}

// versionOf is what a view of a composition as it is now would be of.
func (l *loader) versionOf(c *enov1.Composition) version {
	v := version{
		uid: c.UID, slices: slicesOf(c.Status.CurrentSynthesis), settings: settingsOf(c),
		deleting: c.DeletionStarted(), abandoned: c.Abandoned(), account: l.scope.AccountOf(c, l.defaultAccount),
	}
	if text, ok := c.Annotations[enov1.AnnotationSuspend]; ok && !v.deleting {
		v.suspended = decide.ParseSuspension(text).String()
	}
	v.elsewhere = !l.selector.Matches(labels.Set(c.Labels))
	if l.filter != nil { // it may ask for any of them
		v.settings += fmt.Sprint(c.Labels, c.Annotations)
	}

	return v
}

// newView makes a view of a composition and its slices.
func (l *loader) newView(c *enov1.Composition, all []enov1.ResourceSlice) *view {
	v := newEmptyView(c, l.versionOf(c))
	for n := range all {
		v.addSlice(&all[n], func(m enov1.Manifest) (*decide.Resource, error) { return l.readManifest(m, c.Annotations) })
	}
	v.want()
	l.narrow(v, c, all)
	v.complete(c, all)

	return v
}
