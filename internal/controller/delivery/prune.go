package delivery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// What keeps a synthesis from deleting objects until somebody confirms it.
const (
	// PruneGuardEmpty stops a synthesis without manifests.
	PruneGuardEmpty = "empty"
	// PruneGuardOff stops nothing.
	PruneGuardOff = "off"
)

// maxNamed is how many objects the condition PruneBlocked names.
const maxNamed = 5

// A pruneSet is what a synthesis without manifests would delete.
type pruneSet struct {
	objects []decide.Identity
	digest  string
	// confirmed is the value of the annotation that allowed it.
	confirmed string
	blocked   bool
	// shared : another delivery has a part of the synthesis, so that only the two
	// together could tell.
	shared bool
}

// guardPruning decides whether tombstones of a view wait for a confirmation: if the
// synthesis has no manifest at all, would delete two objects or more, and nobody asked
// for it. It is for views that nothing works on yet.
func (d *Deliverer) guardPruning(v, old *view, c *enov1.Composition) {
	if d.pruneGuard == PruneGuardOff || v.deleting {
		return
	}
	set, pending := v.pruned()
	confirmed := c.Annotations[enov1.AnnotationConfirmPrune]
	switch {
	case !pending || len(set.objects) < 2 || isAsked(&c.Status, c.Annotations):
	case confirmed == set.digest, old != nil && old.pruning.covers(set, confirmed):
		set.confirmed = confirmed
	default:
		set.blocked = true
	}
	v.pruning = set
}

// pruned is what a synthesis without manifests would delete, and whether some of it is
// not deleted yet. There is nothing if it has manifests.
func (v *view) pruned() (set pruneSet, pending bool) {
	for _, it := range v.items {
		switch {
		case it.elsewhere:
			return pruneSet{shared: true}, false
		case hidden(it) || !it.Tombstone:
			return pruneSet{}, false
		}
		pending = pending || !it.state.Deleted
		// Those that are gone are among them, or the digest would change on the way.
		set.objects = append(set.objects, it.Identity)
	}
	set.digest = digestOf(set.objects)

	return set, pending
}

// isAsked reports whether a person asked for the current synthesis: by an edit of the
// composition, by force or by a rollback.
func isAsked(st *enov1.CompositionStatus, annotations map[string]string) bool {
	current, last := st.CurrentSynthesis, st.PreviousSynthesis
	switch {
	case last == nil, current.RolledBackTo != "":
		return true
	case current.ObservedCompositionGeneration != last.ObservedCompositionGeneration:
		return true
	}

	return annotations[enov1.AnnotationForceResynthesis] == last.UUID
}

// covers reports whether a confirmation of this set holds for another one: for the same
// objects, or fewer.
func (p pruneSet) covers(other pruneSet, confirmed string) bool {
	return confirmed != "" && confirmed == p.confirmed &&
		!slices.ContainsFunc(other.objects, func(id decide.Identity) bool { return !slices.Contains(p.objects, id) })
}

func digestOf(objects []decide.Identity) string {
	all := make([]string, len(objects))
	for i, id := range objects {
		all[i] = fmt.Sprint(id.Group, " ", id)
	}
	slices.Sort(all)
	sum := sha256.Sum256([]byte(strings.Join(all, "\n")))

	return hex.EncodeToString(sum[:6])
}

// message names what is blocked, and how to confirm it.
func (p pruneSet) message() string {
	var all []string
	for _, id := range p.objects[:min(len(p.objects), maxNamed)] {
		all = append(all, id.String())
	}
	if n := len(p.objects) - maxNamed; n > 0 {
		all = append(all, fmt.Sprintf("and %d more", n))
	}

	return clip(fmt.Sprintf("the synthesis has no manifests and would delete %d objects: %s; to delete them, set the annotation %s to %q",
		len(p.objects), strings.Join(all, ", "), enov1.AnnotationConfirmPrune, p.digest))
}

// reportPruning writes the condition PruneBlocked of a composition, and removes it when
// nothing is blocked.
func (d *Deliverer) reportPruning(ctx context.Context, v *view, c *enov1.Composition) error {
	if v.elsewhere || v.pruning.shared {
		return nil
	}
	changed := c.DeepCopy()
	if v.pruning.blocked {
		meta.SetStatusCondition(&changed.Status.Conditions, metav1.Condition{
			Type: enov1.ConditionPruneBlocked, Status: metav1.ConditionTrue, Reason: enov1.ReasonEmptySynthesis, Message: v.pruning.message(), ObservedGeneration: c.Generation,
		})
	} else {
		meta.RemoveStatusCondition(&changed.Status.Conditions, enov1.ConditionPruneBlocked)
	}
	if len(changed.Status.Conditions) == len(c.Status.Conditions) && sameCondition(changed, c) {
		return nil
	}
	err := d.client.Status().Patch(ctx, changed, client.MergeFromWithOptions(c, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot write condition %s of composition %s: %w", enov1.ConditionPruneBlocked, v.name, err)
	}

	return nil
}

func sameCondition(a, b *enov1.Composition) bool {
	x, y := meta.FindStatusCondition(a.Status.Conditions, enov1.ConditionPruneBlocked), meta.FindStatusCondition(b.Status.Conditions, enov1.ConditionPruneBlocked)

	return x == nil && y == nil || x != nil && y != nil && *x == *y
}

// block reports tombstones that wait for a confirmation.
func (d *Deliverer) block(v *view) {
	if !v.pruning.blocked {
		return
	}
	for _, it := range v.items {
		if it.state.Deleted {
			continue
		}
		text := "it is not deleted: see the condition " + enov1.ConditionPruneBlocked
		if s, changed, _ := v.settle(it, enov1.ResourceState{ReconciliationError: &text, UID: it.state.UID}); changed {
			d.status.set(v, it, s)
		}
	}
}
