// Package delivery makes a cluster agree with the current syntheses of
// compositions, and keeps it so.
//
//	Composition ──▶ view ──▶ queue of resources ──▶ gather, decide, apply ──▶ slice status
//	                               ▲                        │
//	                               └───────── watches ◀─────┘
//
// A view is one synthesis in memory: its manifests are read once, past the cache,
// and understood. A worker takes one resource at a time. What it needs to know is
// mostly there: what was applied last, and what the watch of that kind has seen
// since. So an object that is as it was applied costs no request, and one that is
// not costs one, an apply.
//
// Watches are of metadata only, one for each kind that was applied. They tell
// drift from other changes by what we own: whoever changes a value of ours takes
// the field away from us, and the metadata say so. A new status is no drift.
//
// A manifest with overrides depends on the live object. There, whatever changes the
// object has it read and the overrides evaluated; the apply then holds only for the
// version that was read, so that nothing is written over what somebody did since.
//
// Where a manifest no longer names something, the apply may leave it behind, or be
// refused, because others hold a part of it. There, and where the server says that
// the result would be invalid, package ownership puts that right first.
//
// The health of objects is judged from what workers have in hand anyway, and otherwise by
// one read for each status that a watch sees, see healthTracker. It never delays an
// apply.
//
// States are gathered for a moment and written to the slices by their index, in
// one patch for each slice. Slices are watched, too: one that another client deletes or
// overwrites is repaired from memory.
package delivery
