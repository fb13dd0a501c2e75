package delivery

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
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

// cannotRead records that a composition cannot be read, and what can be known of it.
func (d *Deliverer) cannotRead(ctx context.Context, c *enov1.Composition, because error) {
	name := client.ObjectKeyFromObject(c)
	d.mu.Lock()
	had := d.broken[name]
	d.mu.Unlock()
	if had != nil && had.slices == slicesOf(c.Status.CurrentSynthesis) {
		return
	}
	now := &unreadable{slices: slicesOf(c.Status.CurrentSynthesis), since: d.now(), wants: d.remains(ctx, c)}
	if had != nil {
		now.since = had.since
	}
	d.mu.Lock()
	d.forgetBroken(name)
	d.broken[name] = now
	d.add(name, now.wants, 1)
	d.mu.Unlock()
	if had == nil {
		d.events.record(c.DeepCopy(), nil, corev1.EventTypeWarning, "Unreadable", fmt.Sprintf("the composition is not delivered, and others delete objects without knowing what it wants in %s: %v", d.grace, because))
	}
}

// remains are the objects in the slices of a composition that can be read.
func (l *loader) remains(ctx context.Context, c *enov1.Composition) []decide.Identity {
	seen := map[decide.Identity]bool{}
	var all []decide.Identity
	syntheses := []*enov1.Synthesis{c.Status.CurrentSynthesis, c.Status.PreviousSynthesis}
	for i := range c.Status.History {
		syntheses = append(syntheses, &c.Status.History[i])
	}
	for _, s := range syntheses {
		if s == nil {
			continue
		}
		for _, ref := range s.ResourceSlices {
			slice, err := l.slice(ctx, c, ref)
			if err != nil {
				continue
			}
			for _, m := range slice.Spec.Resources {
				r, _ := l.readManifest(m, c.Annotations) // invalid settings do not matter here
				if r == nil || m.Deleted || r.IsPatch() || seen[r.Identity] {
					continue
				}
				seen[r.Identity] = true
				all = append(all, claimsOf(r)...)
			}
		}
	}

	return all
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
