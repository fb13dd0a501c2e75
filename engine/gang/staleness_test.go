package gang_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/engine/podtree"
)

const grace = 60

// A sight is a gang at one moment, and the expected observation.
type sight struct {
	at    int64
	crowd *crowd
	// clocks are the nodes that are broken, and since when.
	clocks map[string]int64
	evict  []int
}

// placed is a gang with so many bound pods by leaf.
func placed(c *crowd, pods map[string]int) *crowd {
	c.build()
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		c.with(pods[name], name, gang.Placed, gpu(1))
	}

	return c
}

func clocks(memory map[string]gang.Memory) map[string]int64 {
	var running map[string]int64
	for name, m := range memory {
		if m.Since != 0 {
			if running == nil {
				running = map[string]int64{}
			}
			running[name] = m.Since
		}
	}

	return running
}

func TestObserve(t *testing.T) {
	simple := func(minimum int32, pods int) *crowd { return placed(flat(minimum), map[string]int{"default": pods}) }
	two := func(a, b int) *crowd {
		return placed(tree(leaf("", "a", 2), leaf("", "b", 2)), map[string]int{"a": a, "b": b})
	}
	replicas := func(minimum int32, pods ...int) *crowd {
		c := &crowd{spec: podtree.Spec{MinSubGroup: num(minimum)}}
		have := map[string]int{}
		for i, n := range pods {
			name := "r" + strconv.Itoa(i)
			c.spec.SubGroups = append(c.spec.SubGroups, leaf("", name, 2))
			have[name] = n
		}

		return placed(c, have)
	}
	cases := map[string]struct {
		reason string
		sights []sight
	}{
		"Lost": {
			"A gang that lost a pod is evicted when the grace period is over, not before.",
			[]sight{
				{at: 1, crowd: simple(4, 4)},
				{at: 10, crowd: simple(4, 3), clocks: map[string]int64{"": 10, "default": 10}},
				{at: 69, crowd: simple(4, 3), clocks: map[string]int64{"": 10, "default": 10}},
				{at: 70, crowd: simple(4, 3), clocks: map[string]int64{"": 10, "default": 10}, evict: []int{0, 1, 2}},
			},
		},
		"Repaired": {
			"The clock stops when the pod is back, and starts again from 0.",
			[]sight{
				{at: 1, crowd: simple(4, 4)},
				{at: 10, crowd: simple(4, 3), clocks: map[string]int64{"": 10, "default": 10}},
				{at: 60, crowd: simple(4, 4)},
				{at: 65, crowd: simple(4, 3), clocks: map[string]int64{"": 65, "default": 65}},
				{at: 80, crowd: simple(4, 3), clocks: map[string]int64{"": 65, "default": 65}},
			},
		},
		"Raised": {
			"A larger minimum breaks nothing, and what was met before still counts.",
			[]sight{
				{at: 1, crowd: simple(4, 4)},
				{at: 2, crowd: simple(6, 4)},
				{at: 100, crowd: simple(6, 4)},
				{at: 101, crowd: simple(6, 3), clocks: map[string]int64{"": 101, "default": 101}},
			},
		},
		"Surplus": {
			"A gang may lose what it had beyond the minimum that it met, whatever the minimum is by then.",
			[]sight{
				{at: 1, crowd: simple(4, 5)},
				{at: 2, crowd: simple(6, 5)},
				{at: 3, crowd: simple(6, 4)},
				{at: 4, crowd: simple(6, 3), clocks: map[string]int64{"": 4, "default": 4}},
			},
		},
		"Lowered": {
			"A smaller minimum repairs, and a larger one afterwards breaks nothing.",
			[]sight{
				{at: 1, crowd: simple(4, 4)},
				{at: 2, crowd: simple(4, 3), clocks: map[string]int64{"": 2, "default": 2}},
				{at: 50, crowd: simple(3, 3)},
				{at: 51, crowd: simple(4, 3)},
				{at: 200, crowd: simple(4, 3)},
			},
		},
		"Edited": {
			"A larger minimum does not stop the clock of a broken gang.",
			[]sight{
				{at: 1, crowd: simple(4, 4)},
				{at: 2, crowd: simple(4, 3), clocks: map[string]int64{"": 2, "default": 2}},
				{at: 62, crowd: simple(9, 3), clocks: map[string]int64{"": 2, "default": 2}, evict: []int{0, 1, 2}},
			},
		},
		"NeverSatisfied": {
			"Pods that another scheduler placed below the minimum stay.",
			[]sight{{at: 1, crowd: simple(4, 3)}, {at: 100, crowd: simple(4, 2)}, {at: 200, crowd: simple(4, 1)}},
		},
		"Emptied": {
			"A gang without pods is forgotten: those that come back one by one are not evicted.",
			[]sight{{at: 1, crowd: simple(4, 4)}, {at: 2, crowd: simple(4, 0)}, {at: 3, crowd: simple(4, 3)}, {at: 100, crowd: simple(4, 3)}},
		},
		"MinSubGroupMistyped": {
			"A gang cannot lose subgroups that it never had.",
			[]sight{
				{at: 1, crowd: replicas(2, 2, 2, 2)},
				{at: 2, crowd: replicas(30, 2, 2, 2)},
				{at: 100, crowd: replicas(30, 2, 2, 0)},
				{at: 101, crowd: replicas(30, 2, 1, 0), clocks: map[string]int64{"": 101, "r1": 101}},
			},
		},
		"SubGroupAdded": {
			"A required subgroup without pods breaks nothing, and replaces none that was there.",
			[]sight{
				{at: 1, crowd: two(2, 2)},
				{at: 2, crowd: placed(tree(leaf("", "a", 2), leaf("", "b", 2), leaf("", "c", 2)), map[string]int{"a": 2, "b": 2})},
				{at: 100, crowd: placed(tree(leaf("", "a", 2), leaf("", "b", 2), leaf("", "c", 2)), map[string]int{"a": 2, "b": 2, "c": 1})},
				{
					at: 101, crowd: placed(tree(leaf("", "a", 2), leaf("", "b", 2), leaf("", "c", 2)), map[string]int{"a": 2, "b": 1, "c": 1}),
					clocks: map[string]int64{"": 101, "b": 101},
				},
			},
		},
		"SubGroupMoved": {
			"Other sets around the same pods break nothing.",
			[]sight{
				{at: 1, crowd: replicas(2, 2, 2)},
				{at: 2, crowd: placed(&crowd{spec: podtree.Spec{
					MinSubGroup: num(2),
					SubGroups:   []podtree.SubGroup{set("", "s", 3), leaf("s", "r0", 2), leaf("s", "r1", 2)},
				}}, map[string]int{"r0": 2, "r1": 2})},
			},
		},
		"ElasticSubGroup": {
			"A subgroup that needs no pods can lose all of them, and needs none that it is asked for later.",
			[]sight{
				{at: 1, crowd: placed(tree(leaf("", "a", 2), leaf("", "b", 0)), map[string]int{"a": 2, "b": 1})},
				{at: 2, crowd: placed(tree(leaf("", "a", 2), leaf("", "b", 0)), map[string]int{"a": 2})},
				{at: 3, crowd: placed(tree(leaf("", "a", 2), leaf("", "b", 1)), map[string]int{"a": 2})},
			},
		},
		"ClocksApart": {
			"Each replica has its own grace period; when too few are left, the gang's starts.",
			[]sight{
				{at: 1, crowd: replicas(1, 2, 2, 2)},
				{at: 10, crowd: replicas(1, 1, 2, 2), clocks: map[string]int64{"r0": 10}},
				{at: 65, crowd: replicas(1, 1, 1, 2), clocks: map[string]int64{"r0": 10, "r1": 65}},
				{at: 70, crowd: replicas(1, 1, 1, 2), clocks: map[string]int64{"r0": 10, "r1": 65}, evict: []int{0}},
				{at: 71, crowd: replicas(1, 0, 1, 2), clocks: map[string]int64{"r1": 65}},
				{at: 80, crowd: replicas(1, 0, 1, 1), clocks: map[string]int64{"": 80, "r1": 65, "r2": 80}},
				{at: 125, crowd: replicas(1, 0, 1, 1), clocks: map[string]int64{"": 80, "r1": 65, "r2": 80}, evict: []int{0}},
				{at: 140, crowd: replicas(1, 0, 1, 1), clocks: map[string]int64{"": 80, "r1": 65, "r2": 80}, evict: []int{0, 1}},
			},
		},
		"Required": {
			"Where all subgroups are needed, all are evicted.",
			[]sight{
				{at: 1, crowd: two(2, 2)},
				{at: 2, crowd: two(1, 2), clocks: map[string]int64{"": 2, "a": 2}},
				{at: 62, crowd: two(1, 2), clocks: map[string]int64{"": 2, "a": 2}, evict: []int{0, 1, 2}},
			},
		},
		"TakenOver": {
			"A minimum of the gang that was never met counts for nothing; that of a subgroup that was met counts.",
			[]sight{
				{at: 1, crowd: placed(&crowd{spec: podtree.Spec{MinMember: num(5), SubGroups: []podtree.SubGroup{leaf("", "a", 2), leaf("", "b", 2)}}}, map[string]int{"a": 2, "b": 2})},
				{at: 100, crowd: placed(&crowd{spec: podtree.Spec{MinMember: num(5), SubGroups: []podtree.SubGroup{leaf("", "a", 2), leaf("", "b", 2)}}}, map[string]int{"a": 2, "b": 1}), clocks: map[string]int64{"b": 100}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var memory map[string]gang.Memory
			for _, s := range tc.sights {
				o := gang.Observe(s.crowd.tree, s.crowd.members, gang.Rules{}, memory, s.at, grace)
				if diff := cmp.Diff(s.clocks, clocks(o.Memory)); diff != "" {
					t.Fatalf("%s\nclocks at %d: -want, +got:\n%s", tc.reason, s.at, diff)
				}
				if diff := cmp.Diff(s.evict, o.Evict); diff != "" {
					t.Fatalf("%s\nevicted at %d: -want, +got:\n%s", tc.reason, s.at, diff)
				}
				memory = o.Memory
			}
		})
	}
}

func TestObserveWait(t *testing.T) {
	healthy, broken := placed(flat(4), map[string]int{"default": 4}), placed(flat(4), map[string]int{"default": 3})
	cases := map[string]struct {
		reason    string
		at, grace int64
		wait      int64
		evicted   int
	}{
		"Running":  {"The rest of the grace period is known.", 30, 60, 40, 0},
		"Over":     {"There is nothing to wait for.", 70, 60, 0, 3},
		"AtOnce":   {"A grace period of 0 is over at once.", 10, 0, 0, 3},
		"Never":    {"A negative grace period never ends.", 1 << 60, -1, 0, 0},
		"Largest":  {"The largest grace period does not overflow.", 11, 1<<63 - 1, 1<<63 - 2, 0},
		"Backward": {"A clock that was set back neither ends nor overflows a grace period.", 5, 1<<63 - 1, 1<<63 - 1, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := gang.Observe(healthy.tree, healthy.members, gang.Rules{}, nil, 1, tc.grace)
			o = gang.Observe(broken.tree, broken.members, gang.Rules{}, o.Memory, 10, 1000)
			o = gang.Observe(broken.tree, broken.members, gang.Rules{}, o.Memory, tc.at, tc.grace)
			if o.Wait != tc.wait || len(o.Evict) != tc.evicted {
				t.Errorf("%s\nwait %d and evict %v, want wait %d and %d evicted", tc.reason, o.Wait, o.Evict, tc.wait, tc.evicted)
			}
		})
	}
}

// Members that got a place and could not be bound are a loss to the rest, unless the rest was bound
// before.
func TestExpect(t *testing.T) {
	decide := func(bound, waiting int) gang.Decision {
		c := placed(flat(4), map[string]int{"default": bound}).with(waiting, "default", gang.Waiting, gpu(1))
		w := nodes(1, 8, "nvidia.com/gpu")
		w.pods = c.pods
		d, err := gang.Place(t.Context(), c.tree, c.members, w, gang.Rules{})
		if err != nil || !d.Fits {
			t.Fatalf("Place = %v, %v", d, err)
		}

		return d
	}
	cases := map[string]struct {
		reason   string
		decision gang.Decision
		before   int
		clocks   map[string]int64
	}{
		"New":        {"A gang that is bound in part is below its minimum.", decide(0, 4), 0, map[string]int64{"": 20, "default": 20}},
		"TakenOver":  {"A gang that ran below the minimum before may continue.", decide(2, 2), 2, nil},
		"NotPlaced":  {"Without a decision nothing is expected.", gang.Decision{}, 0, nil},
		"WasRunning": {"A gang that met its minimum keeps its own memory.", decide(0, 4), 4, map[string]int64{"": 20, "default": 20}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := placed(flat(4), map[string]int{"default": tc.before})
			memory := gang.Observe(before.tree, before.members, gang.Rules{}, nil, 1, grace).Memory
			gang.Remember(memory, gang.Expect(before.tree, tc.decision))
			// None of them is bound yet.
			o := gang.Observe(before.tree, before.members, gang.Rules{}, memory, 10, grace)
			if got := clocks(o.Memory); got != nil {
				t.Errorf("%s\nclocks %v before anything is bound", tc.reason, got)
			}
			after := placed(flat(4), map[string]int{"default": 3})
			o = gang.Observe(after.tree, after.members, gang.Rules{}, o.Memory, 20, grace)
			if diff := cmp.Diff(tc.clocks, clocks(o.Memory)); diff != "" {
				t.Errorf("%s\nclocks: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// Record is all that a restart needs: the rest follows from the pods.
func TestRecord(t *testing.T) {
	raised := placed(flat(6), map[string]int{"default": 4})
	o := gang.Observe(raised.tree, raised.members, gang.Rules{}, map[string]gang.Memory{"default": {Met: true, SatisfiedMin: 4, Bound: 4}}, 1, grace)
	want := map[string]gang.Memory{"default": {Met: true, SatisfiedMin: 4, Bound: 4}}
	if diff := cmp.Diff(want, o.Record); diff != "" {
		t.Errorf("a raised minimum: -want, +got:\n%s", diff)
	}
	healthy := placed(flat(4), map[string]int{"default": 4})
	if o := gang.Observe(healthy.tree, healthy.members, gang.Rules{}, o.Memory, 1, grace); len(o.Record) > 0 {
		t.Errorf("a healthy gang has the record %v", o.Record)
	}
}

// The twin reads one node at a time and computes everything again.
type watcher struct {
	twin

	memory map[string]gang.Memory
	now    int64
}

func (w watcher) needs(i int) int {
	if w.flat() && i == w.tree.Root() {
		return max(1, w.tree.RequiredChildren(i))
	}

	return w.tree.RequiredChildren(i)
}

func (w watcher) lost(i int) bool {
	m := w.memory[w.tree.Node(i).Name]
	if w.tree.Node(i).IsLeaf() && w.below(i) < m.Bound || m.Expected && w.below(i) > 0 {
		return true
	}

	return slices.ContainsFunc(w.tree.Node(i).Children, w.lost)
}

// next is the memory of a node after this observation, and whether it has one.
func (w watcher) next(i int) (gang.Memory, bool) {
	m := w.memory[w.tree.Node(i).Name]
	if w.below(i) == 0 {
		return m, m.Expected
	}
	pods, children := w.minimum(w.tree.Node(i)), w.needs(i)
	if w.satisfied(i) {
		m.Met = true
		m.SatisfiedMin, m.SatisfiedChildren = max(m.SatisfiedMin, pods), max(m.SatisfiedChildren, children)
	}
	fine := 0
	for _, child := range w.tree.Node(i).Children {
		if w.fine(child) {
			fine++
		}
	}
	m.Bound, m.Expected = 0, false
	if w.tree.Node(i).IsLeaf() {
		m.Bound = w.below(i)
	}
	broken := m.Met && (w.below(i) < min(pods, m.SatisfiedMin) || fine < min(children, m.SatisfiedChildren))
	switch {
	case !broken:
		m.Since = 0
	case m.Since == 0 && w.lost(i):
		m.Since = w.now
	case m.Since == 0:
		m.SatisfiedMin, m.SatisfiedChildren = min(m.SatisfiedMin, w.below(i)), min(m.SatisfiedChildren, fine)
	}

	return m, true
}

func (w watcher) fine(i int) bool {
	m, ok := w.next(i)

	return w.satisfied(i) || ok && m.Met && !m.Expected && m.Since == 0
}

// over reports whether a node, or one above it, has used up its grace period.
func (w watcher) over(i int) bool {
	for ; i >= 0; i = w.tree.Node(i).Parent {
		if m, ok := w.next(i); ok && m.Since != 0 && w.now-m.Since >= grace {
			return true
		}
	}

	return false
}

func (w watcher) check(t *testing.T, s scenario, got gang.Observation) {
	t.Helper()
	want := gang.Observation{Memory: map[string]gang.Memory{}, Record: map[string]gang.Memory{}, Wait: got.Wait}
	for i, n := range s.tree.All() {
		m, ok := w.next(i)
		if !ok {
			continue
		}
		want.Memory[n.Name] = m
		if !w.satisfied(i) && m.Met && !m.Expected {
			want.Record[n.Name] = m
		}
	}
	for at, m := range s.members {
		if m.State == gang.Placed && w.over(m.Leaf) {
			want.Evict = append(want.Evict, at)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("Observe(%s) with %v at %d: -twin, +got:\n%s", s, w.memory, w.now, diff)
	}
}

// TestObserveAgreesWithTwin replays random histories of edits, losses, recoveries, and decisions.
func TestObserveAgreesWithTwin(t *testing.T) {
	var broken, evicted, repaired int
	for round := range rounds / 10 {
		next := random(uint64(round))
		s := draw(next, true)
		memory, now := map[string]gang.Memory{}, int64(1)
		for range 12 {
			running := len(clocks(memory))
			o := gang.Observe(s.tree, s.members, s.rules, memory, now, grace)
			w := watcher{twin: s.twin(nil), memory: memory, now: now}
			w.check(t, s, o)
			memory = o.Memory
			if n := len(clocks(memory)); n > running {
				broken++
			} else if n < running {
				repaired++
			}
			if len(o.Evict) > 0 {
				evicted++
			}
			s.happen(t, next, memory)
			now += int64(next(40))
		}
	}
	for what, n := range map[string]int{"broken": broken, "evicted": evicted, "repaired": repaired} {
		if n < rounds/100 {
			t.Errorf("nodes were %s %d times, so the test tests little", what, n)
		}
	}
}

// happen changes something: minimums, parents, pods.
func (s scenario) happen(t *testing.T, next func(int) int, memory map[string]gang.Memory) {
	t.Helper()
	switch next(6) {
	case 0, 1:
		s.edit(next)
	case 2:
		d, err := gang.Place(t.Context(), s.tree, s.members, s.world, s.rules)
		if err != nil {
			t.Fatal(err)
		}
		gang.Remember(memory, gang.Expect(s.tree, d))
		for _, p := range d.Places {
			if next(3) > 0 {
				s.members[p.Member].State = gang.Placed
			}
		}
	default:
		for i := range s.members {
			if next(4) == 0 {
				s.members[i].State = []gang.State{gang.Waiting, gang.Placed}[next(2)]
			}
		}
	}
}

// edit changes the spec in any way that leaves every pod its leaf.
func (s scenario) edit(next func(int) int) {
	names := make([]string, len(s.members))
	for i, m := range s.members {
		names[i] = s.tree.Node(m.Leaf).Name
	}
	before := s.spec
	s.spec = podtree.Spec{SubGroups: slices.Clone(before.SubGroups)}
	if len(before.SubGroups) > 0 {
		s.rearrange(next)
	}
	s.build()
	s.spec.MinMember, s.spec.MinSubGroup = drawMinimums(next, s.tree.Node(0))
	for i := range s.spec.SubGroups {
		g := &s.spec.SubGroups[i]
		g.MinMember, g.MinSubGroup = drawMinimums(next, s.tree.Node(i+1))
	}
	s.build()
	for i, name := range names {
		leaf, ok := s.tree.Leaf(name)
		if !ok {
			s.spec = before
			s.build()

			return
		}
		s.members[i].Leaf = leaf
	}
}

// rearrange adds a subgroup, or moves one to another parent.
func (s scenario) rearrange(next func(int) int) {
	if next(3) == 0 {
		s.spec.SubGroups = append(s.spec.SubGroups, podtree.SubGroup{Name: fmt.Sprintf("g%d", len(s.spec.SubGroups))})
	}
	at := next(len(s.spec.SubGroups))
	s.spec.SubGroups[at].Parent = nil
	if at > 0 {
		// Parents come first in the list, so there is no cycle.
		s.spec.SubGroups[at].Parent = &s.spec.SubGroups[next(at)].Name
	}
}

// A change of the spec alone evicts nothing, whatever it is and however long it
// is that way.
func TestSpecNeverEvicts(t *testing.T) {
	short := 0
	for round := range rounds / 4 {
		next := random(uint64(round))
		s := draw(next, true)
		memory := gang.Observe(s.tree, s.members, s.rules, nil, 1, 0).Memory
		for now := range int64(6) {
			s.edit(next)
			o := gang.Observe(s.tree, s.members, s.rules, memory, 2+now, 0)
			if len(o.Evict) > 0 || len(clocks(o.Memory)) > 0 || o.Wait != 0 {
				t.Fatalf("Observe(%s) with %v evicts %v, clocks %v", s, memory, o.Evict, clocks(o.Memory))
			}
			if len(o.Record) > 0 {
				short++
			}
			memory = o.Memory
		}
	}
	if short < rounds/100 {
		t.Errorf("%d edits left a gang below its minimum, so the test tests little", short)
	}
}
