package watch

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
)

// A lastWrite is a version of an object that was written here, and who agrees with it. What
// two of us write within one second looks alike from outside.
type lastWrite struct {
	version   string
	confirmed map[queue.Key]bool
}

// Written notes that somebody has written an object, or found it as it should be, and
// tells others who want it.
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

// written returns who has to look at the object.
func (k *kindWatch) written(name types.NamespacedName, version string, who queue.Key) []queue.Key {
	last := k.lastWrites[name]
	switch {
	case last == nil && len(k.interest[name]) < 2:
		return nil // there is nobody else
	case last != nil && last.version == version:
		last.confirmed[who] = true

		return nil
	case last != nil && !Older(last.version, version):
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

// IsContested says whether another of us has written an object since.
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
