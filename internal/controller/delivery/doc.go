// Package delivery makes a cluster agree with the current syntheses of
// compositions, and keeps it so.
//
//	Composition ──▶ load ──▶ model, registry ──▶ queue ──▶ apply ──▶ status, health
//	                                               ▲         │
//	                                               └─ watch ◀┘
//
// The [Deliverer] reconciles compositions: it has each of them loaded, replaces what the registry has
// of it, queues its resources, and writes its conditions. All other work is done by the packages below:
//
//	load      reads slices into the model, checks that they belong to the composition, repairs them
//	model     one composition in memory: its manifests, their states, what was applied
//	registry  all compositions, which objects they want, and which of them must be read before deletions
//	queue     the order in which workers get resources
//	apply     the workers: gather, decide, apply, settle
//	watch     metadata-only watches of what was applied
//	kinds     which kinds are served
//	status    writes states and reports
//	health    reads and summarizes the health of objects
//	event     events and texts; metric: metrics; env: what all of them share
//
// A manifest with overrides depends on the live object. There, any change of the
// object has it read and the overrides evaluated; the apply then holds only for the
// version that was read, so that nothing is written over a change of another client.
//
// Where a manifest no longer names something, the apply may leave it behind, or be
// rejected, because other field managers own a part of it. There, and where the server reports that
// the result would be invalid, package ownership moves the fields first.
//
// Slices are watched, too: one that another client deletes or overwrites is repaired from memory.
package delivery
