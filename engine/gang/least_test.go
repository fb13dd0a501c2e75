package gang_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/arbor-control/arbor/engine/gang"
)

func TestLeast(t *testing.T) {
	cases := map[string]struct {
		reason string
		crowd  *crowd
		asks   []int64
		want   int64
	}{
		"Flat":  {"the smallest members meet the minimum", flat(2).with(3, "default", gang.Waiting, gpu(1)), []int64{4, 1, 2}, 3},
		"Bound": {"members that have a place ask for nothing", flat(2).with(1, "default", gang.Placed, gpu(1)).with(2, "default", gang.Waiting, gpu(1)), []int64{9, 4, 5}, 4},
		"Held":  {"members that are held are not placed", flat(1).with(1, "default", gang.Held, gpu(1)).with(1, "default", gang.Waiting, gpu(1)), []int64{1, 4}, 4},
		"Optional": {
			"one of two subgroups is enough",
			tree(set("", "s", 1), leaf("s", "x", 2), leaf("s", "y", 1)).with(2, "x", gang.Waiting, gpu(1)).with(1, "y", gang.Waiting, gpu(1)),
			[]int64{1, 1, 5},
			2,
		},
		"Incomplete": {"without enough members there is no minimum to ask for", flat(3).with(2, "default", gang.Waiting, gpu(1)), []int64{4, 4}, 0},
		"Huge":       {"the sum does not overflow", flat(2).with(2, "default", gang.Waiting, gpu(1)), []int64{math.MaxInt64, math.MaxInt64}, math.MaxInt64},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := gang.Least(tc.crowd.tree, tc.crowd.members, gang.Rules{}, tc.asks); got != tc.want {
				t.Errorf("%s\nLeast(...) = %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

// TestLeastIsALowerBound tries all sets of waiting members of small random gangs.
func TestLeastIsALowerBound(t *testing.T) {
	exact, checked := 0, 0
	for round := range rounds {
		random := rand.New(rand.NewPCG(uint64(round), 5))
		s := draw(random.IntN, false)
		var waiting []int
		asks := make([]int64, len(s.members))
		for i, m := range s.members {
			asks[i] = random.Int64N(5)
			if m.State == gang.Waiting {
				waiting = append(waiting, i)
			}
		}
		if len(waiting) > 8 {
			continue
		}
		best, found := int64(math.MaxInt64), false
		for bits := range 1 << len(waiting) {
			var places []gang.Placement
			total := int64(0)
			for n, member := range waiting {
				if bits>>n&1 == 1 {
					places = append(places, gang.Placement{Member: member})
					total += asks[member]
				}
			}
			if s.twin(places).satisfied(s.tree.Root()) {
				best, found = min(best, total), true
			}
		}
		got := gang.Least(s.tree, s.members, s.rules, asks)
		if !found {
			best = 0
		}
		if found && got > best {
			t.Fatalf("round %d: Least(%s) = %d, and members that ask for %d are enough", round, s, got, best)
		}
		checked++
		if got == best {
			exact++
		}
	}
	t.Logf("in %d of %d rounds the bound was exact", exact, checked)
	if checked < rounds/10 || exact*10 < checked*8 {
		t.Errorf("the bound was exact in %d of %d rounds", exact, checked)
	}
}
