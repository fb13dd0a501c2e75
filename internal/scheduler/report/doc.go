// Package report writes what the scheduler has decided: to pods, to PodGroups, and as events.
// It decides nothing itself.
package report
