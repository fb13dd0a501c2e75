package gang_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/engine/podtree"
)

var errWorld = errors.New("the world has ended")

func num(n int32) *int32 { return &n }

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

func place(t *testing.T, c *crowd, w *fakeWorld, rules gang.Rules) gang.Decision {
	t.Helper()
	w.pods = c.pods
	d, err := gang.Place(t.Context(), c.tree, c.members, w, rules)
	if err != nil {
		t.Fatalf("Place(...): %v", err)
	}

	return d
}

func TestPlace(t *testing.T) {
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
	cases := map[string]struct {
		reason string
		crowd  *crowd
		world  *fakeWorld
		rules  gang.Rules
		want   map[string]int
		why    string
	}{
		"Fits": {
			reason: "a gang that fits is placed whole",
			crowd:  flat(20).with(20, "default", gang.Waiting, gpu(1)),
			world:  nodes(4, 8, "nvidia.com/gpu"), want: map[string]int{"default": 20},
		},
		"AllOrNothing": {
			reason: "a gang that does not fit takes nothing",
			crowd:  flat(40).with(40, "default", gang.Waiting, gpu(1)),
			world:  nodes(4, 5, "nvidia.com/gpu"),
			why:    "room for 20 of min 40 pods: 0/4 nodes are available: 4 Insufficient nvidia.com/gpu.",
		},
		"SubgroupDoesNotFit": {
			reason: "T2: one subgroup that does not fit keeps back the other",
			crowd: tree(leaf("", "a", 10), leaf("", "b", 2)).
				with(10, "a", gang.Waiting, gpu(1)).with(2, "b", gang.Waiting, gpu(9)),
			world: nodes(4, 8, "nvidia.com/gpu"),
			why:   `subgroup "b": room for 0 of min 2 pods: 0/4 nodes are available: 4 Insufficient nvidia.com/gpu.`,
		},
		"MinimumsFirst": {
			reason: "T3: extras of a come after the minimum of b",
			crowd: tree(leaf("", "a", 8), leaf("", "b", 8)).
				with(30, "a", gang.Waiting, gpu(1)).with(8, "b", gang.Waiting, gpu(1)),
			world: nodes(4, 8, "nvidia.com/gpu"), want: map[string]int{"a": 24, "b": 8},
		},
		"OptionalWhole": {
			reason: "T5: an optional replica that does not fit whole has no leader either",
			crowd:  replicas(9), world: nodes(4, 8, "nvidia.com/gpu"),
			want: map[string]int{"r1-leader": 1, "r1-workers": 3, "r2-leader": 1, "r2-workers": 3},
		},
		"OptionalFits": {
			reason: "one that does is placed",
			crowd:  replicas(8), world: nodes(4, 8, "nvidia.com/gpu"),
			want: map[string]int{"r1-leader": 1, "r1-workers": 3, "r2-leader": 1, "r2-workers": 3},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := ""
			if tc.want == nil {
				before = tc.world.state()
			}
			got := place(t, tc.crowd, tc.world, tc.rules)
			if why := got.Reason(tc.crowd.tree); why != tc.why || got.Fits != (tc.why == "") {
				t.Errorf("%s\nReason() = %q, fits %t, want %q", tc.reason, why, got.Fits, tc.why)
			}
			places := tc.crowd.byLeaf(got)
			if tc.want == nil {
				tc.want = map[string]int{}
				if after := tc.world.state(); after != before && tc.why != "" {
					t.Errorf("%s\nthe world was %s\nand is %s", tc.reason, before, after)
				}
			}
			if diff := cmp.Diff(tc.want, places); diff != "" {
				t.Errorf("%s\nPlace(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	_ = slices.Sorted[int]
}
