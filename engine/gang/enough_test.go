package gang_test

import (
	"slices"
	"testing"

	"github.com/arbor-control/arbor/engine/gang"
)

// TestEnough checks on random gangs that the members that are returned meet the
// minimum, and that none of them could be left out.
func TestEnough(t *testing.T) {
	found := 0
	for round := range rounds {
		next := random(uint64(round))
		s := draw(next, false)
		var some []int
		for i, m := range s.members {
			if m.State == gang.Waiting && next(4) > 0 {
				some = append(some, i)
			}
		}
		met := func(members []int) bool {
			var places []gang.Placement
			for _, i := range members {
				places = append(places, gang.Placement{Member: i})
			}

			return s.twin(places).satisfied(s.tree.Root())
		}
		got := gang.Enough(s.tree, s.members, s.rules, some)
		if !met(some) || met(nil) {
			if got != nil {
				t.Fatalf("round %d: Enough(%s, %v) = %v, want none", round, s, some, got)
			}

			continue
		}
		found++
		if !met(got) || !slices.IsSorted(got) {
			t.Fatalf("round %d: Enough(%s, %v) = %v, which is not enough", round, s, some, got)
		}
		for i, one := range got {
			if !slices.Contains(some, one) || met(slices.Delete(slices.Clone(got), i, i+1)) {
				t.Fatalf("round %d: Enough(%s, %v) = %v, without member %d too", round, s, some, got, one)
			}
		}
	}
	if found < rounds/20 {
		t.Errorf("only %d gangs had enough: the test tests little", found)
	}
}

// TestLackingIsALowerBound adds fewer pods than lack, wherever.
func TestLackingIsALowerBound(t *testing.T) {
	lacked, several := 0, 0
	for round := range rounds {
		next := random(uint64(round))
		s := draw(next, false)
		lack := gang.Lacking(s.tree, s.members, s.rules)
		if missing := gang.Missing(s.tree, s.members, s.rules) != nil; missing != (lack > 0) {
			t.Fatalf("round %d: Lacking(%s) = %d, but pods are missing: %t", round, s, lack, missing)
		}
		if lack == 0 {
			continue
		}
		lacked++
		if lack > 1 {
			several++
		}
		now := slices.Clone(s.members)
		for range lack - 1 {
			held := slices.IndexFunc(now, func(m gang.Member) bool { return m.State == gang.Held })
			if held >= 0 && next(2) == 0 {
				now[held].State = gang.Waiting
			} else {
				leaves := s.tree.Leaves()
				now = append(now, gang.Member{Leaf: leaves[next(len(leaves))]})
			}
		}
		if gang.Missing(s.tree, now, s.rules) == nil {
			t.Fatalf("round %d: Lacking(%s) = %d, and one fewer is enough", round, s, lack)
		}
	}
	if lacked < rounds/20 || several < rounds/50 {
		t.Errorf("%d gangs lacked pods, %d of them several: the test tests little", lacked, several)
	}
}
