// Package pruning decides when the objects that a synthesis no longer has may be deleted.
//
// A [Guard] stops a synthesis that would delete too many objects until a user confirms it.
// [DeleteFirst] finds the objects that wait to be deleted and may keep a manifest from being
// applied, because they have a port, an address or a quota that it needs.
package pruning
