// Package health knows the health of the objects that were delivered. Workers hand over the objects
// that they have read or written anyway; others are read when their watch has seen a new status.
package health
