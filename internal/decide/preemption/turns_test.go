package preemption_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
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
	urgent   bool
}

func searchers(namespace string, n int, priority int32, takes time.Duration, times int) []searcher {
	var all []searcher
	for i := range n {
		all = append(all, searcher{types.NamespacedName{Namespace: namespace, Name: strconv.Itoa(i)}, priority, takes, times, false})
	}

	return all
}

// simulate lets gangs search until none wants to any more. While one searches, the rest has been
// asked to wait. It returns when the last search of each gang ended, and fails if a gang that waits
// is never called.
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
			next, ok := turns.End(one.gang, one.takes)
			searching = nil
			if left[one.gang] > 0 {
				queue = append(queue, one.gang)
			}
			if ok {
				queue = append(queue, next)
			}
			done(one.gang)

			continue
		}
		one := by[queue[0]]
		queue = queue[1:]
		if left[one.gang] > 0 && turns.Begin(one.gang, one.priority, one.urgent) {
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
		urgent   bool
	}
	cases := map[string]struct {
		reason string
		waits  []waits
		want   []string
	}{
		"None":    {"No gang is called if none waits.", nil, nil},
		"InOrder": {"In one namespace, the first comes first.", []waits{{name: "b1"}, {name: "b2"}}, []string{"b1", "b2"}},
		"Priority": {
			"The highest priority comes first.", []waits{{name: "b1"}, {name: "b2", priority: 9}}, []string{"b2", "b1"},
		},
		"Namespace": {
			"The namespace that has searched least comes first.",
			[]waits{{name: "a1"}, {name: "b1"}, {name: "a2"}, {name: "b2"}},
			[]string{"b1", "a1", "b2", "a2"},
		},
		"Twice": {
			"A gang waits once, with its last priority.",
			[]waits{{name: "b1"}, {name: "b2", priority: 1}, {name: "b1", priority: 2}},
			[]string{"b1", "b2"},
		},
		"Urgent": {
			"Pods are terminating for a gang, so it is before others of its priority, whatever its namespace has used.",
			[]waits{{name: "b1"}, {name: "a1", urgent: true}, {name: "b2", priority: 1}},
			[]string{"b2", "a1", "b1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var turns preemption.Turns
			first := gang("a0")
			if !turns.Begin(first, 0, false) {
				t.Fatal("The first gang has to wait.")
			}
			last := map[string]waits{}
			for _, w := range tc.waits {
				last[w.name] = w
				if turns.Begin(gang(w.name), w.priority, w.urgent) {
					t.Fatalf("%s searches during another search.", w.name)
				}
				if next, ok := turns.Done(gang(w.name)); ok {
					t.Fatalf("%s is called during a search.", next)
				}
			}
			var got []string
			for searched := first; ; {
				next, ok := turns.End(searched, time.Second)
				if again, twice := turns.Done(searched); twice {
					t.Fatalf("%s is called although %s was.", again, next)
				}
				if !ok {
					break
				}
				got = append(got, next.Name)
				if !turns.Begin(next, last[next.Name].priority, last[next.Name].urgent) {
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

// A gang that was called and does not use its turn does not keep the rest waiting, and one of a
// higher priority that comes in between does not make a gang wait forever.
func TestTurnsNotUsed(t *testing.T) {
	var turns preemption.Turns
	a, b, c, d := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}, types.NamespacedName{Name: "c"}, types.NamespacedName{Name: "d"}
	turns.Begin(a, 0, false)
	turns.Begin(b, 0, false)
	turns.Begin(c, 0, false)
	if next, ok := turns.End(a, time.Second); !ok || next != b {
		t.Fatalf("Called is %v.", next)
	}
	if turns.Begin(d, 0, false) {
		t.Error("A gang of the same priority takes the turn of one that was called.")
	}
	if next, ok := turns.Done(d); ok {
		t.Errorf("%s is called although another one was.", next)
	}
	if !turns.Begin(d, 1, false) {
		t.Error("A gang of a higher priority has to wait for one that was called.")
	}
	if turns.Begin(b, 0, false) {
		t.Error("Two gangs search at the same time.")
	}
	if next, ok := turns.Done(b); ok {
		t.Errorf("%s is called during a search.", next)
	}
	if next, ok := turns.End(d, time.Second); !ok || next != c {
		t.Errorf("Called is %v.", next)
	}
	if next, ok := turns.Done(c); !ok || next != b { // it was deleted in the meantime
		t.Errorf("After a gang that does not search, called is %v.", next)
	}
}

// A gang continues after its turn, and writes to the API server for example. The next one is called
// all the same, and one of a lower priority does not get in between.
func TestTurnsAfterTheEnd(t *testing.T) {
	searched, high, low := types.NamespacedName{Name: "searched"}, types.NamespacedName{Name: "high"}, types.NamespacedName{Name: "low"}
	var turns preemption.Turns
	turns.Begin(searched, 9, false)
	turns.Begin(high, 5, false)
	turns.Done(high)
	if next, ok := turns.End(searched, time.Second); !ok || next != high {
		t.Errorf("At the end of a turn, called is %v.", next)
	}
	if turns.Begin(low, 0, false) {
		t.Error("A gang of a lower priority begins before the one that waits.")
	}
	if turns.Begin(searched, 5, false) {
		t.Error("A gang has two turns in a row although another one waits.")
	}
	if next, ok := turns.Done(searched); ok {
		t.Errorf("%s is called twice.", next)
	}
	if !turns.Begin(high, 5, false) {
		t.Error("The gang that was called has to wait.")
	}
}

// Time in which no gang of a namespace has searched, or waited, is not a credit.
func TestTurnsWithoutCredit(t *testing.T) {
	// A trace is what happens during each search: these gangs begin to wait. A name is the
	// namespace, the name, and "+" if its priority is higher.
	type during map[string][]string
	var many []string
	for i := range 19 {
		many = append(many, "a"+strconv.Itoa(i+1))
	}
	cases := map[string]struct {
		reason string
		during during
		want   []string
	}{
		"OthersWait": {
			"The others have searched for five seconds each when b joins.",
			during{"a0": {"a1", "a2", "c0", "c1", "c2"}, "a1": {"b1", "b2", "b3"}},
			[]string{"a0", "c0", "a1", "c1", "b1", "a2", "c2", "b2", "b3"},
		},
		"OneSearches": {
			"No gang waits when b joins, and the last of twenty searches of a is under way.",
			during{"a0": many, "a19": {"b1", "b2", "b3"}, "b1": {"a20", "a21"}},
			slices.Concat([]string{"a0"}, many, []string{"b1", "b2", "a20", "b3", "a21"}),
		},
		"HigherPriority": {
			"What gangs of a higher priority have used does not count for the others.",
			during{"a0": {"a1+", "a2+", "a3+", "c0", "c1"}, "a3+": {"b1", "b2"}},
			[]string{"a0", "a1+", "a2+", "a3+", "c0", "b1", "c1", "b2"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var turns preemption.Turns
			begin := func(name string) bool {
				return turns.Begin(types.NamespacedName{Namespace: name[:1], Name: name}, int32(strings.Count(name, "+")), false)
			}
			var got []string
			for now := "a0"; now != ""; {
				if !begin(now) {
					t.Fatalf("%s has to wait.", now)
				}
				got = append(got, now)
				for _, name := range tc.during[now] {
					if begin(name) {
						t.Fatalf("%s does not wait.", name)
					}
				}
				next, _ := turns.End(types.NamespacedName{Namespace: now[:1], Name: now}, 5*time.Second)
				now = next.Name
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nThe order differs (-want +got):\n%s", tc.reason, diff)
			}
		})
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
				int32(random.IntN(3)), time.Duration(random.IntN(100)), random.IntN(4), random.IntN(4) == 0,
			})
		}
		simulate(t, gangs)
	}
}
