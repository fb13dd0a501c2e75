package podgroup

import (
	"fmt"
	"slices"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// durationProblems returns a problem for each duration that is invalid. It is
// not the schema that rejects them: a pattern would make a release reject what
// an older one accepted and stored.
func durationProblems(pg *v2alpha2.PodGroup) []verdict.Problem {
	return slices.Concat(
		durationProblem("preemptionDelay", pg.Spec.PreemptionDelay),
		durationProblem("stalenessGracePeriod", pg.Spec.StalenessGracePeriod),
	)
}

func durationProblem(name string, d *v2alpha2.Duration) []verdict.Problem {
	if _, ok := d.Get(); ok || d == nil {
		return nil
	}

	return []verdict.Problem{{
		Reason:  v2alpha2.ReasonInvalidDuration,
		Field:   "spec." + name,
		Value:   d.String(),
		Message: fmt.Sprintf("%s %q is not a duration such as 30s or 1h30m", name, verdict.Shorten(d.String(), shownName)),
		Fix:     "write numbers with units, one of ns, us, ms, s, m and h, or remove the field",
	}}
}

// admitDurations rejects the durations that a change makes invalid, and warns
// about those that are stored.
func admitDurations(before, after *v2alpha2.PodGroup) verdict.Verdict {
	found := durationProblems(after)
	if len(found) == 0 {
		return verdict.Verdict{}
	}
	var (
		had    = durationProblems(before)
		stored []verdict.Problem
		v      verdict.Verdict
	)
	for _, p := range found {
		if slices.Contains(had, p) {
			stored = append(stored, p)
		} else {
			v.Problems = append(v.Problems, p)
		}
	}
	if len(stored) > 0 {
		v.Warnings = []verdict.Warning{verdict.Stored("durations break", stored)}
	}

	return v
}
