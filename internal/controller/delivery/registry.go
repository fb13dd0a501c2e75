package delivery

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
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
