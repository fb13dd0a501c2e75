// Package stale evicts what is left of gangs that lost pods and stayed below their minimum
// for the grace period.
package stale
