package victims_test

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/engine/victims"
)

// fits tries every node for every member, and reports whether there are places that meet the
// minimum without some pods.
func (s *story) fits(evict []int) bool {
	for _, pod := range evict {
		s.cluster.Evict(pod)
	}
	now := slices.Clone(s.Members)
	ok := s.tryFrom(0, now)
	for _, pod := range evict {
		s.cluster.Restore(pod)
	}

	return ok
}

func (s *story) tryFrom(member int, now []gang.Member) bool {
	if gang.Satisfied(s.Tree, now, s.Rules)[s.Tree.Root()].Satisfied && len(gang.Stale(s.Tree, now, s.Rules)) == 0 {
		return true
	}
	if member == len(now) {
		return false
	}
	for node := range s.Nodes {
		if !s.cluster.fits(member, node) {
			continue
		}
		s.cluster.Place(member, node)
		now[member].State = gang.Placed
		ok := s.tryFrom(member+1, now)
		now[member].State = gang.Waiting
		s.cluster.Unplace(member, node)
		if ok {
			return true
		}
	}

	return s.tryFrom(member+1, now)
}

// TestSearchAgreesWithTwin checks that what is impossible is impossible for all victims, and what
// fits fits. Places are found greedily, so this is strict for members that are all alike and
// counted for the rest.
func TestSearchAgreesWithTwin(t *testing.T) {
	for _, alike := range []bool{true, false} {
		var impossible, blind int
		for round := range rounds / 2 {
			s := draw(random(uint64(round)), alike)
			if len(s.Members) > 6 {
				continue
			}
			r := s.check(t)
			if r.Outcome != victims.Impossible {
				continue
			}
			impossible++
			everybody := make([]int, len(s.Pods))
			for i := range everybody {
				everybody[i] = i
			}
			if !s.fits(everybody) {
				continue
			}
			blind++
			if alike {
				t.Fatalf("round %d: Search(%s) = %+v, and the twin finds places", round, s, r)
			}
		}
		t.Logf("alike %t: %d were impossible, and %d times the twin found places", alike, impossible, blind)
		if impossible < rounds/100 {
			t.Errorf("alike %t: %d were impossible, so the test tests little", alike, impossible)
		}
		if blind*10 > impossible {
			t.Errorf("alike %t: %d of %d that were impossible were not, want at most 1 in 10", alike, blind, impossible)
		}
	}
}

// A price is what the best plan is compared by.
type price struct {
	violations int
	priority   int32
	damage     int64
}

func (s *story) price(evict []int) price {
	p := price{violations: s.violations(evict), priority: -1}
	for _, pod := range evict {
		p.priority = max(p.priority, s.Pods[pod].Priority)
		p.damage += s.Pods[pod].Damage
	}

	return p
}

func (p price) compare(q price) int {
	return cmp.Or(cmp.Compare(p.violations, q.violations), cmp.Compare(p.priority, q.priority), cmp.Compare(p.damage, q.damage))
}

// TestSearchIsNearTheBest counts how often there is no better plan, of all sets
// of pods and all places. It need not be so: this would be packing bins.
func TestSearchIsNearTheBest(t *testing.T) {
	var found, best, least int
	for round := range rounds / 10 {
		s := draw(random(uint64(round)), false)
		if len(s.Members) > 4 {
			continue
		}
		r := s.check(t)
		if r.Outcome != victims.Found {
			continue
		}
		found++
		all := make([]int, len(s.Pods))
		for i := range all {
			all[i] = i
		}
		got, better, fewer := s.price(r.Victims), false, false
		for bits := range 1 << len(all) {
			some := subset(all, bits)
			p := s.price(some)
			cheaper, less := p.compare(got) < 0, p.damage < got.damage
			if (cheaper && !better || less && !fewer) && s.legal(some) && s.fits(some) {
				better, fewer = better || cheaper, fewer || less
			}
		}
		if !better {
			best++
		}
		if !fewer {
			least++
		}
	}
	t.Logf("%d plans were found, of %d there is no better one, of %d none with less damage", found, best, least)
	if found < rounds/100 || best*10 < found*7 {
		t.Errorf("%d of %d plans were the best, want at least 7 in 10", best, found)
	}
}

// amounts counts the GPUs and CPUs of a story.
func (s *story) amounts() *victims.Amounts {
	of := func(all []thing) [][]int64 {
		var amounts [][]int64
		for _, t := range all {
			amounts = append(amounts, []int64{int64(t.gpu), int64(t.cpu)})
		}

		return amounts
	}

	return &victims.Amounts{
		Resources: []victims.Resource{{Name: "GPUs", Unit: 1}, {Name: "CPUs", Unit: 1}},
		Asks:      of(s.cluster.members), Free: of(s.cluster.free), Frees: of(s.cluster.pods),
	}
}

// TestSumsNeverRejectAPlan checks that what the sums reject has no places for any victims, and that
// otherwise the search finds the same with and without them.
func TestSumsNeverRejectAPlan(t *testing.T) {
	var rejected, impossible int
	for round := range rounds {
		s := draw(random(uint64(round)), round%2 == 0)
		want := s.check(t)
		s.Amounts = s.amounts()
		got := s.check(t)
		if want.Outcome == victims.Impossible {
			impossible++
		}
		if got.Outcome != victims.Insufficient {
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Fatalf("round %d: Search(%s) with and without sums (-without +with):\n%s", round, s, diff)
			}

			continue
		}
		rejected++
		if want.Outcome != victims.Impossible {
			t.Fatalf("round %d: the sums reject %s (%s), and the search finds %+v", round, s, got.Reason, want)
		}
		everybody := make([]int, len(s.Pods))
		for i := range everybody {
			everybody[i] = i
		}
		if len(s.Members) <= 6 && s.fits(everybody) {
			t.Fatalf("round %d: the sums reject %s (%s), and the twin finds places", round, s, got.Reason)
		}
	}
	t.Logf("%d of %d impossible problems were rejected by their sums", rejected, impossible)
	if rejected < rounds/100 {
		t.Errorf("only %d problems were rejected by their sums: the test tests little", rejected)
	}
}
