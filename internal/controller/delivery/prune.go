package delivery

import (
	"context"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

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

// block reports tombstones that wait for a confirmation. Workers may still delete one of
// them, if they have begun before it was blocked.
func (d *Deliverer) block(v *view) {
	if v.pruning.blocked == "" {
		return
	}
	remains := func(s enov1.ResourceState) bool { return !s.Deleted }
	for _, it := range v.items {
		if hidden(it) || !it.IsGuarded() || it.first {
			continue
		}
		text := "it is not deleted: see the condition " + enov1.ConditionPruneBlocked
		if s, changed := v.settleIf(it, remains, enov1.ResourceState{ReconciliationError: &text}); changed {
			d.publish(v, it, s)
		}
	}
}

// countBlocked counts the compositions whose objects are not deleted before a user
// confirms it.
func (r *registry) countBlocked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, v := range r.views {
		if v.pruning.blocked != "" {
			n++
		}
	}

	return n
}
