package model

import (
	"slices"

	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// chain finds the items that are about one object. It is for views that nothing works
// on yet.
func (v *Composition) chain() {
	patched := map[decide.Identity]bool{}
	for _, it := range v.Items {
		if !IsInvalid(it) && it.IsPatch() {
			patched[it.Target()] = true
		}
	}
	if len(patched) == 0 {
		return
	}
	v.dropTombstones(patched)
	for _, chain := range decide.Chains(v.resources()) {
		for at, i := range chain {
			it := v.Items[i]
			it.chained = len(chain) > 1
			for _, j := range chain[at+1:] {
				if decide.Supersedes(v.Items[j].Resource, it.Resource, it.Packed.Unpack().Object) {
					it.SupersededBy = append(it.SupersededBy, j)
				}
			}
		}
	}
}

// dropTombstones hides those of objects that Patches change now, which slices of an
// earlier release may have.
func (v *Composition) dropTombstones(patched map[decide.Identity]bool) {
	for _, it := range v.Items {
		if !IsInvalid(it) && it.Tombstone && patched[it.Target()] && v.ByID[it.Identity] == it {
			delete(v.ByID, it.Identity)
			it.Problem = &DuplicateError{id: it.Identity, Tombstone: true}
			it.Resource = nil
		}
	}
}

// mayRun reports whether it is the turn of an item, and no later one has replaced it.
// The lock is held.
func (v *Composition) mayRun(it *Item) bool {
	if v.Suspended != "" || v.PruneSet.Blocked != "" && it.IsGuarded() && !it.PruneNow {
		return false
	}

	return v.schedule.Open(it.Position) && (v.Deleting || !slices.ContainsFunc(it.SupersededBy, v.schedule.Open))
}

// advance passes the state of an item to the schedule, and returns the items that may run because
// of it. The lock is held.
func (v *Composition) advance(it *Item) (opened []*Item) {
	var places []int
	if v.done(it.State) {
		places = v.schedule.Done(it.Position)
	}
	if it.State.Reconciled && !v.Deleting {
		places = append(places, v.schedule.Applied(it.Position)...)
	}
	for _, i := range places {
		opened = append(opened, v.Items[i])
	}

	return opened
}

// unusable counts the manifests that cannot be applied. Nothing is pruned before they are repaired:
// they may stand for what would be pruned.
func (v *Composition) unusable() int {
	n := 0
	for _, it := range v.Items {
		twice, ok := it.Problem.(*DuplicateError) //nolint:errorlint // nobody wraps it
		if IsInvalid(it) && !it.Foreign && !v.Deleting && (!ok || !twice.Tombstone) {
			n++
		}
	}

	return n
}

// Ran reports whether a Patch has deleted its target in this synthesis.
func (v *Composition) Ran(it *Item) bool {
	v.mu.Lock()
	defer v.mu.Unlock()

	return !v.Deleting && it.IsPatch() && v.Items[it.Position].State.Deleted
}

// Keeps reports whether an item whose turn it is not is kept as it was applied last by
// this process. Objects with overrides are not: what those made of a manifest then may
// be wrong now. Neither are objects that a Patch of this synthesis decides about.
func (v *Composition) Keeps(it *Item) bool {
	m := it.Memory

	return !v.Deleting && v.Suspended == "" && !it.Tombstone && !it.IsPatch() && !it.Overridden() && !it.chained && it.Problem == nil &&
		m.Evaluated == nil && m.Desired != "" && m.Watched
}
