package gang_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/engine/podtree"
)

// inference is a router, and decode with three replicas of which it needs two.
func inference(pods int) *crowd {
	c := tree(leaf("", "router", 1), set("", "decode", 2),
		leaf("decode", "r1", 3), leaf("decode", "r2", 3), leaf("decode", "r3", 3),
	).with(1, "router", gang.Placed, gpu(0))
	for _, replica := range []string{"r1", "r2", "r3"} {
		c.with(pods, replica, gang.Placed, gpu(1))
	}

	return c
}

func TestLosses(t *testing.T) {
	twoOfFour := func(minimum int32) *crowd {
		c := tree(leaf("", "a", 1), leaf("", "b", 2))
		c.spec.MinSubGroup, c.spec.MinMember = num(1), num(minimum)

		return c.with(2, "a", gang.Placed, gpu(1)).with(2, "b", gang.Placed, gpu(1))
	}
	for name, tc := range map[string]struct {
		reason string
		gang   *crowd
		rules  gang.Rules
		// taken one after the other, and what each takes with it.
		taken []int
		want  [][]int
	}{
		"Surplus": {
			reason: "a pod above the minimum leaves alone, until none is left",
			gang:   flat(2).with(4, podtree.DefaultLeaf, gang.Placed, gpu(1)),
			taken:  []int{3, 0, 2}, want: [][]int{{3}, {0}, {1, 2}},
		},
		"Elastic": {
			reason: "a gang with a minimum of zero loses one pod after the other",
			gang:   flat(0).with(2, podtree.DefaultLeaf, gang.Placed, gpu(1)),
			taken:  []int{0, 1}, want: [][]int{{0}, {1}},
		},
		"Whole": {
			reason: "without surplus all pods leave",
			gang:   flat(3).with(3, podtree.DefaultLeaf, gang.Placed, gpu(1)),
			taken:  []int{1}, want: [][]int{{0, 1, 2}},
		},
		"NotThere": {
			reason: "a pod that has left, or has no place, does not leave",
			gang: flat(1).with(1, podtree.DefaultLeaf, gang.Waiting, gpu(1)).
				with(1, podtree.DefaultLeaf, gang.Held, gpu(1)).with(2, podtree.DefaultLeaf, gang.Placed, gpu(1)),
			taken: []int{0, 1, 2, 2, 3}, want: [][]int{nil, nil, {2}, nil, {3}},
		},
		"Replica": {
			reason: "a surplus replica leaves whole; of the two that are needed, none does without the gang",
			gang:   inference(3),
			taken:  []int{4, 9}, want: [][]int{{4, 5, 6}, {0, 1, 2, 3, 7, 8, 9}},
		},
		"SurplusOfReplica": {
			reason: "a replica with a surplus pod loses that first, then itself",
			gang:   inference(4),
			taken:  []int{1, 2}, want: [][]int{{1}, {2, 3, 4}},
		},
		"Required": {
			reason: "the router is required, so the gang leaves with it",
			gang:   inference(3),
			taken:  []int{0}, want: [][]int{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		},
		"BrokenReplica": {
			reason: "a replica that is below its minimum leaves whole, and the gang stays",
			gang: tree(set("", "decode", 1), leaf("decode", "r1", 3), leaf("decode", "r2", 3)).
				with(3, "r1", gang.Placed, gpu(1)).with(2, "r2", gang.Placed, gpu(1)),
			taken: []int{3, 0}, want: [][]int{{3, 4}, {0, 1, 2}},
		},
		"BrokenBeside": {
			reason: "a broken replica does not keep the surplus of another from leaving alone",
			gang: tree(set("", "decode", 1), leaf("decode", "r1", 1), leaf("decode", "r2", 3)).
				with(3, "r1", gang.Placed, gpu(1)).with(2, "r2", gang.Placed, gpu(1)),
			taken: []int{0, 1}, want: [][]int{{0}, {1}},
		},
		"BrokenGang": {
			reason: "all of a gang below its minimum leave together",
			gang:   flat(3).with(2, podtree.DefaultLeaf, gang.Placed, gpu(1)),
			taken:  []int{1}, want: [][]int{{0, 1}},
		},
		"BrokenCounts": {
			reason: "the pods of a broken subgroup count for the minMember of the gang, which leaves if it needs them",
			gang: func() *crowd {
				c := tree(leaf("", "a", 1), leaf("", "b", 3))
				c.spec.MinSubGroup, c.spec.MinMember = num(1), num(2)

				return c.with(1, "a", gang.Placed, gpu(1)).with(1, "b", gang.Placed, gpu(1))
			}(),
			taken: []int{1}, want: [][]int{{0, 1}},
		},
		"MinMemberOfSet": {
			reason: "the gang needs three pods: one leaves alone, then the gang",
			gang:   twoOfFour(3),
			taken:  []int{0, 1}, want: [][]int{{0}, {1, 2, 3}},
		},
		"LeavesOnly": {
			reason: "without the minMember of the gang, a subgroup leaves before it",
			gang:   twoOfFour(3), rules: gang.Rules{LeavesOnly: true},
			taken: []int{0, 2, 1}, want: [][]int{{0}, {2, 3}, {1}},
		},
		"Interleaved": {
			reason: "a subgroup leaves whole in whatever order its members come",
			gang: tree(set("", "s", 1), leaf("s", "a", 2), leaf("s", "b", 1)).with(1, "b", gang.Placed, gpu(1)).
				with(1, "a", gang.Placed, gpu(1)).with(1, "b", gang.Placed, gpu(1)).with(1, "a", gang.Placed, gpu(1)),
			taken: []int{3}, want: [][]int{{1, 3}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := gang.NewLosses(tc.gang.tree, tc.gang.members, tc.rules)
			var got [][]int
			for _, member := range tc.taken {
				with := l.With(member)
				got = append(got, l.Take(member))
				slices.Sort(got[len(got)-1])
				if slices.Sort(with); !slices.Equal(with, got[len(got)-1]) {
					t.Errorf("With(%d) = %v, Take(%d) = %v, want the same", member, with, member, got[len(got)-1])
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestBroken(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		gang   *crowd
		left   []int
		want   bool
	}{
		"Nobody":      {reason: "no pod has left", gang: inference(3)},
		"Everybody":   {reason: "no pod remains that needs them", gang: inference(3), left: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		"Replica":     {reason: "two replicas are enough", gang: inference(3), left: []int{1, 2, 3}},
		"PartOfOne":   {reason: "the rest of the replica is below its minimum", gang: inference(3), left: []int{1}, want: true},
		"TwoReplicas": {reason: "decode needs two", gang: inference(3), left: []int{1, 2, 3, 4, 5, 6}, want: true},
		"Surplus":     {reason: "three of four are enough", gang: inference(4), left: []int{1, 5, 9}},
		"Before": {
			reason: "a gang that was below its minimum before is not broken by this",
			gang:   flat(3).with(2, podtree.DefaultLeaf, gang.Placed, gpu(1)), left: []int{0},
		},
		"NotPlaced": {
			reason: "a pod without a place cannot leave it",
			gang:   flat(1).with(1, podtree.DefaultLeaf, gang.Placed, gpu(1)).with(1, podtree.DefaultLeaf, gang.Waiting, gpu(1)), left: []int{1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := gang.Broken(tc.gang.tree, tc.gang.members, gang.Rules{}, func(m int) bool { return slices.Contains(tc.left, m) })
			if got != tc.want {
				t.Errorf("Broken() = %t, want %t: %s", got, tc.want, tc.reason)
			}
		})
	}
}

// A twinLosses recounts the whole gang for every question.
type twinLosses struct {
	tree    *podtree.Tree
	members []gang.Member
	rules   gang.Rules
}

// below returns the placed members at and below a node.
func (tw twinLosses) below(node int) []int {
	var all []int
	for at, m := range tw.members {
		for i := m.Leaf; m.State == gang.Placed && i >= 0; i = tw.tree.Node(i).Parent {
			if i == node {
				all = append(all, at)
			}
		}
	}

	return all
}

// without is the gang once members have left.
func (tw twinLosses) without(left []int) twinLosses {
	tw.members = slices.Clone(tw.members)
	for _, m := range left {
		tw.members[m].State = gang.Held
	}

	return tw
}

func (tw twinLosses) satisfied(i int) bool {
	return gang.Satisfied(tw.tree, tw.members, tw.rules)[i].Satisfied
}

// aboveStay reports whether a node and all above it are satisfied without them.
func (tw twinLosses) aboveStay(i int, left []int) bool {
	for after := tw.without(left); i >= 0; i = tw.tree.Node(i).Parent {
		if !after.satisfied(i) {
			return false
		}
	}

	return true
}

// with tries the member alone, and then the nodes on its path from below, but
// none below a node that is not satisfied.
func (tw twinLosses) with(member int) []int {
	if tw.members[member].State != gang.Placed {
		return nil
	}
	leaf := tw.members[member].Leaf
	lowest := -1
	for i := leaf; i >= 0; i = tw.tree.Node(i).Parent {
		if !tw.satisfied(i) {
			lowest = i
		}
	}
	if lowest < 0 {
		if tw.aboveStay(leaf, []int{member}) {
			return []int{member}
		}
		lowest = leaf
	}
	for i := lowest; ; i = tw.tree.Node(i).Parent {
		if left := tw.below(i); tw.aboveStay(tw.tree.Node(i).Parent, left) {
			return left
		}
	}
}

// drawRunning is a gang of which most have a place.
func drawRunning(next func(int) int) scenario {
	s := draw(next, true)
	for at := range s.members {
		if next(8) > 0 {
			s.members[at].State = gang.Placed
		}
	}

	return s
}

func TestLossesAgreeWithTwin(t *testing.T) {
	var alone, subgroups, gangs int
	for round := range rounds / 4 {
		next := random(uint64(round))
		s := drawRunning(next)
		if len(s.members) == 0 {
			continue
		}
		l := gang.NewLosses(s.tree, s.members, s.rules)
		now := twinLosses{tree: s.tree, members: s.members, rules: s.rules}
		stale := gang.Stale(s.tree, s.members, s.rules)
		for range len(s.members) {
			member := next(len(s.members))
			want, got := now.with(member), l.Take(member)
			if slices.Sort(got); !slices.Equal(want, got) {
				t.Fatalf("round %d: %s: Take(%d): -twin, +got:\n%s", round, s, member, cmp.Diff(want, got))
			}
			switch {
			case len(got) == 0:
				continue
			case len(got) == 1:
				alone++
			case len(got) == len(now.below(s.tree.Root())):
				gangs++
			default:
				subgroups++
			}
			now = now.without(got)
			// No member becomes stale because other members have left.
			stale = slices.DeleteFunc(stale, func(m int) bool { return slices.Contains(got, m) })
			if after := gang.Stale(s.tree, now.members, s.rules); !slices.Equal(stale, after) {
				t.Fatalf("round %d: %s: after Take(%d): stale members: -want, +got:\n%s", round, s, member, cmp.Diff(stale, after))
			}
			if gang.Broken(s.tree, s.members, s.rules, func(m int) bool { return now.members[m].State != gang.Placed }) {
				t.Fatalf("round %d: %s: after Take(%d) the gang is broken", round, s, member)
			}
		}
	}
	t.Logf("%d members left alone, %d subgroups and %d gangs left whole", alone, subgroups, gangs)
	if least := rounds / 40; alone < least || subgroups < least || gangs < least {
		t.Errorf("%d members left alone, %d subgroups and %d gangs left whole, want at least %d of each", alone, subgroups, gangs, least)
	}
}

// TestBrokenAgreesWithTwin is about any members that leave, units or not.
func TestBrokenAgreesWithTwin(t *testing.T) {
	broken := 0
	for round := range rounds / 4 {
		next := random(uint64(round))
		s := drawRunning(next)
		now := twinLosses{tree: s.tree, members: s.members, rules: s.rules}
		var left []int
		for _, m := range now.below(s.tree.Root()) {
			if next(3) == 0 {
				left = append(left, m)
			}
		}
		after, want := now.without(left), false
		for i := range s.tree.All() {
			want = want || now.satisfied(i) && !after.satisfied(i) && len(after.below(i)) > 0
		}
		if got := gang.Broken(s.tree, s.members, s.rules, func(m int) bool { return slices.Contains(left, m) }); got != want {
			t.Fatalf("round %d: Broken(%s without %v) = %t, want %t", round, s, left, got, want)
		}
		if want {
			broken++
		}
	}
	if broken < rounds/40 {
		t.Errorf("%d gangs were broken, so the test tests little", broken)
	}
}

func TestLossesRollback(t *testing.T) {
	for round := range rounds / 4 {
		next := random(uint64(round))
		s := drawRunning(next)
		l := gang.NewLosses(s.tree, s.members, s.rules)
		answers := func() [][]int {
			var all [][]int
			for m := range s.members {
				all = append(all, l.With(m))
			}

			return all
		}
		type state struct {
			mark    int
			answers [][]int
		}
		states := []state{{l.Mark(), answers()}}
		for range 3 * len(s.members) {
			if next(4) > 0 {
				l.Take(next(len(s.members)))
				states = append(states, state{l.Mark(), answers()})

				continue
			}
			states = states[:1+next(len(states))]
			want := states[len(states)-1]
			l.Rollback(want.mark)
			if diff := cmp.Diff(want.answers, answers()); diff != "" {
				t.Fatalf("round %d: %s: answers after Rollback(%d): -want, +got:\n%s", round, s, want.mark, diff)
			}
		}
	}
}

func BenchmarkLosses(b *testing.B) {
	for _, s := range shapes {
		tree, members := big(b, s.spec(1000), "one")
		for at := range members {
			members[at].State = gang.Placed
		}
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			l := gang.NewLosses(tree, members, gang.Rules{})
			for b.Loop() {
				for at := range members {
					l.Take(at)
				}
				l.Rollback(0)
			}
		})
	}
}
