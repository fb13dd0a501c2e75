// Package objecthealth assesses whether objects work, and summarizes many of them in one condition.
//
// An object is Current, Progressing or Failed by the rules of kstatus, which
// [github.com/fluxcd/cli-utils/pkg/kstatus/status] implements. What an object was before
// adds two distinctions: an object that was Current, and is not although its generation
// is the same, is Degraded; and an object that is Progressing for too long is Degraded,
// too, with the reason Timeout.
//
// The package sends no requests and has no clock: times are arguments. One rule of
// kstatus has its own: a Pod counts as unschedulable after 15 seconds, see
// [Record.Recheck].
package objecthealth
