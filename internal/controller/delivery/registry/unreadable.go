package registry

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// A composition that cannot be read may want an object that another one is about to delete. What is
// known of it counts; for the rest, other compositions wait for a limited time.

// unreadableComposition is what is known of a composition that cannot be read.
type unreadableComposition struct {
	slices string
	since  time.Time
	// wants are the objects in those of its slices that can be read, of all syntheses.
	wants []decide.Identity
}

// forgetUnreadable removes what is known of a composition that could not be read. The lock
// is held.
func (r *Registry) forgetUnreadable(name types.NamespacedName) {
	if was := r.unreadable[name]; was != nil {
		r.add(name, was.wants, -1)
		delete(r.unreadable, name)
	}
}

// overdue reports whether other compositions no longer wait for one that cannot be read. The lock
// is held.
func (r *Registry) overdue(name types.NamespacedName) bool {
	b := r.unreadable[name]

	return b != nil && r.Now().Sub(b.since) >= r.Grace
}

// IsNewlyUnreadable reports whether nothing is known of a composition that cannot be read, with the
// slices that it has now.
func (r *Registry) IsNewlyUnreadable(name types.NamespacedName, slices string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	had := r.unreadable[name]

	return had == nil || had.slices != slices
}

// MarkUnreadable records that a composition cannot be read, with the objects that are known of it, and
// reports whether it could be read before.
func (r *Registry) MarkUnreadable(name types.NamespacedName, slices string, wants []decide.Identity) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := &unreadableComposition{slices: slices, since: r.Now(), wants: wants}
	had := r.unreadable[name]
	if had != nil {
		now.since = had.since
	}
	r.forgetUnreadable(name)
	r.unreadable[name] = now
	r.add(name, now.wants, 1)

	return had == nil
}
