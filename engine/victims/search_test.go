package victims_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/engine/podtree"
	"github.com/arbor-control/arbor/engine/victims"
)

var one, two, four, eight = thing{gpu: 1}, thing{gpu: 2}, thing{gpu: 4}, thing{gpu: 8}

// inference runs a router and three replicas of three four-GPU pods, of which
// two are needed, on five nodes of eight GPUs.
func inference() *story {
	s := newStory(5, 8).gang(podtree.Spec{SubGroups: []podtree.SubGroup{
		leaf("", "router", 1), set("", "decode", 2),
		leaf("decode", "r1", 3), leaf("decode", "r2", 3), leaf("decode", "r3", 3),
	}})
	s.run("router", 4, thing{cpu: 1}, s.of("router"))
	for i := range 9 {
		replica := "r" + strconv.Itoa(1+i/3)
		s.run(fmt.Sprintf("%s-%d", replica, i%3), i/2, four, s.of(replica))
	}

	return s
}

// full runs one-GPU pods on 500 nodes that have eight, older ones first.
func full() *story {
	const nodes = 500
	s := newStory(nodes, 8)
	for i := range 8 * nodes {
		s.run("p"+strconv.Itoa(i), i%nodes, one, started(int64(i)))
	}

	return s
}

func TestSearch(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		story      *story
		want       victims.Outcome
		victims    []string
		violations int
	}{
		"SurplusReplica": {
			reason: "of three replicas two are needed, so one is evicted whole and the rest stays",
			story:  inference().preemptor(flat(2)).want(2, podtree.DefaultLeaf, four),
			want:   victims.Found, victims: []string{"r1-0", "r1-1", "r1-2"},
		},
		"WholeGang": {
			reason: "one replica is not enough, so the gang is evicted",
			story:  inference().preemptor(flat(5)).want(5, podtree.DefaultLeaf, four),
			want:   victims.Found, victims: []string{"r1-0", "r1-1", "r1-2", "r2-0", "r2-1", "r2-2", "r3-0", "r3-1", "r3-2", "router"},
		},
		"OneNodeOf500": {
			reason: "one pod of eight GPUs needs the pods of one node, and not of the youngest everywhere",
			story:  full().preemptor(flat(1)).want(1, podtree.DefaultLeaf, eight),
			want:   victims.Found, victims: []string{"p3999", "p3499", "p2999", "p2499", "p1999", "p1499", "p499", "p999"},
		},
		"Fits": {
			reason: "there is room already",
			story:  newStory(2, 8).run("a", 0, eight).preemptor(flat(2)).want(2, podtree.DefaultLeaf, four),
			want:   victims.Fits,
		},
		"Satisfied": {
			reason: "nobody is evicted for pods that the minimum does not need",
			story:  newStory(1, 8).run("a", 0, eight).preemptor(flat(0)).want(2, podtree.DefaultLeaf, four),
			want:   victims.Fits,
		},
		"OnlyTheMinimum": {
			reason: "two of the four pods are needed, and no more is evicted",
			story: newStory(1, 8).run("a", 0, two).run("b", 0, two).run("c", 0, two).run("d", 0, two).
				preemptor(flat(2)).want(4, podtree.DefaultLeaf, two),
			want: victims.Found, victims: []string{"c", "d"},
		},
		"Impossible": {
			reason: "it does not fit into an empty cluster",
			story:  newStory(2, 8).run("a", 0, eight).preemptor(flat(3)).want(3, podtree.DefaultLeaf, eight),
			want:   victims.Impossible,
		},
		"OtherPods": {
			reason: "pods that may not be evicted keep their room",
			story: func() *story {
				s := newStory(2, 8).run("a", 1, eight)
				s.cluster.add(0, eight, 1)

				return s.preemptor(flat(2)).want(2, podtree.DefaultLeaf, eight)
			}(),
			want: victims.Impossible,
		},
		"LeastPriority": {
			reason: "the highest priority among the victims is as low as possible, even if there are more of them",
			story: newStory(2, 2).run("high", 0, two, priority(5)).run("low1", 1, one).run("low2", 1, one).
				preemptor(flat(1)).want(1, podtree.DefaultLeaf, two),
			want: victims.Found, victims: []string{"low1", "low2"},
		},
		"LeastDamage": {
			reason: "a pod of four GPUs is evicted rather than one of eight",
			story: func() *story {
				s := newStory(2, 8).run("big", 0, eight).run("small", 1, four)
				s.cluster.add(1, four, 1)

				return s.preemptor(flat(1)).want(1, podtree.DefaultLeaf, four)
			}(),
			want: victims.Found, victims: []string{"small"},
		},
		"Young": {
			reason: "of equal pods the youngest is evicted",
			story: newStory(3, 2).run("old", 0, two, started(1)).run("young", 1, two, started(9)).run("middle", 2, two, started(5)).
				preemptor(flat(1)).want(1, podtree.DefaultLeaf, two),
			want: victims.Found, victims: []string{"young"},
		},
		"YoungOnOneNode": {
			reason: "and on one node too",
			story: newStory(1, 3).run("old", 0, one, started(1)).run("young", 0, one, started(9)).run("middle", 0, one, started(5)).
				preemptor(flat(1)).want(1, podtree.DefaultLeaf, two),
			want: victims.Found, victims: []string{"middle", "young"},
		},
		"SurplusFirst": {
			reason: "a surplus pod is evicted before a gang that needs all",
			story: func() *story {
				s := newStory(3, 1)
				s.gang(flat(2)).run("a1", 0, one, s.of(podtree.DefaultLeaf)).run("a2", 1, one, s.of(podtree.DefaultLeaf))
				s.gang(flat(0)).run("b1", 2, one, s.of(podtree.DefaultLeaf))

				return s.preemptor(flat(1)).want(1, podtree.DefaultLeaf, one)
			}(),
			want: victims.Found, victims: []string{"b1"},
		},
		"TheRightSurplus": {
			reason: "of four pods two are needed: the one in the way is evicted, and no other",
			story: func() *story {
				s := newStory(1, 7).gang(flat(2))
				for _, name := range []string{"a", "b"} {
					s.run(name, 0, one, s.of(podtree.DefaultLeaf))
				}
				s.run("c", 0, four, s.of(podtree.DefaultLeaf)).run("d", 0, one, s.of(podtree.DefaultLeaf))

				return s.preemptor(flat(1)).want(1, podtree.DefaultLeaf, four)
			}(),
			want: victims.Found, victims: []string{"c"},
		},
		"OneReplicaOfTwo": {
			reason: "two pods of one replica are evicted rather than one of each",
			story: func() *story {
				s := newStory(2, 3).gang(podtree.Spec{MinSubGroup: num(2), SubGroups: []podtree.SubGroup{leaf("", "r1", 2), leaf("", "r2", 2), leaf("", "r3", 1)}})
				s.run("r1-0", 0, one, s.of("r1")).run("r2-0", 0, one, s.of("r2")).run("r1-1", 0, one, s.of("r1"))
				s.run("r2-1", 1, one, s.of("r2")).run("r3-0", 1, one, s.of("r3"), priority(1)).run("x", 1, one, priority(1))

				return s.preemptor(flat(1)).want(1, podtree.DefaultLeaf, two)
			}(),
			want: victims.Found, victims: []string{"r1-0", "r1-1"},
		},
		"BrokenReplica": {
			reason: "a replica below its minimum is evicted before one that works, and the gang stays",
			story: func() *story {
				s := newStory(2, 2).gang(podtree.Spec{MinSubGroup: num(1), SubGroups: []podtree.SubGroup{leaf("", "r1", 2), leaf("", "r2", 3)}})
				s.run("r1-0", 0, one, s.of("r1")).run("r1-1", 0, one, s.of("r1"))
				s.run("r2-0", 1, one, s.of("r2")).run("r2-1", 1, one, s.of("r2"))

				return s.preemptor(flat(1)).want(1, podtree.DefaultLeaf, two)
			}(),
			want: victims.Found, victims: []string{"r2-0", "r2-1"},
		},
		"Succeeded": {
			reason: "the last pod of a gang whose others have succeeded is the gang",
			story: func() *story {
				s := newStory(1, 1).gang(flat(3))

				return s.run("last", 0, one, s.of(podtree.DefaultLeaf)).succeeded(2, podtree.DefaultLeaf).
					preemptor(flat(1)).want(1, podtree.DefaultLeaf, one)
			}(),
			want: victims.Found, victims: []string{"last"},
		},
		"UsesWhatLeavesAnyway": {
			reason: "room that a gang leaves on other nodes is used before anybody else is evicted",
			story: func() *story {
				s := newStory(4, 1).gang(flat(2))
				s.run("a1", 0, one, s.of(podtree.DefaultLeaf)).run("x", 1, one, priority(1)).run("y", 2, one, priority(1)).run("a2", 3, one, s.of(podtree.DefaultLeaf))

				return s.preemptor(flat(2)).want(2, podtree.DefaultLeaf, one)
			}(),
			want: victims.Found, victims: []string{"a1", "a2"},
		},
		"Budgets": {
			reason: "budgets come before priority",
			story: func() *story {
				s := newStory(2, 1).run("guarded", 0, one, under(0)).run("free", 1, one, priority(5))
				s.Budgets = []int32{0}

				return s.preemptor(flat(1)).want(1, podtree.DefaultLeaf, one)
			}(),
			want: victims.Found, victims: []string{"free"},
		},
		"BudgetsTogether": {
			reason: "each of two pods may be evicted, both may not",
			story: func() *story {
				s := newStory(1, 3).run("a", 0, one, under(0)).run("b", 0, one, under(0)).run("free", 0, one, priority(5))
				s.Budgets = []int32{1}

				return s.preemptor(flat(1)).want(1, podtree.DefaultLeaf, two)
			}(),
			want: victims.Found, victims: []string{"b", "free"},
		},
		"BudgetViolated": {
			reason: "if there is no other way, budgets are violated as kube-scheduler does",
			story: func() *story {
				s := newStory(1, 2).run("a", 0, one, under(0)).run("b", 0, one, under(0))
				s.Budgets = []int32{1}

				return s.preemptor(flat(1)).want(1, podtree.DefaultLeaf, two)
			}(),
			want: victims.Found, victims: []string{"a", "b"}, violations: 1,
		},
		"HardBudget": {
			reason: "unless budgets are hard",
			story: func() *story {
				s := newStory(1, 2).run("a", 0, one, under(0)).run("b", 0, one, under(0))
				s.Budgets, s.HardBudgets = []int32{1}, true

				return s.preemptor(flat(1)).want(1, podtree.DefaultLeaf, two)
			}(),
			want: victims.Unproven,
		},
		"HardBudgetElsewhere": {
			reason: "with hard budgets the second pod is evicted where the budget allows it",
			story: func() *story {
				s := newStory(3, 1).run("a", 0, one, under(0)).run("b", 1, one, under(0)).run("c", 2, one, priority(3))
				s.Budgets, s.HardBudgets = []int32{1}, true

				return s.preemptor(flat(2)).want(2, podtree.DefaultLeaf, one)
			}(),
			want: victims.Found, victims: []string{"a", "c"},
		},
		"HardBudgetOtherPods": {
			reason: "the budget allows to evict q or p; with p evicted, r is",
			story: func() *story {
				s := newStory(3, 2).run("x", 0, two, priority(9)).run("p", 1, one, under(0)).run("q", 2, one, under(0)).run("r", 2, one, priority(3))
				s.cluster.add(1, one, 1)
				s.Budgets, s.HardBudgets = []int32{1}, true

				return s.preemptor(flat(2)).want(2, podtree.DefaultLeaf, one)
			}(),
			want: victims.Found, victims: []string{"p", "r"},
		},
		"HardBudgetOtherSubgroup": {
			reason: "the first subgroup would violate the budget, the second does not",
			story: func() *story {
				s := newStory(2, 1).run("p", 0, one, under(0)).run("q", 1, one, under(0))
				s.Budgets, s.HardBudgets = []int32{1}, true

				return s.preemptor(podtree.Spec{MinSubGroup: num(1), SubGroups: []podtree.SubGroup{leaf("", "a", 2), leaf("", "b", 1)}}).
					want(2, "a", one).want(1, "b", one)
			}(),
			want: victims.Found, victims: []string{"p"},
		},
		"Fallback": {
			reason: "the cheapest node for the small pod is the only one for the large pod, so the places of the empty cluster are taken",
			story: func() *story {
				s := newStory(2, 3).run("cheap", 1, thing{gpu: 3}).run("costly", 0, two, priority(1))
				s.cluster.add(0, one, 1)

				return s.preemptor(podtree.Spec{SubGroups: []podtree.SubGroup{leaf("", "small", 1), leaf("", "large", 1)}}).
					want(1, "small", two).want(1, "large", thing{gpu: 3})
			}(),
			want: victims.Found, victims: []string{"cheap", "costly"},
		},
		"Spread": {
			reason: "pods that exclude each other everywhere cannot be placed together",
			story: newStory(2, 1).run("a", 0, one).run("b", 1, one).
				preemptor(flat(2)).want(2, podtree.DefaultLeaf, thing{gpu: 1, app: "x", alone: "x"}),
			want: victims.Impossible,
		},
		"CostsGrow": {
			reason: "once the surplus of the gang is gone, its pods cost more than they did",
			story: func() *story {
				s := newStory(4, 1).gang(flat(2))
				for i := range 3 {
					s.run("g"+strconv.Itoa(i), i, one, s.of(podtree.DefaultLeaf))
				}
				s.cluster.free[3].gpu = 2

				return s.run("plain", 3, two).preemptor(flat(2)).want(2, podtree.DefaultLeaf, one)
			}(),
			want: victims.Found, victims: []string{"g0", "plain"},
		},
		"CostsShrink": {
			reason: "what the first subgroup took before it failed costs the second as little",
			story: func() *story {
				s := newStory(4, 1).gang(flat(2))
				for i := range 3 {
					s.run("g"+strconv.Itoa(i), i, one, s.of(podtree.DefaultLeaf))
				}
				s.cluster.free[0].cpu, s.cluster.free[2].cpu, s.cluster.free[3].gpu = 0, 0, 2
				s.run("plain", 3, two)
				s.preemptor(podtree.Spec{MinSubGroup: num(1), SubGroups: []podtree.SubGroup{
					set("", "a", 3), leaf("a", "a1", 1), leaf("a", "a2", 1), leaf("a", "a3", 1), leaf("", "b", 1),
				}})

				return s.want(1, "a1", one).want(1, "a2", thing{gpu: 1, cpu: 1}).want(1, "a3", eight).want(1, "b", thing{gpu: 1, cpu: 1})
			}(),
			want: victims.Found, victims: []string{"g1"},
		},
		"SeenFromElsewhere": {
			reason: "a member that excludes others everywhere no longer does when its subgroup is given up",
			story: func() *story {
				s := newStory(2, 1).preemptor(podtree.Spec{MinSubGroup: num(1), SubGroups: []podtree.SubGroup{
					set("", "a", 2), leaf("a", "a1", 1), leaf("a", "a2", 1), leaf("", "b", 1),
				}})
				s.cluster.free[0].cpu = 0
				other := thing{gpu: 1, cpu: 1, app: "x"}

				return s.want(1, "a1", thing{gpu: 1, alone: "x"}).want(1, "a2", other).want(1, "b", other)
			}(),
			want: victims.Fits,
		},
		"ForbiddenFromElsewhere": {
			reason: "the second member fits once the pod on the other node is evicted for the first",
			story: newStory(2, 1).run("a", 0, one).run("b", 1, thing{gpu: 1, alone: "x"}).
				preemptor(flat(2)).want(2, podtree.DefaultLeaf, thing{gpu: 1, app: "x"}),
			want: victims.Found, victims: []string{"a", "b"},
		},
		"LeavesForElsewhere": {
			reason: "s could stay when h1 leaves its node, but then y stays too, which a member on another node excludes",
			story: func() *story {
				s := newStory(4, 0)
				s.cluster.free = []thing{{gpu: 2}, {cpu: 50}, {}, {gpu: 1, cpu: 1}}
				s.gang(flat(2)).run("s", 0, one, s.of(podtree.DefaultLeaf)).run("y", 2, thing{app: "x"}, s.of(podtree.DefaultLeaf))
				s.gang(flat(2)).run("h1", 0, one, s.of(podtree.DefaultLeaf), priority(9)).run("h2", 3, one, s.of(podtree.DefaultLeaf), priority(9))
				s.preemptor(podtree.Spec{SubGroups: []podtree.SubGroup{leaf("", "a", 1), leaf("", "b", 1), leaf("", "c", 1)}})

				return s.want(1, "a", one).want(1, "b", thing{cpu: 50, alone: "x"}).want(1, "c", thing{gpu: 1, cpu: 1})
			}(),
			want: victims.Found, victims: []string{"h1", "h2", "s", "y"},
		},
		"SparesBudgetsFirst": {
			reason: "one of a and b can stay as a gang leaves the node too; that is the one whose budget is violated",
			story: func() *story {
				s := newStory(2, 3).gang(flat(2))
				s.run("a", 0, one, under(0)).run("b", 0, one, priority(5))
				s.run("g1", 0, one, s.of(podtree.DefaultLeaf), under(0), priority(9)).run("g2", 1, thing{gpu: 3}, s.of(podtree.DefaultLeaf), priority(9))
				s.Budgets = []int32{0}
				s.cluster.free[0].cpu = 0
				s.preemptor(podtree.Spec{SubGroups: []podtree.SubGroup{leaf("", "x", 1), leaf("", "y", 1)}})

				return s.want(1, "x", two).want(1, "y", thing{gpu: 3, cpu: 1})
			}(),
			want: victims.Found, victims: []string{"b", "g1", "g2"}, violations: 1,
		},
		"Unproven": {
			reason: "members of one shape that exclude each other after all are found out in the end, and nobody is evicted",
			story: func() *story {
				s := newStory(2, 1).run("a", 0, one).run("b", 1, one).
					preemptor(flat(2)).want(2, podtree.DefaultLeaf, thing{gpu: 1, app: "x", alone: "x"})
				s.Members[0].Shape, s.Members[1].Shape = "alike", "alike"

				return s
			}(),
			want: victims.Unproven,
		},
		"EvictsOnOtherNodes": {
			reason: "a member that excludes an app everywhere takes the node where that app runs",
			story: newStory(2, 1).run("a", 0, thing{gpu: 1}).run("b", 1, thing{gpu: 1, app: "x"}).
				preemptor(flat(1)).want(1, podtree.DefaultLeaf, thing{gpu: 1, alone: "x"}),
			want: victims.Found, victims: []string{"b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.story.cluster.state()
			got, err := victims.Search(t.Context(), &tc.story.Problem, tc.story.cluster)
			if err != nil {
				t.Fatal(err)
			}
			if got.Outcome != tc.want || got.Violations != tc.violations || (got.Reason == "") != (tc.want == victims.Found || tc.want == victims.Fits) {
				t.Errorf("outcome %d with %d violations and reason %q, want %d with %d: %s", got.Outcome, got.Violations, got.Reason, tc.want, tc.violations, tc.reason)
			}
			slices.Sort(tc.victims)
			if diff := cmp.Diff(tc.victims, tc.story.names(got.Victims)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if after := tc.story.cluster.state(); after != before {
				t.Errorf("the cluster was\n%s\nand is\n%s", before, after)
			}
		})
	}
}

func TestSearchPrefers(t *testing.T) {
	s := newStory(3, 1).run("a", 0, one).preemptor(flat(1)).want(1, podtree.DefaultLeaf, one)
	for prefer, want := range map[int]int{-1: 1, 0: 1, 1: 1, 2: 2} {
		s.Prefer = func(int) int { return prefer }
		got, err := victims.Search(t.Context(), &s.Problem, s.cluster)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]victims.Place{{Member: 0, Node: want}}, got.Places); diff != "" || got.Outcome != victims.Fits {
			t.Errorf("with node %d preferred: outcome %d, places: -want, +got:\n%s", prefer, got.Outcome, diff)
		}
	}
}

func TestSearchReusesNodes(t *testing.T) {
	s := newStory(3, 1).gang(flat(2))
	s.run("g1", 1, one, s.of(podtree.DefaultLeaf)).run("g2", 2, one, s.of(podtree.DefaultLeaf))
	s.cluster.free[0].cpu = 0
	s.preemptor(podtree.Spec{SubGroups: []podtree.SubGroup{leaf("", "x", 1), leaf("", "y", 1)}}).want(1, "x", thing{gpu: 1, cpu: 1}).want(1, "y", one)
	got, err := victims.Search(t.Context(), &s.Problem, s.cluster)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]victims.Place{{Member: 0, Node: 1}, {Member: 1, Node: 2}}, got.Places); diff != "" {
		t.Errorf("the second pod takes the node that the gang leaves rather than node 0, which others may use: -want, +got:\n%s", diff)
	}
}

func TestSearchRefusesWhatNamesNothing(t *testing.T) {
	for want, change := range map[string]func(*victims.Pod){
		"node 3 of 3":            func(p *victims.Pod) { p.Node = 3 },
		"node -1 of 3":           func(p *victims.Pod) { p.Node = -1 },
		"budget 0 of 0":          under(0),
		"gang 1 of 1":            func(p *victims.Pod) { p.Gang = 1 },
		"member 1 of gang 0":     func(p *victims.Pod) { p.Gang, p.Member = 0, 1 },
		"which is not a placed ": func(p *victims.Pod) { p.Gang, p.Member = 0, 0 },
	} {
		s := newStory(3, 1).gang(flat(1)).preemptor(flat(1)).want(1, podtree.DefaultLeaf, one)
		s.Gangs[0].Members = members(s.Gangs[0].Tree, podtree.DefaultLeaf, 1, gang.Waiting, "")
		s.run("a", 0, one)
		change(&s.Pods[0])
		_, err := victims.Search(t.Context(), &s.Problem, s.cluster)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Search() error = %v, want one with %q", err, want)
		}
	}
}

// TestSearchEndsWithItsContext: wherever the context ends or the cluster fails,
// there is no plan and the cluster is as before.
func TestSearchEndsWithItsContext(t *testing.T) {
	s := inference().preemptor(flat(2)).want(2, podtree.DefaultLeaf, four)
	if _, err := victims.Search(t.Context(), &s.Problem, s.cluster); err != nil {
		t.Fatal(err)
	}
	before, questions := s.cluster.state(), s.cluster.asked
	for at := range questions {
		for _, want := range []error{errCluster, context.Canceled} {
			ctx, cancel := context.WithCancel(t.Context())
			s.cluster.asked, s.cluster.failAt, s.cluster.cancelAt, s.cluster.cancel = 0, 0, 0, cancel
			if errors.Is(want, errCluster) {
				s.cluster.failAt = at + 1
			} else {
				s.cluster.cancelAt = at + 1
			}
			got, err := victims.Search(ctx, &s.Problem, s.cluster)
			cancel()
			if !errors.Is(err, want) {
				t.Fatalf("question %d of %d: error %v, want %v", at, questions, err, want)
			}
			if diff := cmp.Diff(victims.Result{}, got); diff != "" {
				t.Fatalf("question %d of %d: result: -want, +got:\n%s", at, questions, diff)
			}
			if after := s.cluster.state(); after != before {
				t.Fatalf("question %d of %d: the cluster was\n%s\nand is\n%s", at, questions, before, after)
			}
		}
	}
}
