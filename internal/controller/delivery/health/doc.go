// Package health knows the health of the objects that were delivered. Workers pass on the objects
// that they have read or written anyway; all other objects are read when their watch has seen a new
// status.
package health
