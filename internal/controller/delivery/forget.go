package delivery

// forget ends the watch of an object that a composition no longer has.
func (w *worker) forget(k key) {
	m := w.dropped(k)
	if m == nil {
		return
	}
	w.health.forget(k)
	if m.tracked {
		m.tracked = false
		w.watches.untrack(m.at, k)
	}
}
