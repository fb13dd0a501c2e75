package delivery

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
)

// These are the ways to handle objects that other clients change after they were delivered.
const (
	// DriftCorrect writes them again.
	DriftCorrect = "correct"
	// DriftReport reports them until there is another synthesis.
	DriftReport = "report"
	// DriftInterval writes them again at their reconcile interval, if they have one.
	DriftInterval = "interval"
)

// These are the ways to handle fields that other field managers own and that must be removed.
const (
	MigrationOff    = "off"
	MigrationReport = "report"
	MigrationOn     = "on"
)

// IsDue reports whether an object is reconciled now even if it was not changed.
func (s *Settings) IsDue(due, now time.Time) bool { return s.Interval > 0 && !now.Before(due) }

// NeedsNoWrite reports whether an object that was written as desired needs no other write. same is
// whether it is unchanged since, and applied whether it was written in this synthesis: a new
// synthesis is delivered in every mode of drift.
func NeedsNoWrite(drift string, same, applied, due bool) bool {
	return (same || drift == DriftInterval && applied) && !due
}

// maintained are the fields of metadata that the server maintains.
var maintained = []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"}

// Differences returns the paths of the fields in which two versions of an object differ,
// in order, without what the server maintains. Lists are compared as a whole.
func Differences(a, b map[string]any) []string {
	var all []string
	for _, name := range keysOf(a, b) {
		switch name {
		case "status":
		case "metadata":
			x, _ := a[name].(map[string]any)
			y, _ := b[name].(map[string]any)
			for _, field := range keysOf(x, y) {
				if !slices.Contains(maintained, field) {
					all = differences(all, name+"."+field, x[field], y[field])
				}
			}
		default:
			all = differences(all, name, a[name], b[name])
		}
	}

	return all
}

func differences(all []string, path string, a, b any) []string {
	x, isMap := a.(map[string]any)
	y, areMaps := b.(map[string]any)
	if !isMap || !areMaps {
		if !equality.Semantic.DeepEqual(a, b) {
			all = append(all, path)
		}

		return all
	}
	for _, name := range keysOf(x, y) {
		all = differences(all, path+"."+name, x[name], y[name])
	}

	return all
}

// keysOf are the keys of two maps, in order.
func keysOf(a, b map[string]any) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)

	return slices.Compact(all)
}
