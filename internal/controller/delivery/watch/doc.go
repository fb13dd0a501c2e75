// Package watch watches the objects that were delivered, by their metadata only, with one watch for
// each kind. It distinguishes drift from other changes by the fields that this field manager owns:
// a client that changes a value of ours takes the field away from us, and the metadata show it. A
// new status is not drift.
package watch
