// Package status writes the states of manifests to their slices, and reports to compositions.
//
// States are gathered for a moment and written by their index, in one patch for each slice. A write
// that fails is repeated, unless there is a newer state by then.
package status
