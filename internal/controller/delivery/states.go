package delivery

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// States are written some time after they are known, so what a slice has may be older
// than what a view has: a view that is rebuilt for the same slices takes over the states
// of the one that it replaces. Workers that still use the replaced view report to both.

// takeStates takes over the states of an earlier view of the same slices. The lock of
// that view is held, and nothing works on this one yet. Manifests that another delivery
// has are left out: their states are known from the slices only.
func (v *view) takeStates(old *view) {
	if old.uid != v.uid || old.slices != v.slices || len(old.items) != len(v.items) {
		return // a slice may have been lost
	}
	for i, it := range v.items {
		if was := old.items[i]; !was.elsewhere && !it.elsewhere && was.slice.NamespacedName == it.slice.NamespacedName && was.index == it.index {
			it.state = was.state
		}
	}
}

// replaceBy has states that are reported to a view from now on reported to another one,
// too, which takes over those that are known.
func (v *view) replaceBy(next *view) {
	v.mu.Lock()
	defer v.mu.Unlock()
	next.takeStates(v)
	v.next = next
}

// successor is the view that has replaced this one and delivers the same slices, nil if
// there is none.
func (v *view) successor() *view {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.next == nil || v.next.slices != v.slices || v.next.uid != v.uid || v.next.deleting != v.deleting || len(v.next.items) != len(v.items) {
		return nil
	}

	return v.next
}

// isKnown reports whether something is recorded of a manifest.
func isKnown(s enov1.ResourceState) bool {
	return !equality.Semantic.DeepEqual(s, enov1.ResourceState{})
}

// settle takes a new state of an item. It returns the state to be written, if it
// is another, and the items that may be worked on because of it.
func (v *view) settle(it *item, s enov1.ResourceState) (_ enov1.ResourceState, changed bool, opened []*item) {
	v.mu.Lock()
	defer v.mu.Unlock()

	return v.take(v.items[it.place], s) // overrides make others of it, which have no state
}

// settleIf is settle on a condition about the present state, which may be another one by
// then if the view is in use.
func (v *view) settleIf(it *item, holds func(enov1.ResourceState) bool, s enov1.ResourceState) (_ enov1.ResourceState, changed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	it = v.items[it.place]
	if !holds(it.state) {
		return it.state, false
	}
	s.UID = it.state.UID
	s, changed, _ = v.take(it, s)

	return s, changed
}

// take gives an item of the view a new state. The lock is held.
func (v *view) take(it *item, s enov1.ResourceState) (_ enov1.ResourceState, changed bool, opened []*item) {
	// What was ready once is ready in this synthesis.
	if it.state.Ready != nil {
		s.Ready = it.state.Ready
	}
	// A Patch deletes its target once, and what was pruned is deleted.
	if it.state.Deleted && !v.deleting && !hidden(it) && (it.IsPatch() || it.Tombstone) {
		s.Deleted = true
	}
	if s.Replaced == "" {
		s.Replaced = it.state.Replaced // as it replaces an object
	}
	s = it.slice.bound(s)
	changed = !equality.Semantic.DeepEqual(it.state, s)
	it.state = s
	v.noteFailure(it)

	return s, changed, v.advance(it)
}

// replaced is the object of an item that was deleted in this synthesis to be created again,
// "" if none was.
func (v *view) replaced(it *item) types.UID { return v.stateOf(it).Replaced }

// stateOf is the state of an item.
func (v *view) stateOf(it *item) enov1.ResourceState {
	v.mu.Lock()
	defer v.mu.Unlock()

	return v.items[it.place].state
}
