package preemption_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/internal/decide/preemption"
)

// searcher is a gang in a simulation of searches.
type searcher struct {
	gang     types.NamespacedName
	priority int32
	takes    time.Duration
	times    int // how often it searches
}

func searchers(namespace string, n int, priority int32, takes time.Duration, times int) []searcher {
	var all []searcher
	for i := range n {
		all = append(all, searcher{types.NamespacedName{Namespace: namespace, Name: strconv.Itoa(i)}, priority, takes, times})
	}

	return all
}

// simulate has gangs search until none wants to any more. While one searches, all others
// have been asked to wait. It returns when the last search of each gang ended, and fails if
// a gang that waits is never called.
func simulate(t *testing.T, gangs []searcher) map[types.NamespacedName]time.Duration {
	t.Helper()
	var turns preemption.Turns
	left, by := map[types.NamespacedName]int{}, map[types.NamespacedName]searcher{}
	var queue []types.NamespacedName
	for _, one := range gangs {
		left[one.gang], by[one.gang] = one.times, one
		queue = append(queue, one.gang)
	}
	var searching *searcher
	clock, ended := time.Duration(0), map[types.NamespacedName]time.Duration{}
	done := func(gang types.NamespacedName) {
		if next, ok := turns.Done(gang); ok {
			queue = append(queue, next)
		}
	}
	for len(queue) > 0 || searching != nil {
		if len(queue) == 0 {
			one := *searching
			clock += one.takes
			left[one.gang]--
			ended[one.gang] = clock
			turns.End(one.gang, one.takes)
			searching = nil
			if left[one.gang] > 0 {
				queue = append(queue, one.gang)
			}
			done(one.gang)

			continue
		}
		one := by[queue[0]]
		queue = queue[1:]
		if left[one.gang] > 0 && turns.Begin(one.gang, one.priority) {
			if searching != nil {
				t.Fatalf("%s and %s search at the same time.", searching.gang, one.gang)
			}
			searching = &one

			continue // it is dealt with until the search ends
		}
		done(one.gang)
	}
	for gang, n := range left {
		if n > 0 {
			t.Fatalf("%s waits forever.", gang)
		}
	}

	return ended
}

// A namespace with many gangs whose searches are slow does not delay those of another one by
// more than the search that is under way, and one per search of its own.
func TestTurnsBetweenNamespaces(t *testing.T) {
	const slow, quick = 10 * time.Second, 10 * time.Millisecond
	late := func(gangs []searcher, ended map[types.NamespacedName]time.Duration) time.Duration {
		last := time.Duration(0)
		for _, one := range gangs {
			last = max(last, ended[one.gang])
		}

		return last
	}
	cases := map[string]struct {
		reason   string
		before   []searcher // that wait already
		measured []searcher
		most     time.Duration
	}{
		"Quick": {
			"All quick gangs of the other namespace are done before the second slow search.",
			searchers("a", 100, 0, slow, 5), searchers("b", 20, 0, quick, 1), slow + 20*quick,
		},
		"AsSlow": {
			"Namespaces that are as slow take turns.",
			searchers("a", 100, 0, slow, 1), searchers("b", 3, 0, slow, 1), 6 * slow,
		},
		"SlowAgain": {
			"What a namespace has used counts while other gangs wait.",
			searchers("a", 2, 0, slow, 50), searchers("b", 50, 0, quick, 2), slow + 100*quick,
		},
		"Important": {
			"A higher priority is first, whatever its namespace has used.",
			searchers("a", 100, 0, slow, 1), searchers("a", 3, 7, slow, 1), 4 * slow,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for i := range tc.measured {
				tc.measured[i].gang.Name += "-measured"
			}
			ended := simulate(t, append(tc.before, tc.measured...))
			if got := late(tc.measured, ended); got > tc.most {
				t.Errorf("%s\nThe last one is done after %s, want %s at most.", tc.reason, got, tc.most)
			}
		})
	}
}

// The order in which gangs are called that wait for one search.
func TestTurns(t *testing.T) {
	gang := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: name[:1], Name: name}
	}
	type waits struct {
		name     string
		priority int32
	}
	cases := map[string]struct {
		reason string
		waits  []waits
		want   []string
	}{
		"None":      {"No gang is called if none waits.", nil, nil},
		"InOrder":   {"In one namespace, the first comes first.", []waits{{"b1", 0}, {"b2", 0}}, []string{"b1", "b2"}},
		"Priority":  {"The highest priority comes first.", []waits{{"b1", 0}, {"b2", 9}}, []string{"b2", "b1"}},
		"Namespace": {"The namespace that has searched least comes first.", []waits{{"a1", 0}, {"b1", 0}, {"a2", 0}, {"b2", 0}}, []string{"b1", "a1", "b2", "a2"}},
		"Twice":     {"A gang waits once, with its last priority.", []waits{{"b1", 0}, {"b2", 1}, {"b1", 2}}, []string{"b1", "b2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var turns preemption.Turns
			first := gang("a0")
			if !turns.Begin(first, 0) {
				t.Fatal("The first gang has to wait.")
			}
			for _, w := range tc.waits {
				if turns.Begin(gang(w.name), w.priority) {
					t.Fatalf("%s searches during another search.", w.name)
				}
				if next, ok := turns.Done(gang(w.name)); ok {
					t.Fatalf("%s is called during a search.", next)
				}
			}
			var got []string
			for searched := first; ; {
				turns.End(searched, time.Second)
				next, ok := turns.Done(searched)
				if !ok {
					break
				}
				got = append(got, next.Name)
				if !turns.Begin(next, 0) {
					t.Fatalf("%s was called and has to wait.", next)
				}
				searched = next
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nThe order differs (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A gang that was called and has no use for its turn does not keep the others waiting, and
// one of a higher priority that comes in between does not make a gang wait forever.
func TestTurnsNotUsed(t *testing.T) {
	var turns preemption.Turns
	a, b, c, d := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}, types.NamespacedName{Name: "c"}, types.NamespacedName{Name: "d"}
	turns.Begin(a, 0)
	turns.Begin(b, 0)
	turns.Begin(c, 0)
	turns.End(a, time.Second)
	if next, ok := turns.Done(a); !ok || next != b {
		t.Fatalf("Called is %v.", next)
	}
	if turns.Begin(d, 0) {
		t.Error("A gang of the same priority takes the turn of one that was called.")
	}
	if next, ok := turns.Done(d); ok {
		t.Errorf("%s is called although another one was.", next)
	}
	if !turns.Begin(d, 1) {
		t.Error("A gang of a higher priority has to wait for one that was called.")
	}
	if turns.Begin(b, 0) {
		t.Error("Two gangs search at the same time.")
	}
	if next, ok := turns.Done(b); ok {
		t.Errorf("%s is called during a search.", next)
	}
	turns.End(d, time.Second)
	if next, ok := turns.Done(d); !ok || next != c {
		t.Errorf("Called is %v.", next)
	}
	if next, ok := turns.Done(c); !ok || next != b { // it was deleted in the meantime
		t.Errorf("After a gang that does not search, called is %v.", next)
	}
}

// The time in which no gang of a namespace has searched, or waited, is no credit.
func TestTurnsWithoutCredit(t *testing.T) {
	var turns preemption.Turns
	gang := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: name[:1], Name: name}
	}
	wait := func(names ...string) {
		for _, name := range names {
			if turns.Begin(gang(name), 0) {
				t.Fatalf("%s does not wait.", name)
			}
		}
	}
	var got []string
	search := func(searched string) string {
		turns.End(gang(searched), 10*time.Second)
		next, ok := turns.Done(gang(searched))
		if !ok {
			return ""
		}
		got = append(got, next.Name)
		turns.Begin(next, 0)

		return next.Name
	}
	turns.Begin(gang("a0"), 0)
	wait("a1", "a2", "c0", "c1", "c2")
	now := search(search("a0"))
	wait("b1", "b2", "b3") // the others have searched for ten seconds each
	for now != "" {
		now = search(now)
	}
	if diff := cmp.Diff([]string{"c0", "a1", "c1", "b1", "a2", "c2", "b2", "b3"}, got); diff != "" {
		t.Errorf("The order differs (-want +got):\n%s", diff)
	}
}

// In no order of events a gang that waits is forgotten.
func TestTurnsForgetNone(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		var gangs []searcher
		for i := range 1 + random.IntN(12) {
			gangs = append(gangs, searcher{
				types.NamespacedName{Namespace: strconv.Itoa(random.IntN(3)), Name: strconv.Itoa(i)},
				int32(random.IntN(3)), time.Duration(random.IntN(100)), random.IntN(4),
			})
		}
		simulate(t, gangs)
	}
}
