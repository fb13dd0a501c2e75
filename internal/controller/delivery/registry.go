package delivery

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// A registry has all compositions, and knows which objects they want.
type registry struct {
	*environment

	mu    sync.Mutex
	views map[types.NamespacedName]*view
	// broken are the compositions that cannot be read, and grace is how long others wait
	// for them.
	broken map[types.NamespacedName]*unreadable
	grace  time.Duration
	// wanted is by how many compositions of a tenant each object is wanted.
	wanted map[claim]int
	// backlog has the views that must not delete anything before other compositions are
	// read.
	backlog *backlog
	// gone is what is remembered of objects that a composition no longer has, until
	// a worker forgets it.
	gone sync.Map
}

func newRegistry(e *environment, grace time.Duration) *registry {
	r := &registry{
		environment: e, grace: grace,
		views: map[types.NamespacedName]*view{}, broken: map[types.NamespacedName]*unreadable{}, wanted: map[claim]int{},
	}
	r.backlog = newBacklog(r.tenant)

	return r
}

// view of a composition, nil if there is none.
func (r *registry) view(name types.NamespacedName) *view {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.views[name]
}

// find returns the item of a key.
func (r *registry) find(k key) (*view, *item) {
	v := r.view(k.composition)
	if v == nil || v.byID[k.object] == nil {
		return nil, nil
	}

	return v, v.byID[k.object]
}

// countForbidden counts the compositions with objects that must be deleted and may not be.
func (r *registry) countForbidden() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, v := range r.views {
		if slices.ContainsFunc(v.denials.list(), func(one tenancy.Denial) bool { return one.Reason == enov1.ReasonDeletionForbidden }) {
			n++
		}
	}

	return n
}

// countBlocked counts the compositions whose objects are not deleted before a user
// confirms it.
func (r *registry) countBlocked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, v := range r.views {
		if v.pruning.blocked != "" {
			n++
		}
	}

	return n
}

// put replaces the view of a composition, nil if there is none any more, and returns the one before.
func (r *registry) put(name types.NamespacedName, v *view) (old *view) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgetBroken(name)
	if old = r.views[name]; old != nil {
		r.count(old, -1)
		r.backlog.remove(old)
	}
	if v == nil {
		delete(r.views, name)

		return old
	}
	if old != nil {
		old.replaceBy(v)
	}
	r.views[name] = v
	r.count(v, 1)

	return old
}

// drop records what is remembered of an object that its composition no longer has.
func (r *registry) drop(k key, m *memory) { r.gone.Store(k, m) }

// dropped returns what drop has recorded, nil if nothing was, and forgets it.
func (r *registry) dropped(k key) *memory {
	found, ok := r.gone.LoadAndDelete(k)
	if !ok {
		return nil
	}
	m, _ := found.(*memory)

	return m
}
