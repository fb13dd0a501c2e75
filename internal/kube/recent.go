package kube

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// remembered is how long a deletion is remembered at least: longer than a Subnet takes from its
// creation to its phase.
const remembered = time.Minute

// RecentlyDeleted remembers the UIDs of objects that were deleted a short time ago. It
// distinguishes a Subnet whose claim or pool was just deleted from one of a backup, whose claim or
// pool is not restored yet.
type RecentlyDeleted struct {
	now func() time.Time

	mu            sync.Mutex
	turned        time.Time
	recent, older map[types.UID]struct{}
}

// NewRecentlyDeleted returns an empty RecentlyDeleted.
func NewRecentlyDeleted(now func() time.Time) *RecentlyDeleted {
	return &RecentlyDeleted{now: now, turned: now(), recent: map[types.UID]struct{}{}}
}

// Add remembers the UID of an object that was deleted.
func (d *RecentlyDeleted) Add(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn()
	d.recent[uid] = struct{}{}
}

// Has reports whether an object was deleted a short time ago.
func (d *RecentlyDeleted) Has(uid types.UID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn()
	_, recent := d.recent[uid]
	_, older := d.older[uid]

	return recent || older
}

// turn forgets the older ones.
func (d *RecentlyDeleted) turn() {
	switch age := d.now().Sub(d.turned); {
	case age < remembered:
		return
	case age < 2*remembered:
		d.older = d.recent
	default:
		d.older = nil
	}
	d.recent, d.turned = map[types.UID]struct{}{}, d.now()
}
