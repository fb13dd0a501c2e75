package delivery

import (
	"slices"

	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// chain finds the items that are about one object. It is for views that nothing works
// on yet.
func (v *view) chain() {
	patched := map[decide.Identity]bool{}
	for _, it := range v.items {
		if !hidden(it) && it.IsPatch() {
			patched[it.Target()] = true
		}
	}
	if len(patched) == 0 {
		return
	}
	v.dropTombstones(patched)
	for _, chain := range decide.Chains(v.resources()) {
		for at, i := range chain {
			it := v.items[i]
			it.chained = len(chain) > 1
			for _, j := range chain[at+1:] {
				if decide.Supersedes(v.items[j].Resource, it.Resource, it.text.object().Object) {
					it.rivals = append(it.rivals, j)
				}
			}
		}
	}
}

// dropTombstones hides those of objects that Patches change now, which slices of an
// earlier release may have.
func (v *view) dropTombstones(patched map[decide.Identity]bool) {
	for _, it := range v.items {
		if !hidden(it) && it.Tombstone && patched[it.Target()] && v.byID[it.Identity] == it {
			delete(v.byID, it.Identity)
			it.problem = &duplicateError{id: it.Identity, tombstone: true}
			it.Resource = nil
		}
	}
}

// mayRun reports whether it is the turn of an item, and no later one has replaced it.
// The lock is held.
func (v *view) mayRun(it *item) bool {
	if v.suspended != "" || v.pruning.blocked != "" && it.IsGuarded() && !it.first {
		return false
	}

	return v.schedule.Open(it.place) && (v.deleting || !slices.ContainsFunc(it.rivals, v.schedule.Open))
}

// advance tells the schedule the state of an item, and returns the items that may run
// because of it. The lock is held.
func (v *view) advance(it *item) (opened []*item) {
	var places []int
	if v.done(it.state) {
		places = v.schedule.Done(it.place)
	}
	if it.state.Reconciled && !v.deleting {
		places = append(places, v.schedule.Applied(it.place)...)
	}
	for _, i := range places {
		opened = append(opened, v.items[i])
	}

	return opened
}

// unusable counts the manifests that nobody can apply. Nothing is pruned before they
// are repaired: they may stand for what would be pruned.
func (v *view) unusable() int {
	n := 0
	for _, it := range v.items {
		twice, ok := it.problem.(*duplicateError) //nolint:errorlint // nobody wraps it
		if hidden(it) && !it.elsewhere && !v.deleting && (!ok || !twice.tombstone) {
			n++
		}
	}

	return n
}

// ran reports whether a Patch has deleted its target in this synthesis.
func (v *view) ran(it *item) bool {
	v.mu.Lock()
	defer v.mu.Unlock()

	return !v.deleting && it.IsPatch() && v.items[it.place].state.Deleted
}

// keeps reports whether an item whose turn it is not is kept as it was applied last by
// this process. Objects with overrides are not: what those made of a manifest then may
// be wrong now. Neither are objects that a Patch of this synthesis decides about.
func (v *view) keeps(it *item) bool {
	m := it.memory

	return !v.deleting && v.suspended == "" && !it.Tombstone && !it.IsPatch() && !it.Overridden() && !it.chained && it.problem == nil &&
		m.judged == nil && m.desired != "" && m.tracked
}
