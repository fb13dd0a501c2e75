package delivery

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// A composition that cannot be read may want an object that another one is about to
// delete. What is known of it counts; for the rest, others wait for a limited time.

// unreadable is what is known of a composition that cannot be read.
type unreadable struct {
	slices string
	since  time.Time
	// wants are the objects in those of its slices that can be read, of all syntheses.
	wants []decide.Identity
}

// forgetBroken removes what is known of a composition that could not be read. The lock
// is held.
func (r *registry) forgetBroken(name types.NamespacedName) {
	if was := r.broken[name]; was != nil {
		r.add(name, was.wants, -1)
		delete(r.broken, name)
	}
}

// overdue reports whether others no longer wait for a composition that cannot be read.
// The lock is held.
func (r *registry) overdue(name types.NamespacedName) bool {
	b := r.broken[name]

	return b != nil && r.now().Sub(b.since) >= r.grace
}

// isNewlyUnreadable reports whether nothing is known of a composition that cannot be read, with the
// slices that it has now.
func (r *registry) isNewlyUnreadable(name types.NamespacedName, slices string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	had := r.broken[name]

	return had == nil || had.slices != slices
}

// markUnreadable records that a composition cannot be read, with the objects that are known of it, and
// reports whether it could be read before.
func (r *registry) markUnreadable(name types.NamespacedName, slices string, wants []decide.Identity) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := &unreadable{slices: slices, since: r.now(), wants: wants}
	had := r.broken[name]
	if had != nil {
		now.since = had.since
	}
	r.forgetBroken(name)
	r.broken[name] = now
	r.add(name, now.wants, 1)

	return had == nil
}
