package ledger

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/arbor-control/arbor/engine/cidr"
)

// A Block takes addresses from a pool.
type Block struct {
	// ID identifies the block in its pool: the UID of a Subnet, or the [ChildID] of a child pool.
	ID string
	// Name is for messages.
	Name string
	// Prefix is the addresses of the block. It is masked.
	Prefix netip.Prefix
	// Owner is the cluster that has the block.
	Owner string
	// Claim is the UID of the claim that has the block, if any.
	Claim string
	// Delegated is true for child pools, and for Subnets that back one.
	Delegated bool
	// Backs is the ID of the child pool that a Subnet backs, if that is known.
	// While the Subnet is there, the child pool is not counted.
	Backs string
	// Released is when the block was released, in seconds since 1970. It is 0 for a
	// block that is in use. A released block can stay unused for some time.
	Released int64
}

// ChildID returns the ID of the block that is a child pool with a UID.
func ChildID(uid string) string { return "pool/" + uid }

// A Request asks for a block.
type Request struct {
	// Claim is the UID of the claim that asks. A claim has one reservation.
	Claim string
	// Owner is the cluster that gets the block.
	Owner string
	// Exact is the block itself. If it is not valid, Length and Strategy choose one.
	Exact    netip.Prefix
	Length   int
	Strategy cidr.Strategy
	// Backs is the name of the child pool that is made of the block, if any. That
	// pool may be there already, and is not in the way.
	Backs string
}

// A Reservation is a block that no watch has seen yet.
type Reservation struct {
	Claim  string
	Prefix netip.Prefix
	// ID and Name are empty until the API server has created the block.
	ID, Name string
	// Since is when the block was reserved.
	Since time.Time
}

// ErrNoRange is returned for a pool that is absent, or whose range is invalid.
var ErrNoRange = errors.New("the pool has no range")

// ErrClosed is returned for a pool that allocates nothing.
var ErrClosed = errors.New("the pool is not open")

// An OwnerHasBlockError is returned for an owner that has a block of the pool by
// another claim.
type OwnerHasBlockError struct {
	Owner string
	// Block that the owner has. A reserved one has no name yet.
	Block Block
}

func (e *OwnerHasBlockError) Error() string {
	return fmt.Sprintf("cluster %s already has block %s of this pool", e.Owner, e.Block.Prefix)
}

// An entry is a block or a reservation. It is in one of these states:
//
//	held         slot is that of its prefix
//	waiting      slot is that of a block in its way, nil outside of the range
//	not counted  slot is nil: the pool has no range, or a Subnet backs the child
type entry struct {
	Block

	arrival uint64
	held    bool
	slot    *slot

	// The claimed entries of one owner are a ring.
	previous, next *entry
}

// A reserved entry has a time.
type reserved struct {
	entry

	since time.Time
}
