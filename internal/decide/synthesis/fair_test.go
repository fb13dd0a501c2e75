package synthesis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/synthesis"
)

// many returns compositions of one namespace. Their names depend on how many they are.
func many(tenant string, count int, changes ...func(*enov1.Composition)) []*enov1.Composition {
	all := make([]*enov1.Composition, 0, count)
	for i := range count {
		all = append(all, named(fmt.Sprintf("%s-%d-%d", tenant, count, i), append(changes, namespace(tenant))...))
	}

	return all
}

// TestFairness has compositions of several namespaces compete for ten slots.
func TestFairness(t *testing.T) {
	join := func(parts ...[]*enov1.Composition) (all []*enov1.Composition) {
		for _, p := range parts {
			all = append(all, p...)
		}

		return all
	}
	cases := map[string]struct {
		reason string
		all    []*enov1.Composition
		slots  int
		want   map[string]int // begun, by namespace
		free   int
	}{
		"Alone":      {"One namespace cannot have all slots: another could come.", many("a", 24, fresh), 10, map[string]int{"a": 8}, 0},
		"Newcomer":   {"Which then finds one.", join(many("a", 8, inFlight), many("a", 24, fresh), many("b", 1, fresh)), 10, map[string]int{"b": 1}, 0},
		"Two":        {"So does one more.", join(many("a", 8, inFlight), many("b", 1, inFlight), many("b", 5, fresh), many("c", 5, fresh)), 10, map[string]int{"c": 1}, 0},
		"Even":       {"Namespaces get the same number.", join(many("a", 24, fresh), many("b", 24, fresh)), 10, map[string]int{"a": 4, "b": 4}, 0},
		"CatchUp":    {"A namespace with fewer gets more.", join(many("a", 4, inFlight), many("a", 24, fresh), many("b", 24, fresh)), 10, map[string]int{"b": 4}, 0},
		"Update":     {"New compositions of one do not keep another from an update.", join(many("a", 100, fresh), many("b", 2, input)), 10, map[string]int{"a": 6, "b": 2}, 0},
		"Crowd":      {"Of many namespaces, each gets one slot at most.", join(many("a", 9, fresh), many("b", 9, fresh), many("c", 9, fresh), many("d", 9, fresh)), 4, map[string]int{"a": 1, "b": 1, "c": 1, "d": 1}, 0},
		"OneSlot":    {"One slot cannot be kept.", many("a", 2, fresh), 1, map[string]int{"a": 1}, 0},
		"TwoSlots":   {"Of two, one is.", many("a", 3, fresh), 2, map[string]int{"a": 1}, 0},
		"Enough":     {"Who waits for nothing leaves the rest.", many("a", 3, fresh), 10, map[string]int{"a": 3}, 7},
		"FewerSlots": {"The limit was higher.", join(many("a", 12, inFlight), many("a", 1, fresh), many("b", 1, fresh)), 10, nil, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := synthesis.Schedule(tc.all, map[string]*enov1.Synthesizer{"s": synthesizer()}, synthesis.Limits{Concurrency: tc.slots}, epoch.Add(time.Hour))
			var got map[string]int
			for _, s := range plan.Begin {
				if got == nil {
					got = map[string]int{}
				}
				got[s.Composition.Namespace]++
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || plan.Free != tc.free {
				t.Errorf("%s\nfree %d, want %d\n%s", tc.reason, plan.Free, tc.free, diff)
			}
		})
	}
}
