package watch

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	"github.com/arbor-control/arbor/internal/decide/delivery/observed"
)

// A lastWrite is the newest version that this process wrote of an object that several compositions
// manage, and the compositions that have confirmed it. Two writes of this process within one second
// cannot be distinguished by their time.
type lastWrite struct {
	version   string
	confirmed map[queue.Key]bool
}

// Written records that a composition has written an object, or found it as desired, and queues it
// for all other compositions that want it.
func (w *Watches) Written(at Location, version string, who queue.Key) {
	w.mu.Lock()
	var others []queue.Key
	if k, ok := w.kinds[at.GroupVersionResource]; ok {
		others = k.written(at.NamespacedName, version, who)
	}
	w.mu.Unlock()
	for _, other := range others {
		w.changed(other)
	}
}

// written returns the keys to requeue.
func (k *kindWatch) written(name types.NamespacedName, version string, who queue.Key) []queue.Key {
	last := k.lastWrites[name]
	switch {
	case last == nil && len(k.interest[name]) < 2:
		return nil // no other composition wants it
	case last != nil && last.version == version:
		last.confirmed[who] = true

		return nil
	case last != nil && !observed.Older(last.version, version):
		return nil
	}
	k.lastWrites[name] = &lastWrite{version, map[queue.Key]bool{who: true}}
	var others []queue.Key
	for other := range k.interest[name] {
		if other != who {
			others = append(others, other)
		}
	}

	return others
}

// IsContested reports whether another composition of this process has written an object since.
func (w *Watches) IsContested(at Location, who queue.Key) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	k, ok := w.kinds[at.GroupVersionResource]
	if !ok {
		return false
	}
	last := k.lastWrites[at.NamespacedName]

	return last != nil && !last.confirmed[who]
}
