package delivery

import "k8s.io/apimachinery/pkg/types"

// A word is a version of an object that was written here, and who agrees with it. What
// two of us write within one second looks alike from outside.
type word struct {
	version string
	agreed  map[key]bool
}

// wrote notes that somebody has written an object, or found it as it should be, and
// tells others who want it.
func (w *watches) wrote(at place, version string, who key) {
	w.mu.Lock()
	var others []key
	if k, ok := w.kinds[at.GroupVersionResource]; ok {
		others = k.wrote(at.NamespacedName, version, who)
	}
	w.mu.Unlock()
	for _, other := range others {
		w.changed(other)
	}
}

// wrote returns who has to look at the object.
func (k *kindWatch) wrote(name types.NamespacedName, version string, who key) []key {
	last := k.words[name]
	switch {
	case last == nil && len(k.interest[name]) < 2:
		return nil // there is nobody else
	case last != nil && last.version == version:
		last.agreed[who] = true

		return nil
	case last != nil && !older(last.version, version):
		return nil
	}
	k.words[name] = &word{version, map[key]bool{who: true}}
	var others []key
	for other := range k.interest[name] {
		if other != who {
			others = append(others, other)
		}
	}

	return others
}

// disputed says whether another of us has written an object since.
func (w *watches) disputed(at place, who key) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	k, ok := w.kinds[at.GroupVersionResource]
	if !ok {
		return false
	}
	last := k.words[at.NamespacedName]

	return last != nil && !last.agreed[who]
}
