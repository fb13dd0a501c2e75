package delivery

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
