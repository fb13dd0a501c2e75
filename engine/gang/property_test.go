package gang_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/engine/gang"
)

const rounds = 20_000

// check runs Place on a scenario and holds everything that is promised against
// what it did. It returns the decision.
func (s scenario) check(t *testing.T) gang.Decision {
	t.Helper()
	before := s.world.state()
	d, err := gang.Place(t.Context(), s.tree, s.members, s.world, s.rules)
	if err != nil {
		t.Fatalf("Place(%s): %v", s, err)
	}
	if !d.Fits {
		s.checkNothing(t, d, before)
	}
	s.checkPlaces(t, d)
	s.checkReports(t, d)
	s.checkOrder(t, d)

	return d
}

// checkNothing checks that a gang that does not fit has changed nothing, and has a reason.
func (s scenario) checkNothing(t *testing.T, d gang.Decision, before string) {
	t.Helper()
	if after := s.world.state(); after != before {
		t.Fatalf("Place(%s) does not fit, but the world was\n%s\nand is\n%s", s, before, after)
	}
	if len(d.Places) > 0 || d.Blocker < 0 {
		t.Fatalf("Place(%s) does not fit, but has places %v and blocker %d", s, d.Places, d.Blocker)
	}
	reason := d.Reason(s.tree)
	if reason == "" {
		t.Fatalf("Place(%s) does not fit and has no reason", s)
	}
	again, err := gang.Place(t.Context(), s.tree, s.members, s.world, s.rules)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(d, again) {
		t.Fatalf("Place(%s) twice: -first, +second:\n%s", s, cmp.Diff(d, again))
	}
	if second := again.Reason(s.tree); second != reason {
		t.Fatalf("Reason(%s) = %q, and then %q", s, reason, second)
	}
}

// checkPlaces: every place is held, was got by a waiting member, once, and in a
// subgroup that has its minimum, as have all above it.
func (s scenario) checkPlaces(t *testing.T, d gang.Decision) {
	t.Helper()
	held := map[int]string{}
	for _, h := range s.world.held {
		held[h.member] = s.world.names[h.node]
	}
	if len(held) != len(d.Places) || len(s.world.held) != len(held) {
		t.Fatalf("Place(%s) made %d places, the world holds %d", s, len(d.Places), len(s.world.held))
	}
	tw := s.twin(d.Places)
	if got := tw.satisfied(s.tree.Root()); got != d.Fits {
		t.Fatalf("Place(%s) fits %t, the twin reports %t for the places %v", s, d.Fits, got, d.Places)
	}
	for _, p := range d.Places {
		if held[p.Member] != p.Node {
			t.Fatalf("Place(%s) reports %v, the world %q", s, p, held[p.Member])
		}
		m := s.members[p.Member]
		if m.State != gang.Waiting {
			t.Fatalf("Place(%s) placed member %d in state %d", s, p.Member, m.State)
		}
		if !tw.legal(m.Leaf) {
			t.Fatalf("Place(%s) placed %s below a minimum: %v", s, m.Name, d.Places)
		}
	}
}

// twin sees what has a place after some placements.
func (s scenario) twin(places []gang.Placement) twin {
	has := counts(s.members, gang.Placed)
	for _, p := range places {
		has[s.members[p.Member].Leaf]++
	}

	return twin{tree: s.tree, rules: s.rules, has: func(leaf int) int { return has[leaf] }}
}

// checkReports: the counts are those of the twin.
func (s scenario) checkReports(t *testing.T, d gang.Decision) {
	t.Helper()
	now, then := s.twin(d.Places), s.twin(nil)
	for i, n := range s.tree.All() {
		got := d.Nodes[i]
		want := got
		want.Min = now.minimum(n)
		want.Bound = then.below(i)
		want.New = now.below(i) - want.Bound
		want.Satisfied = now.satisfied(i)
		if want.Satisfied {
			want.Children, want.Room, want.Blocker = now.satisfiedChildren(i), 0, -1
		}
		if !reflect.DeepEqual(want, got) {
			diff := cmp.Diff(want, got)
			t.Fatalf("Place(%s): report of %q: -twin, +got:\n%s", s, n.Name, diff)
		}
		if n.IsLeaf() && got.Room > max(0, got.Min-got.Bound) {
			t.Fatalf("Place(%s): leaf %q had room for %d of %d", s, n.Name, got.Room, got.Min-got.Bound)
		}
	}
}

// checkOrder: as long as the gang's minimum is not met, no leaf gets more than
// its own. A set's minimum of pods is met with extras, so this is about trees
// without one.
func (s scenario) checkOrder(t *testing.T, d gang.Decision) {
	t.Helper()
	for _, n := range s.tree.All() {
		if !n.IsLeaf() && s.twin(nil).minimum(n) > 0 {
			return
		}
	}
	for n := range d.Places {
		tw := s.twin(d.Places[:n])
		if tw.satisfied(s.tree.Root()) {
			return
		}
		leaf := s.members[d.Places[n].Member].Leaf
		if has := tw.has(leaf); has >= tw.minimum(s.tree.Node(leaf)) {
			t.Fatalf("Place(%s): place %d is an extra, before the minimum is met: %v", s, n, d.Places)
		}
	}
}

// commit makes the places of a decision what the gang has.
func (s scenario) commit(d gang.Decision) scenario {
	after := *s.crowd
	after.members = slices.Clone(s.members)
	for _, p := range d.Places {
		after.members[p.Member].State = gang.Placed
	}
	s.crowd = &after
	s.world.held = nil

	return s
}

func random(seed uint64) func(int) int { return rand.New(rand.NewPCG(seed, 7)).IntN }

func TestPlaceKeepsItsPromises(t *testing.T) {
	var fit, some, extras int
	for round := range rounds {
		s := draw(random(uint64(round)), false)
		d := s.check(t)
		if !d.Fits {
			if slices.ContainsFunc(d.Nodes, func(r gang.Report) bool { return r.Room > 0 }) {
				some++
			}

			continue
		}
		fit++
		next := s.commit(d)
		if again := next.check(t); !again.Fits {
			t.Fatalf("Place(%s) fits, and once it is placed it does not: %s", s, again.Reason(s.tree))
		} else if len(again.Places) > 0 {
			extras++
		}
	}
	t.Logf("%d of %d gangs fit, %d of the rest found some room", fit, rounds, some)
	if fit < rounds/10 || some < rounds/40 {
		t.Errorf("%d of %d gangs fit and %d of the rest found some room, so the test tests little", fit, rounds, some)
	}
	// A second attempt finds more only where pods have affinity to other pods.
	t.Logf("%d found more in a second look", extras)
}

// TestPlaceAgreesWithTwin is about pods that are all alike, where trying
// everything is possible. What fits is right by checkPlaces; here it is
// counted how often Place does not see that a gang fits.
func TestPlaceAgreesWithTwin(t *testing.T) {
	var fit, blind, blindWithoutMinimum int
	for round := range rounds {
		s := draw(random(uint64(round)), true)
		want := fits(s.tree, s.members, s.rules, s.room)
		d := s.check(t)
		switch {
		case d.Fits && !want:
			t.Fatalf("round %d: Place(%s) fits, the twin does not: %v", round, s, d.Places)
		case want:
			fit++
		}
		if want && !d.Fits {
			blind++
			if !s.setsHaveMinimum() {
				blindWithoutMinimum++
			}
			if testing.Verbose() {
				t.Logf("round %d: Place(%s): %s", round, s, d.Reason(s.tree))
			}
		}
		if d.Fits {
			s.checkMaximal(t, d)
		}
	}
	t.Logf("%d of %d gangs fit, and Place did not see it %d times", fit, rounds, blind)
	if blindWithoutMinimum > 0 {
		t.Errorf("Place did not see that %d gangs without a minMember of sets fit, want 0", blindWithoutMinimum)
	}
	if blind*1000 > fit {
		t.Errorf("Place did not see that %d of %d gangs fit, want at most 1 in 1000", blind, fit)
	}
}

func (s scenario) setsHaveMinimum() bool {
	for _, n := range s.tree.All() {
		if !n.IsLeaf() && s.twin(nil).minimum(n) > 0 {
			return true
		}
	}

	return false
}

// checkMaximal: of pods that are all alike, nothing more fits.
func (s scenario) checkMaximal(t *testing.T, d gang.Decision) {
	t.Helper()
	left := s.room - len(d.Places)
	if left == 0 {
		return
	}
	placed := map[int]bool{}
	for _, p := range d.Places {
		placed[p.Member] = true
	}
	tw := s.twin(d.Places)
	for at, m := range s.members {
		if m.State == gang.Waiting && !placed[at] && tw.legal(m.Leaf) {
			t.Fatalf("Place(%s) left out %s, with room for %d", s, m.Name, left)
		}
	}
}

// TestPlaceMinimum: the minimum is what Place does before the extras.
func TestPlaceMinimum(t *testing.T) {
	extras := 0
	for round := range rounds / 4 {
		s := draw(random(uint64(round)), round%2 == 0)
		least, err := gang.PlaceMinimum(t.Context(), s.tree, s.members, s.world, s.rules)
		if err != nil {
			t.Fatal(err)
		}
		s.world.Rollback(0)
		all := s.check(t)
		if least.Fits != all.Fits || !slices.Equal(least.Places, all.Places[:len(least.Places)]) {
			t.Fatalf("PlaceMinimum(%s) = %t, %v, Place = %t, %v", s, least.Fits, least.Places, all.Fits, all.Places)
		}
		if n := len(least.Places); n > 0 && !s.setsHaveMinimum() && s.twin(least.Places[:n-1]).satisfied(s.tree.Root()) {
			t.Fatalf("PlaceMinimum(%s) = %v, and the last of them is not needed", s, least.Places)
		}
		if len(all.Places) > len(least.Places) {
			extras++
		}
	}
	if extras < rounds/40 {
		t.Errorf("%d gangs had extras, so the test tests little", extras)
	}
}

func TestPlaceGivesBackOnError(t *testing.T) {
	failed, cancelled := 0, 0
	for round := range rounds / 4 {
		s := draw(random(uint64(round)), false)
		before := s.world.state()
		at := 1 + round%5
		ctx, cancel := context.WithCancel(t.Context())
		if round%2 == 0 {
			s.world.failAt = at
		} else {
			s.world.cancelAt, s.world.cancel = at, cancel
		}
		d, err := gang.Place(ctx, s.tree, s.members, s.world, s.rules)
		cancel()
		switch {
		case err == nil:
			continue
		case errors.Is(err, errWorld):
			failed++
		case errors.Is(err, context.Canceled):
			cancelled++
		default:
			t.Fatalf("Place(%s): %v", s, err)
		}
		if after := s.world.state(); after != before || !reflect.DeepEqual(d, gang.Decision{}) {
			t.Fatalf("Place(%s) failed with decision %v, and the world was\n%s\nand is\n%s", s, d, before, after)
		}
	}
	if failed < 100 || cancelled < 100 {
		t.Errorf("%d worlds failed and %d contexts were canceled, want at least 100 of each", failed, cancelled)
	}
}

func TestCountsAgreeWithTwin(t *testing.T) {
	var satisfied, stale, missing int
	for round := range rounds {
		s := draw(random(uint64(round)), true)
		tw := s.twin(nil)
		for i, r := range gang.Satisfied(s.tree, s.members, s.rules) {
			want := gang.Report{
				Min: tw.minimum(s.tree.Node(i)), MinChildren: r.MinChildren, Blocker: -1,
				Pods: s.existing(i, gang.Waiting, gang.Placed, gang.Held), Bound: tw.below(i), Held: s.existing(i, gang.Held),
				Children: tw.satisfiedChildren(i), Satisfied: tw.satisfied(i),
			}
			if want != r {
				t.Fatalf("Satisfied(%s): node %d: -twin, +got:\n%s", s, i, cmp.Diff(want, r))
			}
		}
		if tw.satisfied(s.tree.Root()) {
			satisfied++
		}
		got := gang.Stale(s.tree, s.members, s.rules)
		if want := twinStale(s.tree, s.members, s.rules); !slices.Equal(want, got) {
			t.Fatalf("Stale(%s): -twin, +got:\n%s", s, cmp.Diff(want, got))
		}
		if len(got) > 0 {
			stale++
		}
		// Enough pods exist if the gang fits into a world without end.
		lack := gang.Missing(s.tree, s.members, s.rules)
		if fits(s.tree, s.members, s.rules, len(s.members)) != (lack == nil) {
			t.Fatalf("Missing(%s) = %v, the twin differs", s, lack)
		}
		if lack != nil {
			missing++
			if lack.Message(s.tree) == "" {
				t.Fatalf("Missing(%s) has no description", s)
			}
		}
	}
	for what, n := range map[string]int{"satisfied": satisfied, "stale": stale, "without enough pods": missing} {
		if n < rounds/20 {
			t.Errorf("%d of %d gangs were %s, so the test tests little", n, rounds, what)
		}
	}
}

// existing counts members at and below a node.
func (s scenario) existing(i int, states ...gang.State) int {
	have := counts(s.members, states...)

	return twin{tree: s.tree, has: func(leaf int) int { return have[leaf] }}.below(i)
}
