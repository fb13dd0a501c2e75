package scheduling_test

import (
	"testing"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
)

// An invalid duration that was stored without the webhook counts as absent. A scheduler that starts
// with it places that gang and all other gangs.
func TestInvalidDurationStored(t *testing.T) {
	l := newLab(t, 1, 4)
	spec := simple(2)
	spec.PreemptionDelay = &v2alpha2.Duration{Invalid: `"abc"`}
	spec.StalenessGracePeriod = &v2alpha2.Duration{Invalid: `"30"`}
	l.group("invalid", spec)
	l.group("valid", simple(2))

	l.own()
	for _, name := range []string{"invalid", "valid"} {
		l.pods(name, "", 2, 1)
		l.runs(name, 2)
	}
}
