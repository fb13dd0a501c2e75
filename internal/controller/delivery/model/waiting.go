package model

import (
	"fmt"
	"slices"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/delivery/pruning"
	"github.com/arbor-control/arbor/internal/krm"
)

// maxRejection is how much of an error the condition PruneWaiting has.
const maxRejection = 400

// A failure is a manifest that cannot be applied, and why.
type failure struct {
	id, object decide.Identity
	message    string
}

// noteFailure keeps track of the manifests that cannot be applied. The lock is held.
func (v *Composition) noteFailure(it *Item) {
	if IsInvalid(it) || it.Tombstone || it.State.Reconciled || it.State.ReconciliationError == nil {
		delete(v.failing, it.Position)

		return
	}
	v.failing[it.Position] = true
}

// ConcernsWaiting reports whether the condition PruneWaiting may change with the new
// state of an item.
func (v *Composition) ConcernsWaiting(s enov1.ResourceState) bool {
	v.mu.Lock()
	defer v.mu.Unlock()

	return len(v.tombstones) > 0 && (v.rejected || s.ReconciliationError != nil)
}

// waitingDeletions returns the manifests that cannot be applied and the objects that are deleted
// later, both in the order of the synthesis, and none if either is missing. It is all
// that needs the lock.
func (v *Composition) waitingDeletions() (failures []failure, waiting []decide.Identity) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rejected = false
	if v.Deleting || v.Suspended != "" || len(v.failing) == 0 {
		return nil, nil
	}
	for _, place := range v.tombstones {
		if it := v.Items[place]; !it.State.Deleted && !v.mayRun(it) {
			waiting = append(waiting, it.Identity)
		}
	}
	if len(waiting) == 0 {
		return nil, nil
	}
	v.rejected = true
	places := make([]int, 0, len(v.failing))
	for place := range v.failing {
		places = append(places, place)
	}
	slices.Sort(places)
	for _, place := range places {
		it := v.Items[place]
		failures = append(failures, failure{it.Identity, it.Target(), *it.State.ReconciliationError})
	}

	return failures, waiting
}

// PruneWaiting describes a manifest that cannot be applied, probably because a tombstone
// must be deleted first, "" if there is none.
func (v *Composition) PruneWaiting() string {
	failures, waiting := v.waitingDeletions()
	index := pruning.NewWaiting(waiting)
	text, more := "", 0
	for _, f := range failures {
		if !index.Hinders(f.object, f.message) {
			continue
		}
		if text != "" {
			more++

			continue
		}
		if first := pruning.DeleteFirst(f.object, f.message, waiting); len(first) > 0 {
			text = fmt.Sprintf("%s cannot be applied (%s). It may need one of these objects to be deleted first, which are deleted last: %s. To delete one now: arbor delivery prune %s -n %s --first %s",
				f.id, krm.Shorten(f.message, maxRejection), firstOf(first), v.Name.Name, v.Name.Namespace, first[0].Argument())
		}
	}
	if more > 0 {
		text += fmt.Sprintf(" (and %d more manifests)", more)
	}

	return text
}
