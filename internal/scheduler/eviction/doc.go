// Package eviction deletes pods on behalf of gangs. A pod that is not bound yet is not
// deleted: its binding is canceled. Pods that are being evicted no longer count as members
// of their gang.
package eviction
