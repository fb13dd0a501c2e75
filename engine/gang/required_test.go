package gang_test

import (
	"testing"

	"github.com/arbor-control/arbor/engine/gang"
)

func TestRequired(t *testing.T) {
	cases := map[string]struct {
		reason string
		crowd  *crowd
		nodes  int
		want   int
		places int
	}{
		"Minimum": {
			reason: "a gang that asks for all of its pods has no extras",
			crowd:  flat(4).with(4, "default", gang.Waiting, gpu(1)), nodes: 1, want: 4, places: 4,
		},
		"Extras": {
			reason: "pods above the minimum are extras",
			crowd:  flat(4).with(6, "default", gang.Waiting, gpu(1)), nodes: 1, want: 4, places: 6,
		},
		"Bound": {
			reason: "pods that have a node already count toward the minimum",
			crowd:  flat(4).with(3, "default", gang.Placed, gpu(1)).with(3, "default", gang.Waiting, gpu(1)), nodes: 1, want: 1, places: 3,
		},
		"Satisfied": {
			reason: "a gang that has its minimum places extras only",
			crowd:  flat(2).with(2, "default", gang.Placed, gpu(1)).with(3, "default", gang.Waiting, gpu(1)), nodes: 1, want: 0, places: 3,
		},
		"Optional": {
			reason: "an optional subgroup is an extra",
			crowd: tree(set("", "any", 1), leaf("any", "a", 2), leaf("any", "b", 2)).
				with(2, "a", gang.Waiting, gpu(1)).with(2, "b", gang.Waiting, gpu(1)), nodes: 1, want: 2, places: 4,
		},
		"NoRoom": {
			reason: "a gang that does not fit has no places",
			crowd:  flat(9).with(9, "default", gang.Waiting, gpu(1)), nodes: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			world := nodes(tc.nodes, 8, "nvidia.com/gpu")
			world.pods = tc.crowd.pods
			s := scenario{crowd: tc.crowd, world: world}
			d := s.check(t)
			if d.Required != tc.want || len(d.Places) != tc.places {
				t.Errorf("%s\nPlace(...) has %d places, %d of them required; want %d and %d", tc.reason, len(d.Places), d.Required, tc.places, tc.want)
			}
		})
	}
}

// TestRequiredIsEnough checks on random gangs that the required places alone
// meet every minimum, and that a gang that has its minimum requires nothing.
func TestRequiredIsEnough(t *testing.T) {
	var fit, extras int
	for round := range rounds {
		s := draw(random(uint64(round)), false)
		d := s.check(t)
		if !d.Fits {
			continue
		}
		fit++
		if len(d.Places) > d.Required {
			extras++
		}
		minimum := d
		minimum.Places = d.Places[:d.Required]
		next := s.commit(minimum)
		if !gang.Satisfied(next.tree, next.members, next.rules)[next.tree.Root()].Satisfied {
			t.Fatalf("Place(%s) requires %d of %d places, and they do not meet the minimum", s, d.Required, len(d.Places))
		}
		if again := next.check(t); again.Required != 0 {
			t.Fatalf("Place(%s) requires %d more places although the minimum is met", s, again.Required)
		}
	}
	if fit < rounds/10 || extras < rounds/100 {
		t.Errorf("%d of %d gangs fit, %d of them with extras, so the test tests little", fit, rounds, extras)
	}
}
