package poolstatus

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Obstacles are the errors of the API server that keep child pools without a backing
// Subnet. The controller that creates those Subnets sets them, and the status of the
// pools shows them.
type Obstacles struct {
	mu       sync.Mutex
	messages map[types.NamespacedName]string
}

// NewObstacles returns Obstacles of no pool.
func NewObstacles() *Obstacles { return &Obstacles{messages: map[types.NamespacedName]string{}} }

// Set records why a pool has no backing Subnet, "" if nothing prevents it, and reports
// whether that is news.
func (o *Obstacles) Set(pool types.NamespacedName, message string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.messages[pool] == message {
		return false
	}
	if message == "" {
		delete(o.messages, pool)
	} else {
		o.messages[pool] = message
	}

	return true
}

func (o *Obstacles) of(pool types.NamespacedName) string {
	o.mu.Lock()
	defer o.mu.Unlock()

	return o.messages[pool]
}
