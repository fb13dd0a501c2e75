package scheduling

import (
	"github.com/arbor-control/arbor/engine/gang"
)

// An Answer is what would become of a gang, and why.
type Answer struct {
	// Gang as it was read; nil if it was rejected.
	Gang    *Gang
	Refusal *Refusal
	// Decision is that of the scheduler, on a cluster in which nothing was
	// changed by it.
	Decision gang.Decision
	// Rooms are the nodes as a pod sees them that found no place, those that
	// come closest first. There are none if every pod has one.
	Rooms []Room
	// For is the member that they are about.
	For int
}

// A Room is one node as one pod sees it.
type Room struct {
	Node string
	// Fits is how many such pods there is room for now.
	Fits int
	// Short is what the node lacks for one more, by resource.
	Short []Shortage
	// Reasons are the other reasons why it takes none.
	Reasons []string
}

// A Shortage is a resource of which a node has less than a pod asks for. CPU is
// in thousandths, everything else in units or bytes.
type Shortage struct {
	Resource                 string
	Asked, Free, Allocatable int64
}
