package gang_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/engine/podtree"
)

var errWorld = errors.New("the world has ended")

func num(n int32) *int32 { return &n }

func ref(s string) *string { return &s }

// A crowd is a gang with its pods, written down in a few words.
type crowd struct {
	spec    podtree.Spec
	tree    *podtree.Tree
	members []gang.Member
	pods    []pod
}

func flat(minimum int32) *crowd { return &crowd{spec: podtree.Spec{MinMember: num(minimum)}} }

func tree(groups ...podtree.SubGroup) *crowd { return &crowd{spec: podtree.Spec{SubGroups: groups}} }

// leaf and set are subgroups; parent may be empty.
func leaf(parent, name string, minimum int32) podtree.SubGroup {
	return podtree.SubGroup{Name: name, Parent: &parent, MinMember: num(minimum)}
}

func set(parent, name string, minimum int32) podtree.SubGroup {
	return podtree.SubGroup{Name: name, Parent: &parent, MinSubGroup: num(minimum)}
}

// build makes the tree.
func (c *crowd) build() {
	t, err := podtree.New(c.spec)
	if err != nil {
		panic(err)
	}
	c.tree = t
}

// with adds n members to a leaf.
func (c *crowd) with(n int, leaf string, state gang.State, p pod) *crowd {
	if c.tree == nil {
		c.build()
	}
	node, ok := c.tree.Leaf(leaf)
	if !ok {
		panic("no leaf " + leaf)
	}
	for range n {
		c.join(node, state, p, false)
	}

	return c
}

// join adds a member. Without unique, pods that are equal have one shape.
func (c *crowd) join(node int, state gang.State, p pod, unique bool) {
	m := gang.Member{
		Name: fmt.Sprintf("%s-%d", c.tree.Node(node).Name, len(c.members)),
		Leaf: node, State: state, Shape: fmt.Sprint(p),
	}
	if unique {
		m.Shape = ""
	}
	c.members = append(c.members, m)
	c.pods = append(c.pods, p)
}

func gpu(n int) pod { return pod{wants: map[string]int{"nvidia.com/gpu": n}} }

// byLeaf counts places by the name of the leaf.
func (c *crowd) byLeaf(d gang.Decision) map[string]int {
	all := map[string]int{}
	for _, p := range d.Places {
		all[c.tree.Node(c.members[p.Member].Leaf).Name]++
	}

	return all
}

func TestPlace(t *testing.T) {
	const gpus = "nvidia.com/gpu"
	replicas := func(third int) *crowd {
		c := tree(set("", "decode", 2),
			set("decode", "r1", 2), leaf("r1", "r1-leader", 1), leaf("r1", "r1-workers", 3),
			set("decode", "r2", 2), leaf("r2", "r2-leader", 1), leaf("r2", "r2-workers", 3),
			set("decode", "r3", 2), leaf("r3", "r3-leader", 1), leaf("r3", "r3-workers", 3),
		)
		for _, r := range []string{"r1", "r2"} {
			c.with(1, r+"-leader", gang.Waiting, gpu(1)).with(3, r+"-workers", gang.Waiting, gpu(1))
		}

		return c.with(1, "r3-leader", gang.Waiting, gpu(1)).with(3, "r3-workers", gang.Waiting, gpu(third))
	}
	const full4 = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."
	const full1 = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
	cases := map[string]struct {
		reason string
		crowd  *crowd
		world  *fakeWorld
		rules  gang.Rules
		want   map[string]int
		why    string
	}{
		"Fits": {
			reason: "T1: a gang that fits is placed whole",
			crowd:  flat(20).with(20, "default", gang.Waiting, gpu(1)),
			world:  nodes(4, 8, gpus), want: map[string]int{"default": 20},
		},
		"AllOrNothing": {
			reason: "T1: one that does not takes nothing",
			crowd:  flat(20).with(20, "default", gang.Waiting, gpu(1)),
			world:  nodes(4, 3, gpus), why: "room for 12 of min 20 pods: " + full4,
		},
		"SubGroupDoesNotFit": {
			reason: "T2: one subgroup that does not fit keeps back the other",
			crowd: tree(leaf("", "a", 10), leaf("", "b", 2)).
				with(10, "a", gang.Waiting, gpu(1)).with(2, "b", gang.Waiting, gpu(9)),
			world: nodes(4, 8, gpus), why: `subgroup "b": room for 0 of min 2 pods: ` + full4,
		},
		"MinimumsFirst": {
			reason: "T3: extras of a come after the minimum of b",
			crowd: tree(leaf("", "a", 8), leaf("", "b", 8)).
				with(30, "a", gang.Waiting, gpu(1)).with(8, "b", gang.Waiting, gpu(1)),
			world: nodes(4, 8, gpus), want: map[string]int{"a": 24, "b": 8},
		},
		"OptionalWhole": {
			reason: "T5: an optional replica that does not fit whole has no leader either",
			crowd:  replicas(9), world: nodes(4, 8, gpus),
			want: map[string]int{"r1-leader": 1, "r1-workers": 3, "r2-leader": 1, "r2-workers": 3},
		},
		"OptionalFits": {
			reason: "one that does is placed",
			crowd:  replicas(7), world: nodes(4, 8, gpus),
			want: map[string]int{"r1-leader": 1, "r1-workers": 3, "r2-leader": 1, "r2-workers": 3, "r3-leader": 1, "r3-workers": 3},
		},
		"TooFewReplicas": {
			reason: "a set with a choice reports how many fit, and why the first of the rest does not",
			crowd:  replicas(9), world: nodes(1, 6, gpus),
			why: `only 1 of min 2 subgroups of "decode" fit: subgroup "r2-workers": room for 1 of min 3 pods: ` + full1,
		},
		"CheapestFirst": {
			reason: "two small children fit where the big one in front leaves no room for a second",
			crowd: tree(set("", "s", 2), leaf("s", "big", 4), leaf("s", "x", 2), leaf("s", "y", 2)).
				with(4, "big", gang.Waiting, gpu(1)).with(2, "x", gang.Waiting, gpu(1)).with(2, "y", gang.Waiting, gpu(1)),
			world: nodes(1, 5, gpus), want: map[string]int{"x": 2, "y": 2},
		},
		"CheapestFirstFurtherBelow": {
			reason: "the big child may prevent the minimum of another child",
			crowd: tree(set("", "s", 1), leaf("s", "big", 4), leaf("s", "small", 1), leaf("", "z", 2)).
				with(4, "big", gang.Waiting, gpu(1)).with(1, "small", gang.Waiting, gpu(1)).with(2, "z", gang.Waiting, gpu(1)),
			world: nodes(1, 5, gpus), want: map[string]int{"small": 1, "z": 2},
		},
		"BegunFirst": {
			reason: "a partly placed subgroup is completed before another is begun",
			crowd: tree(set("", "s", 1), leaf("s", "x", 2), leaf("s", "y", 2)).
				with(2, "x", gang.Waiting, gpu(1)).with(1, "y", gang.Placed, gpu(1)).with(1, "y", gang.Waiting, gpu(1)),
			world: nodes(1, 2, gpus), want: map[string]int{"y": 1},
		},
		"Healing": {
			reason: "placed pods count, and missing ones are reported",
			crowd:  flat(8).with(6, "default", gang.Placed, gpu(1)).with(2, "default", gang.Waiting, gpu(1)),
			world:  nodes(1, 1, gpus), why: "room for 1 of the 2 pods that are missing to min 8: " + full1,
		},
		"HealingOne": {
			reason: "and in good English",
			crowd:  flat(8).with(7, "default", gang.Placed, gpu(1)).with(2, "default", gang.Waiting, gpu(1)),
			world:  nodes(1, 0, gpus), why: "room for 0 of the 1 pod that is missing to min 8: " + full1,
		},
		"MetAlready": {
			reason: "a gang that has its minimum fits, whatever happens to its extras",
			crowd:  flat(1).with(1, "default", gang.Placed, gpu(1)).with(2, "default", gang.Waiting, gpu(1)),
			world:  nodes(1, 0, gpus), want: map[string]int{},
		},
		"Elastic": {
			reason: "a minimum of 0 is met by nothing",
			crowd:  flat(0).with(2, "default", gang.Waiting, gpu(9)),
			world:  nodes(1, 8, gpus), want: map[string]int{},
		},
		"Default": {
			reason: "no minimum is one pod",
			crowd:  (&crowd{}).with(2, "default", gang.Waiting, gpu(9)),
			world:  nodes(1, 8, gpus), why: "room for 0 of min 1 pods: " + full1,
		},
		"SkipsWhatDoesNotFit": {
			reason: "a pod that does not fit does not stop the search",
			crowd:  flat(1).with(1, "default", gang.Waiting, gpu(9)).with(1, "default", gang.Waiting, gpu(8)),
			world:  nodes(1, 8, gpus), want: map[string]int{"default": 1},
		},
		"TooFewPods": {
			reason: "pods that do not exist are not a question of room",
			crowd:  tree(leaf("", "a", 1), leaf("", "b", 2)).with(1, "a", gang.Waiting, gpu(1)).with(1, "b", gang.Waiting, gpu(1)),
			world:  nodes(4, 8, gpus), why: `subgroup "b" has 1 of min 2 pods`,
		},
		"HeldPods": {
			reason: "nor are pods that are held",
			crowd:  flat(2).with(1, "default", gang.Waiting, gpu(1)).with(1, "default", gang.Held, gpu(1)),
			world:  nodes(4, 8, gpus), why: "it has 1 of min 2 pods, and 1 that may not be placed yet",
		},
		"AskForMoreThanThereIs": {
			reason: "a set that needs more children than it has reports that",
			crowd:  tree(set("", "s", 3), leaf("s", "x", 1)).with(1, "x", gang.Waiting, gpu(1)),
			world:  nodes(4, 8, gpus), why: `subgroup "s" has 1 subgroup of min 3`,
		},
		"MinSubGroupOfLeaf": {
			reason: "so does a leaf that needs children",
			crowd:  tree(set("", "s", 3)).with(1, "s", gang.Waiting, gpu(1)),
			world:  nodes(4, 8, gpus), why: `subgroup "s" has 0 subgroups of min 3`,
		},
		"MinSubGroupWithoutSubGroups": {
			reason: "a minSubGroup of 0 does not make a gang without subgroups weaker",
			crowd: (&crowd{spec: podtree.Spec{MinMember: num(2), MinSubGroup: num(0)}}).
				with(2, "default", gang.Waiting, gpu(1)),
			world: nodes(1, 1, gpus), why: "room for 1 of min 2 pods: " + full1,
		},
		"SetMinimum": {
			reason: "a set's own minimum is filled up with extras, and with no more than that before the last minimum",
			crowd: tree(podtree.SubGroup{Name: "s", MinMember: num(5)}, leaf("s", "x", 1), leaf("s", "y", 1), leaf("", "z", 2)).
				with(4, "x", gang.Waiting, gpu(1)).with(4, "y", gang.Waiting, gpu(1)).with(2, "z", gang.Waiting, gpu(1)),
			world: nodes(1, 7, gpus), want: map[string]int{"x": 4, "y": 1, "z": 2},
		},
		"SetsShare": {
			reason: "one set takes no more than what it lacks, because the next may lack something too",
			crowd: tree(podtree.SubGroup{Name: "s", MinMember: num(3)}, leaf("s", "x", 1), podtree.SubGroup{Name: "r", MinMember: num(3)}, leaf("r", "y", 1)).
				with(5, "x", gang.Waiting, gpu(1)).with(5, "y", gang.Waiting, gpu(1)),
			world: nodes(1, 6, gpus), want: map[string]int{"x": 3, "y": 3},
		},
		"SetMinimumDoesNotFit": {
			reason: "one that cannot be filled up keeps everything back",
			crowd: tree(podtree.SubGroup{Name: "s", MinMember: num(5)}, leaf("s", "x", 1), leaf("s", "y", 1), leaf("", "z", 2)).
				with(4, "x", gang.Waiting, gpu(1)).with(4, "y", gang.Waiting, gpu(1)).with(2, "z", gang.Waiting, gpu(1)),
			world: nodes(1, 6, gpus), why: `only 4 of min 5 pods below "s" fit: ` + full1,
		},
		"SetMinimumIgnored": {
			reason: "KAI's reading knows no minimum of sets",
			crowd: tree(podtree.SubGroup{Name: "s", MinMember: num(5)}, leaf("s", "x", 1), leaf("", "z", 2)).
				with(2, "x", gang.Waiting, gpu(1)).with(2, "z", gang.Waiting, gpu(1)),
			world: nodes(1, 3, gpus), rules: gang.Rules{LeavesOnly: true}, want: map[string]int{"x": 1, "z": 2},
		},
		"SetGivesWay": {
			reason: "a set that cannot be filled up gives way to one that can",
			crowd: tree(set("", "s", 1),
				podtree.SubGroup{Name: "p", Parent: ref("s"), MinMember: num(4)}, leaf("p", "x", 1),
				podtree.SubGroup{Name: "q", Parent: ref("s"), MinMember: num(2)}, leaf("q", "y", 1)).
				with(4, "x", gang.Waiting, gpu(1)).with(2, "y", gang.Waiting, gpu(1)),
			world: nodes(1, 3, gpus), want: map[string]int{"y": 2},
		},
		"GangMinimum": {
			reason: "the gang's own minimum counts all pods; optional subgroups help",
			crowd: (&crowd{spec: podtree.Spec{MinMember: num(4), MinSubGroup: num(1), SubGroups: []podtree.SubGroup{leaf("", "x", 2), leaf("", "y", 2)}}}).
				with(2, "x", gang.Waiting, gpu(1)).with(2, "y", gang.Waiting, gpu(1)),
			world: nodes(1, 4, gpus), want: map[string]int{"x": 2, "y": 2},
		},
		"GangMinimumDoesNotFit": {
			reason: "and it is distinct from that of subgroups",
			crowd: (&crowd{spec: podtree.Spec{MinMember: num(5), SubGroups: []podtree.SubGroup{leaf("", "x", 1), leaf("", "y", 1)}}}).
				with(2, "x", gang.Waiting, gpu(1)).with(3, "y", gang.Waiting, gpu(1)),
			world: nodes(1, 3, gpus), why: "only 3 of min 5 pods below it fit: " + full1,
		},
		"GangMinimumMissing": {
			reason: "nor is it a question of room if there are too few pods",
			crowd: (&crowd{spec: podtree.Spec{MinMember: num(5), SubGroups: []podtree.SubGroup{leaf("", "x", 1), leaf("", "y", 1)}}}).
				with(2, "x", gang.Waiting, gpu(1)).with(2, "y", gang.Waiting, gpu(1)),
			world: nodes(1, 3, gpus), why: "it has 4 of min 5 pods",
		},
		"AntiAffinity": {
			reason: "pods that keep away from each other fit once on each node",
			crowd: flat(3).with(3, "default", gang.Waiting,
				pod{wants: map[string]int{gpus: 1}, app: "a", away: "a"}),
			world: nodes(2, 8, gpus),
			why:   "room for 2 of min 3 pods: 0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules.",
		},
		"AffinityLater": {
			reason: "a pod that did not fit may fit once another pod is placed, also for pods of one shape",
			crowd: flat(2).with(1, "default", gang.Waiting, pod{wants: map[string]int{gpus: 1}, app: "f", near: "l"}).
				with(1, "default", gang.Waiting, pod{wants: map[string]int{gpus: 1}, app: "l"}).
				with(1, "default", gang.Waiting, pod{wants: map[string]int{gpus: 1}, app: "f", near: "l"}),
			world: nodes(1, 8, gpus), want: map[string]int{"default": 3},
		},
		"AffinityOfTheMinimum": {
			reason: "also if the minimum needs it",
			crowd: flat(3).with(2, "default", gang.Waiting, pod{wants: map[string]int{gpus: 1}, app: "f", near: "l"}).
				with(1, "default", gang.Waiting, pod{wants: map[string]int{gpus: 1}, app: "l"}),
			world: nodes(1, 8, gpus), want: map[string]int{"default": 3},
		},
		"AffinityOfFurtherPods": {
			reason: "or none is placed",
			crowd: tree(leaf("", "f", 0), leaf("", "l", 0)).with(2, "f", gang.Waiting, pod{wants: map[string]int{gpus: 1}, app: "f", near: "l"}).
				with(1, "l", gang.Waiting, pod{wants: map[string]int{gpus: 1}, app: "l"}),
			world: nodes(1, 8, gpus), want: map[string]int{"f": 2, "l": 1},
		},
		"Nobody": {
			reason: "a gang without pods waits for them",
			crowd:  flat(1).with(0, "default", gang.Waiting, gpu(1)),
			world:  nodes(1, 8, gpus), why: "it has 0 of min 1 pods",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.world.pods = tc.crowd.pods
			s := scenario{crowd: tc.crowd, world: tc.world, rules: tc.rules}
			got := s.check(t)
			if why := got.Reason(tc.crowd.tree); why != tc.why || got.Fits != (tc.why == "") {
				t.Errorf("%s\nReason() = %q, fits %t, want %q", tc.reason, why, got.Fits, tc.why)
			}
			if !got.Fits {
				return
			}
			if diff := cmp.Diff(tc.want, tc.crowd.byLeaf(got)); diff != "" {
				t.Errorf("%s\nPlace(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTwoGangs is the trial that began it all: two gangs for which there is
// room for one and a half.
func TestTwoGangs(t *testing.T) {
	world := nodes(4, 8, "nvidia.com/gpu")
	crowds := []*crowd{
		flat(20).with(20, "default", gang.Waiting, gpu(1)), flat(20).with(20, "default", gang.Waiting, gpu(1)),
	}
	var first gang.Decision
	for i, c := range crowds {
		world.pods = c.pods
		before := world.state()
		d, err := gang.Place(t.Context(), c.tree, c.members, world, gang.Rules{})
		if err != nil {
			t.Fatal(err)
		}
		if fits := i == 0; d.Fits != fits || len(d.Places) != len(c.members)*(1-i) {
			t.Errorf("gang %d: fits %t with %d places, want %t", i, d.Fits, len(d.Places), fits)
		}
		if i == 0 {
			first = d
		} else if after := world.state(); after != before {
			t.Errorf("the second gang left\n%s\nas\n%s", before, after)
		}
	}
	if len(first.Places) != len(world.held) {
		t.Errorf("the world holds %d places, want the %d of the first gang", len(world.held), len(first.Places))
	}
}

func TestReports(t *testing.T) {
	c := tree(leaf("", "a", 2), set("", "s", 1), leaf("s", "x", 3), leaf("s", "y", 1)).
		with(1, "a", gang.Placed, gpu(1)).with(3, "a", gang.Waiting, gpu(1)).with(1, "a", gang.Held, gpu(1)).
		with(3, "x", gang.Waiting, gpu(2)).with(2, "y", gang.Waiting, gpu(1))
	full := &gang.Misfit{Nodes: 1, Reasons: map[string]int{"Insufficient nvidia.com/gpu": 1}}
	cases := map[string]struct {
		reason string
		free   int
		want   []gang.Report
	}{
		"Fits": {
			reason: "satisfied nodes report what they got, the rest what they would have had room for",
			free:   4,
			want: []gang.Report{
				{MinChildren: 2, Pods: 10, Bound: 1, New: 4, Held: 1, Children: 2, Satisfied: true, Blocker: -1},
				{Min: 2, Pods: 5, Bound: 1, New: 3, Held: 1, Satisfied: true, Blocker: -1},
				{MinChildren: 1, Pods: 5, New: 1, Children: 1, Satisfied: true, Blocker: -1},
				{Min: 3, Pods: 3, Room: 1, Blocker: -1, Misfit: full},
				{Min: 1, Pods: 2, New: 1, Satisfied: true, Blocker: -1, Misfit: full},
			},
		},
		"DoesNotFit": {
			reason: "if nothing is placed, there are no new ones anywhere",
			free:   1,
			want: []gang.Report{
				{MinChildren: 2, Pods: 10, Bound: 1, Held: 1, Children: 1, Blocker: 2},
				{Min: 2, Pods: 5, Bound: 1, Held: 1, Room: 1, Blocker: -1},
				{MinChildren: 1, Pods: 5, Blocker: 3},
				{Min: 3, Pods: 3, Blocker: -1, Misfit: full},
				{Min: 1, Pods: 2, Blocker: -1, Misfit: full},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			world := nodes(1, tc.free, "nvidia.com/gpu")
			world.pods = c.pods
			got, err := gang.Place(t.Context(), c.tree, c.members, world, gang.Rules{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Nodes); diff != "" {
				t.Errorf("%s\nPlace(...).Nodes: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestShapes counts the questions to the World.
func TestShapes(t *testing.T) {
	cases := map[string]struct {
		reason string
		crowd  *crowd
		free   int
		want   int
	}{
		"OneShape": {
			reason: "once one does not fit, other pods of its shape are not tried",
			crowd:  flat(100).with(100, "default", gang.Waiting, gpu(1)), free: 20, want: 21,
		},
		"AllTheSameLeaves": {
			reason: "not even for the next subgroup, as long as nothing was freed",
			crowd: tree(leaf("", "a", 1), leaf("", "b", 0), leaf("", "c", 0)).with(10, "a", gang.Waiting, gpu(1)).
				with(10, "b", gang.Waiting, gpu(1)).with(10, "c", gang.Waiting, gpu(1)), free: 5, want: 6,
		},
		"TooFewPods": {
			reason: "a gang that lacks pods asks for nothing",
			crowd:  flat(3).with(2, "default", gang.Waiting, gpu(1)), free: 5, want: 0,
		},
		"FirstFails": {
			reason: "if nothing was placed before, another order changes nothing",
			crowd: tree(leaf("", "a", 2), leaf("", "b", 1)).with(2, "a", gang.Waiting, gpu(9)).
				with(1, "b", gang.Waiting, gpu(1)), free: 5, want: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			world := nodes(1, tc.free, "nvidia.com/gpu")
			world.pods = tc.crowd.pods
			if _, err := gang.Place(t.Context(), tc.crowd.tree, tc.crowd.members, world, gang.Rules{}); err != nil {
				t.Fatal(err)
			}
			if world.tries != tc.want {
				t.Errorf("%s\nthe world was asked %d times, want %d", tc.reason, world.tries, tc.want)
			}
		})
	}
}

func TestPlaceRefusesStrangers(t *testing.T) {
	c := tree(set("", "s", 1), leaf("s", "x", 1)).with(1, "x", gang.Waiting, gpu(1))
	for _, node := range []int{-1, 0, 1, 3} {
		c.members[0].Leaf = node
		if _, err := gang.Place(t.Context(), c.tree, c.members, nodes(1, 1, "gpu"), gang.Rules{}); err == nil {
			t.Errorf("Place(...) took a member of node %d, which is not a leaf", node)
		}
	}
}

func TestMissing(t *testing.T) {
	cases := map[string]struct {
		reason string
		crowd  *crowd
		rules  gang.Rules
		want   string
	}{
		"Enough": {
			reason: "pods that wait and pods that have a place exist",
			crowd:  flat(2).with(1, "default", gang.Placed, gpu(1)).with(1, "default", gang.Waiting, gpu(1)),
		},
		"Leaf": {
			reason: "a leaf is named",
			crowd:  tree(leaf("", "a", 1), leaf("", "b", 2)).with(1, "a", gang.Waiting, gpu(1)).with(1, "b", gang.Waiting, gpu(1)),
			want:   `subgroup "b" has 1 of min 2 pods`,
		},
		"NoSubGroups": {
			reason: "the one leaf of a plain gang is not",
			crowd:  flat(3).with(1, "default", gang.Waiting, gpu(1)).with(1, "default", gang.Held, gpu(1)),
			want:   "it has 1 of min 3 pods, and 1 that may not be placed yet",
		},
		"Optional": {
			reason: "subgroups that are not needed may lack pods",
			crowd:  tree(set("", "s", 1), leaf("s", "x", 1), leaf("s", "y", 1)).with(1, "y", gang.Waiting, gpu(1)),
		},
		"Choice": {
			reason: "where there is a choice, what is chosen from is named",
			crowd: tree(set("", "s", 2), leaf("s", "x", 2), leaf("s", "y", 1), leaf("s", "z", 1)).
				with(1, "x", gang.Waiting, gpu(1)).with(1, "z", gang.Waiting, gpu(1)),
			want: `only 1 of min 2 subgroups of "s" have enough pods: subgroup "x" has 1 of min 2 pods`,
		},
		"SetMinimum": {
			reason: "a set may lack pods though its leaves do not",
			crowd: tree(podtree.SubGroup{Name: "s", MinMember: num(3)}, leaf("s", "x", 1), leaf("s", "y", 1)).
				with(1, "x", gang.Waiting, gpu(1)).with(1, "y", gang.Waiting, gpu(1)),
			want: `subgroup "s" has 2 of min 3 pods`,
		},
		"SetMinimumIgnored": {
			reason: "KAI's reading does not care",
			crowd: tree(podtree.SubGroup{Name: "s", MinMember: num(3)}, leaf("s", "x", 1)).
				with(1, "x", gang.Waiting, gpu(1)),
			rules: gang.Rules{LeavesOnly: true},
		},
		"UselessPods": {
			reason: "pods of an incomplete subgroup do not count for the set",
			crowd: tree(podtree.SubGroup{Name: "s", MinMember: num(3), MinSubGroup: num(1)}, leaf("s", "x", 1), leaf("s", "y", 3)).
				with(1, "x", gang.Waiting, gpu(1)).with(2, "y", gang.Waiting, gpu(1)),
			want: `fewer than min 3 pods below "s" are in subgroups that have enough pods`,
		},
		"TooFewChildren": {
			reason: "subgroups may lack as well",
			crowd:  (&crowd{spec: podtree.Spec{MinSubGroup: num(2)}}).with(9, "default", gang.Waiting, gpu(1)),
			want:   "it has 0 subgroups of min 2",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if lack := gang.Missing(tc.crowd.tree, tc.crowd.members, tc.rules); lack != nil {
				got = lack.Message(tc.crowd.tree)
			}
			if got != tc.want {
				t.Errorf("%s\nMissing(...) = %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestStale(t *testing.T) {
	optional := func(x, y int) *crowd {
		return tree(set("", "s", 1), set("s", "r1", 2), leaf("r1", "a", 1), leaf("r1", "b", 1), leaf("s", "r2", 2)).
			with(1, "a", gang.Placed, gpu(1)).with(x, "b", gang.Placed, gpu(1)).with(y, "r2", gang.Placed, gpu(1)).
			with(1, "r2", gang.Waiting, gpu(1))
	}
	cases := map[string]struct {
		reason string
		crowd  *crowd
		want   []int
	}{
		"All":      {reason: "below the gang's minimum everything is removed", crowd: optional(0, 1), want: []int{0, 1}},
		"Nothing":  {reason: "a complete subgroup stays", crowd: optional(1, 2)},
		"Optional": {reason: "an optional subgroup that is incomplete is removed as a whole", crowd: optional(0, 2), want: []int{0}},
		"Leaf":     {reason: "so does an optional leaf", crowd: optional(1, 1), want: []int{2}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, gang.Stale(tc.crowd.tree, tc.crowd.members, gang.Rules{})); diff != "" {
				t.Errorf("%s\nStale(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMisfitString(t *testing.T) {
	cases := map[string]struct {
		reason string
		misfit *gang.Misfit
		want   string
	}{
		"None":  {reason: "no misfit has no words"},
		"Empty": {reason: "a cluster without nodes has no reasons", misfit: &gang.Misfit{}, want: "0/0 nodes are available."},
		"Sorted": {
			reason: "the most common comes first, and then the alphabet",
			misfit: &gang.Misfit{Nodes: 7, Reasons: map[string]int{"b": 1, "c": 5, "a": 1}},
			want:   "0/7 nodes are available: 5 c, 1 a, 1 b.",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.misfit.String(); got != tc.want {
				t.Errorf("%s\nString() = %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
