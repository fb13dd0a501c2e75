package registry

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/env"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// A Registry has all compositions, and knows which objects they want.
type Registry struct {
	*env.Environment

	mu    sync.Mutex
	views map[types.NamespacedName]*model.Composition
	// unreadable are the compositions that cannot be read, and grace is how long other compositions
	// wait for them.
	unreadable map[types.NamespacedName]*unreadableComposition
	Grace      time.Duration
	// Wanted is by how many compositions of a tenant each object is wanted.
	Wanted map[Claim]int
	// Backlog has the views that must not delete anything before other compositions are
	// read.
	Backlog *backlog
	// gone is what is remembered of objects that a composition no longer has, until
	// a worker forgets it.
	gone sync.Map
}

// New returns an empty registry. grace is how long deletions wait for a composition that cannot be read.
func New(e *env.Environment, grace time.Duration) *Registry {
	r := &Registry{
		Environment: e, Grace: grace,
		views: map[types.NamespacedName]*model.Composition{}, unreadable: map[types.NamespacedName]*unreadableComposition{}, Wanted: map[Claim]int{},
	}
	r.Backlog = newBacklog(r.tenant)

	return r
}

// View of a composition, nil if there is none.
func (r *Registry) View(name types.NamespacedName) *model.Composition {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.views[name]
}

// Find returns the item of a key.
func (r *Registry) Find(k queue.Key) (*model.Composition, *model.Item) {
	v := r.View(k.Composition)
	if v == nil || v.ByID[k.Object] == nil {
		return nil, nil
	}

	return v, v.ByID[k.Object]
}

// CountForbidden counts the compositions with objects that must be deleted and may not be.
func (r *Registry) CountForbidden() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, v := range r.views {
		if slices.ContainsFunc(v.Denials.List(), func(one tenancy.Denial) bool { return one.Reason == enov1.ReasonDeletionForbidden }) {
			n++
		}
	}

	return n
}

// CountBlocked counts the compositions whose objects are not deleted before a user
// confirms it.
func (r *Registry) CountBlocked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, v := range r.views {
		if v.PruneSet.Blocked != "" {
			n++
		}
	}

	return n
}

// Put replaces the view of a composition, nil if there is none any more, and returns the one before.
func (r *Registry) Put(name types.NamespacedName, v *model.Composition) (old *model.Composition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgetUnreadable(name)
	if old = r.views[name]; old != nil {
		r.count(old, -1)
		r.Backlog.remove(old)
	}
	if v == nil {
		delete(r.views, name)

		return old
	}
	if old != nil {
		old.ReplaceBy(v)
	}
	r.views[name] = v
	r.count(v, 1)

	return old
}

// Drop records what is remembered of an object that its composition no longer has.
func (r *Registry) Drop(k queue.Key, m *model.Memory) { r.gone.Store(k, m) }

// Dropped returns what drop has recorded, nil if nothing was, and forgets it.
func (r *Registry) Dropped(k queue.Key) *model.Memory {
	found, ok := r.gone.LoadAndDelete(k)
	if !ok {
		return nil
	}
	m, _ := found.(*model.Memory)

	return m
}
