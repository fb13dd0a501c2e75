package apply

import "github.com/arbor-control/arbor/internal/controller/delivery/queue"

// forget ends the watch of an object that a composition no longer has.
func (w *Worker) forget(k queue.Key) {
	m := w.Dropped(k)
	if m == nil {
		return
	}
	w.Health.Forget(k)
	if m.Watched {
		m.Watched = false
		w.Watches.Untrack(m.Location, k)
	}
}
