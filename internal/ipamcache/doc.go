// Package ipamcache keeps a ledger of each pool current from watches.
//
// It is for speed, not for safety: a ledger can be a moment behind, and for a moment
// after a reconnect it can be neither the old nor the new state. Code that must not
// be wrong reads the objects.
package ipamcache
