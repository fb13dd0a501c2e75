package synthesis_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/synthesis"
)

// named gives a composition a name of its own.
func named(name string, changes ...func(*enov1.Composition)) *enov1.Composition {
	return composition(append(changes, func(c *enov1.Composition) { c.Name, c.UID = name, types.UID(name) })...)
}

func fresh(c *enov1.Composition) { c.Status.CurrentSynthesis = nil }

func TestSchedule(t *testing.T) {
	now := epoch.Add(200 * time.Second)
	outdated := func(c *enov1.Composition) { c.Status.CurrentSynthesis.ObservedSynthesizerGeneration = 1 }
	deferredAt := func(seconds int) func(*enov1.Composition) {
		return func(c *enov1.Composition) {
			c.Status.CurrentSynthesis.Deferred, c.Status.CurrentSynthesis.Initialized = true, after(seconds)
		}
	}

	cases := map[string]struct {
		reason string
		all    []*enov1.Composition
		want   []string
		wait   []string
		free   int
		next   int
	}{
		"Nothing": {reason: "Nothing to do.", all: []*enov1.Composition{named("a")}, free: 3},
		"Order": {
			reason: "The most urgent first, as many as there is room for.",
			all:    []*enov1.Composition{named("a", outdated), named("b", input), named("c", fresh), named("d", generation)},
			want:   []string{"c Initial", "d CompositionModified"},
			wait:   []string{"b InputModified", "a SynthesizerModified"},
		},
		"Room": {
			reason: "What is in flight counts.",
			all:    []*enov1.Composition{named("a", inFlight), named("b", inFlight), named("c", fresh)},
			wait:   []string{"c Initial"},
		},
		"InPlace": {
			reason: "Who takes the place of another needs no room.",
			all:    []*enov1.Composition{named("a", inFlight, generation), named("b", inFlight)},
			want:   []string{"a CompositionModified"}, free: 1,
		},
		"Rollout": {
			reason: "One at a time.",
			all:    []*enov1.Composition{named("a", outdated), named("b", outdated)},
			want:   []string{"a SynthesizerModified"}, wait: []string{"b SynthesizerModified"}, free: 2, next: 260,
		},
		"Cooldown": {
			reason: "And the next after a while.",
			all:    []*enov1.Composition{named("a", outdated), named("b", deferredAt(150))},
			wait:   []string{"a SynthesizerModified"}, free: 3, next: 210,
		},
		"Cooled": {
			reason: "Which is over.",
			all:    []*enov1.Composition{named("a", outdated), named("b", deferredAt(140))},
			want:   []string{"a SynthesizerModified"}, free: 2,
		},
		"Urgent": {
			reason: "Others do not wait for a rollout.",
			all:    []*enov1.Composition{named("a", input), named("b", deferredAt(199))},
			want:   []string{"a InputModified"}, free: 2,
		},
		"Backoff": {
			reason: "Not before its time.",
			all:    []*enov1.Composition{named("a", canceled, func(c *enov1.Composition) { c.Status.InFlightSynthesis.Canceled = after(190) })},
			free:   3, next: 325,
		},
		"Missing": {
			reason: "Inputs must be there.",
			all:    []*enov1.Composition{named("a", fresh, func(c *enov1.Composition) { c.Status.InputRevisions = c.Status.InputRevisions[:1] })},
			free:   3,
		},
		"Mismatch": {
			reason: "And fit.",
			all: []*enov1.Composition{named("a", fresh, func(c *enov1.Composition) {
				c.Status.InputRevisions[0].Revision, c.Status.InputRevisions[1].Revision = new(1), new(2)
			})},
			free: 3,
		},
		"Stranger": {
			reason: "So must the Synthesizer.",
			all:    []*enov1.Composition{named("a", fresh, func(c *enov1.Composition) { c.Spec.Synthesizer.Name = "other" })},
			free:   3,
		},
		"Depends": {
			reason: "Dependencies come first.",
			all:    []*enov1.Composition{named("a", fresh, func(c *enov1.Composition) { c.Spec.DependsOn = []enov1.CompositionDependency{{Name: "b"}} }), named("b", fresh)},
			want:   []string{"b Initial"}, free: 2,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := synthesis.Schedule(tc.all, map[string]*enov1.Synthesizer{"s": synthesizer()}, synthesis.Limits{Concurrency: 3, Cooldown: time.Minute}, now)
			got, wait := starts(plan.Begin), starts(plan.Waiting)
			var next time.Time
			if tc.next != 0 {
				next = after(tc.next).Time
			}
			if diff := cmp.Diff(tc.wait, wait); diff != "" {
				t.Errorf("%s\nwaiting: %s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || plan.Free != tc.free || !plan.Next.Equal(next) {
				t.Errorf("%s\nfree %d, next %s\n%s", tc.reason, plan.Free, plan.Next, diff)
			}
		})
	}
}

func starts(all []synthesis.Start) []string {
	var names []string
	for _, s := range all {
		names = append(names, fmt.Sprint(s.Composition.Name, " ", s.Wish.Cause))
	}

	return names
}

// The order of a rollout depends on the generation and on nothing else, so that
// it is not always the same composition that tries first.
func TestRolloutOrder(t *testing.T) {
	rollout := func(generation int64, reverse bool) (order []string) {
		s := synthesizer()
		s.Generation = generation
		var all []*enov1.Composition
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			all = append(all, named(name))
		}
		if reverse {
			slices.Reverse(all)
		}
		for now := epoch; len(order) < len(all); now = now.Add(time.Minute) {
			for _, start := range synthesis.Schedule(all, map[string]*enov1.Synthesizer{"s": s}, synthesis.Limits{Concurrency: 10, Cooldown: time.Minute}, now).Begin {
				start.Composition.Status = synthesis.Begin(start, start.Composition.Name+"2", now)
				start.Composition.Status, _ = synthesis.Promote(&start.Composition.Status, synthesis.Done{UUID: start.Composition.Name + "2", BasedOn: "now", Inputs: start.Composition.Status.InputRevisions}, now)
				order = append(order, start.Composition.Name)
			}
		}

		return order
	}
	if diff := cmp.Diff(rollout(7, false), rollout(7, true)); diff != "" {
		t.Errorf("the order depends on who lists: %s", diff)
	}
	if cmp.Equal(rollout(7, false), rollout(8, false)) && cmp.Equal(rollout(7, false), rollout(9, false)) {
		t.Error("every generation has the same order")
	}
}
