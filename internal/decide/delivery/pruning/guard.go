package pruning

import (
	"fmt"
	"strconv"
	"strings"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// Values of --prune-guard, besides a percentage.
const (
	// GuardEmpty stops a synthesis without manifests.
	GuardEmpty = "empty"
	// GuardOff stops nothing.
	GuardOff = "off"
)

const (
	// allOfThem is the share of a guard that stops empty syntheses only.
	allOfThem = 100
	// minGuarded is how many objects a synthesis must delete to be stopped.
	minGuarded = 2
)

// A Guard stops a synthesis that would delete too many objects until a user
// confirms it. The zero value stops nothing.
type Guard struct {
	on bool
	// percent is the share of the objects that may be deleted without confirmation.
	percent int
}

// ParseGuard reads the value of --prune-guard: empty, off, or a percentage such as
// 50 or 50%.
func ParseGuard(text string) (Guard, error) {
	switch text {
	case GuardOff:
		return Guard{}, nil
	case GuardEmpty:
		return Guard{on: true, percent: allOfThem}, nil
	}
	percent, err := strconv.Atoi(strings.TrimSuffix(text, "%"))
	if err != nil || percent < 0 || percent > allOfThem {
		return Guard{}, fmt.Errorf("it must be %s, %s or a percentage from 0 to 100, such as 50", GuardEmpty, GuardOff)
	}

	return Guard{on: true, percent: percent}, nil
}

// Enabled reports whether the guard stops anything.
func (g Guard) Enabled() bool { return g.on }

// NeedsShare reports whether the guard depends on how many objects there were before.
func (g Guard) NeedsShare() bool { return g.on && g.percent < allOfThem }

// A Counts is what a synthesis would do to the objects of the one before.
type Counts struct {
	// Manifests is how many the synthesis has, and Deletes is how many objects it would
	// delete that no user asked to delete.
	Manifests, Deletes int
	// Before is how many objects the synthesis before had.
	Before int
}

// Blocks returns the reason why a synthesis must not delete objects before a user
// confirms it, "" if it may.
func (g Guard) Blocks(p Counts) string {
	switch {
	case !g.on || p.Deletes < minGuarded:
		return ""
	case p.Manifests == 0:
		return enov1.ReasonEmptySynthesis
	case p.Deletes*allOfThem > g.percent*max(p.Before, p.Deletes):
		return enov1.ReasonPruneShare
	}

	return ""
}

// Explain describes what a guard has stopped.
func (g Guard) Explain(p Counts) string {
	if p.Manifests == 0 {
		return fmt.Sprintf("the synthesis has no manifests and would delete %d objects", p.Deletes)
	}

	return fmt.Sprintf("the synthesis would delete %d of %d objects, and --prune-guard allows %d%%", p.Deletes, max(p.Before, p.Deletes), g.percent)
}
