package model

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
func (v *Composition) takeStates(old *Composition) {
	if old.UID != v.UID || old.SliceNames != v.SliceNames || len(old.Items) != len(v.Items) {
		return // a slice may have been lost
	}
	for i, it := range v.Items {
		if was := old.Items[i]; !was.Foreign && !it.Foreign && was.Slice.NamespacedName == it.Slice.NamespacedName && was.Index == it.Index {
			it.State = was.State
		}
	}
}

// ReplaceBy has states that are reported to a view from now on reported to another one,
// too, which takes over those that are known.
func (v *Composition) ReplaceBy(next *Composition) {
	v.mu.Lock()
	defer v.mu.Unlock()
	next.takeStates(v)
	v.next = next
}

// Successor is the view that has replaced this one and delivers the same slices, nil if
// there is none.
func (v *Composition) Successor() *Composition {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.next == nil || v.next.SliceNames != v.SliceNames || v.next.UID != v.UID || v.next.Deleting != v.Deleting || len(v.next.Items) != len(v.Items) {
		return nil
	}

	return v.next
}

// IsRecorded reports whether something is recorded of a manifest.
func IsRecorded(s enov1.ResourceState) bool {
	return !equality.Semantic.DeepEqual(s, enov1.ResourceState{})
}

// Settle takes a new state of an item. It returns the state to be written, if it
// is another, and the items that may be worked on because of it.
func (v *Composition) Settle(it *Item, s enov1.ResourceState) (_ enov1.ResourceState, changed bool, opened []*Item) {
	v.mu.Lock()
	defer v.mu.Unlock()

	return v.take(v.Items[it.Position], s) // the result of overrides is a copy without a state
}

// SettleIf is settle on a condition about the present state, which may be another one by
// then if the view is in use.
func (v *Composition) SettleIf(it *Item, holds func(enov1.ResourceState) bool, s enov1.ResourceState) (_ enov1.ResourceState, changed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	it = v.Items[it.Position]
	if !holds(it.State) {
		return it.State, false
	}
	s.UID = it.State.UID
	s, changed, _ = v.take(it, s)

	return s, changed
}

// take gives an item of the view a new state. The lock is held.
func (v *Composition) take(it *Item, s enov1.ResourceState) (_ enov1.ResourceState, changed bool, opened []*Item) {
	// An item that was ready once stays ready in this synthesis.
	if it.State.Ready != nil {
		s.Ready = it.State.Ready
	}
	// A Patch deletes its target once, and what was pruned is deleted.
	if it.State.Deleted && !v.Deleting && !IsInvalid(it) && (it.IsPatch() || it.Tombstone) {
		s.Deleted = true
	}
	if s.Replaced == "" {
		s.Replaced = it.State.Replaced // as it replaces an object
	}
	s = it.Slice.Bound(s)
	changed = !equality.Semantic.DeepEqual(it.State, s)
	it.State = s
	v.noteFailure(it)

	return s, changed, v.advance(it)
}

// Replaced is the object of an item that was deleted in this synthesis to be created again,
// "" if none was.
func (v *Composition) Replaced(it *Item) types.UID { return v.StateOf(it).Replaced }

// StateOf is the state of an item.
func (v *Composition) StateOf(it *Item) enov1.ResourceState {
	v.mu.Lock()
	defer v.mu.Unlock()

	return v.Items[it.Position].State
}
