package victims_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/engine/podtree"
	"github.com/arbor-control/arbor/engine/victims"
)

const rounds = 10_000

func random(seed uint64) func(int) int { return rand.New(rand.NewPCG(seed, 11)).IntN }

// drawSpec prefers small trees with minimums that can be met.
func drawSpec(next func(int) int) podtree.Spec {
	var spec podtree.Spec
	for i := range next(5) {
		g := podtree.SubGroup{Name: "g" + strconv.Itoa(i), MinMember: num(int32(next(3)))}
		if parent := next(i+2) - 1; parent >= 0 && parent < i {
			g.Parent = &spec.SubGroups[parent].Name
		}
		spec.SubGroups = append(spec.SubGroups, g)
	}
	tree := newTree(spec)
	for i := range spec.SubGroups {
		node := tree.Node(i + 1)
		if !node.IsLeaf() {
			spec.SubGroups[i].MinMember = nil
			spec.SubGroups[i].MinSubGroup = num(int32(next(len(node.Children) + 1)))
		}
	}
	if len(spec.SubGroups) > 0 && next(2) == 0 {
		spec.MinSubGroup = num(int32(next(len(tree.Node(0).Children) + 1)))
	}
	if len(spec.SubGroups) == 0 || next(4) == 0 {
		spec.MinMember = num(int32(next(4)))
	}

	return spec
}

// draw creates a small cluster: at most 4 nodes and 8 pods, in up to 2 gangs. With alike, members
// of the preemptor take one GPU each and have no anti-affinity.
func draw(next func(int) int, alike bool) *story {
	s := newStory(1+next(4), 0)
	for node := range s.Nodes {
		s.cluster.free[node] = thing{gpu: next(8) / 7, cpu: 3 + next(6)}
	}
	for range next(3) {
		s.Budgets = append(s.Budgets, int32(next(3)))
	}
	s.HardBudgets = next(4) == 0
	for range next(3) {
		s.gang(drawSpec(next))
		s.Gangs[len(s.Gangs)-1].Rules.LeavesOnly = next(4) == 0
	}
	for i := range 1 + max(next(8), next(8)) {
		s.drawPod(next, i)
	}
	for g := range s.Gangs {
		tree := s.Gangs[g].Tree
		for range next(3) / 2 {
			s.Gangs[g].Members = append(s.Gangs[g].Members, gang.Member{Leaf: tree.Leaves()[next(len(tree.Leaves()))], State: gang.Placed})
		}
	}
	s.preemptor(drawSpec(next))
	s.Rules.LeavesOnly = next(4) == 0
	for _, at := range s.Tree.Leaves() {
		least := 1
		if n := s.Tree.Node(at).MinMember; n != nil && next(8) > 0 {
			least = int(*n)
		}
		s.want(least+next(2), s.Tree.Node(at).Name, drawThing(next, alike))
	}
	if next(3) == 0 {
		node := next(s.Nodes)
		s.Prefer = func(int) int { return node }
	}

	return s
}

func drawThing(next func(int) int, alike bool) thing {
	if alike {
		return one
	}
	apps := []string{"", "", "a", "b"}

	return thing{gpu: 1 + next(2), cpu: next(2), app: apps[next(4)], alone: apps[next(4)*(next(8)/7)]}
}

// drawPod adds a pod that was placed on a node when there was room.
func (s *story) drawPod(next func(int) int, i int) {
	t := thing{gpu: 1 + next(3), cpu: next(2), app: []string{"", "", "a", "b"}[next(4)]}
	node := next(s.Nodes)
	s.cluster.free[node].gpu += t.gpu
	p := victims.Pod{
		Name: "p" + strconv.Itoa(i), Node: node, Gang: next(len(s.Gangs)+1) - 1,
		Priority: int32(next(3)), Damage: int64(t.gpu), Started: int64(next(8)),
	}
	for b := range s.Budgets {
		if next(3) == 0 {
			p.Budgets = append(p.Budgets, b)
		}
	}
	if p.Gang >= 0 {
		g := &s.Gangs[p.Gang]
		leaves := g.Tree.Leaves()
		p.Member, p.Priority = len(g.Members), int32(p.Gang)
		g.Members = append(g.Members, gang.Member{Leaf: leaves[next(len(leaves))], State: gang.Placed})
	}
	s.run(p.Name, node, t, func(made *victims.Pod) { *made = p })
}

// String writes a story down, for those who look into a failure.
func (s *story) String() string {
	text := fmt.Sprintf("free %v, hard budgets %t %v", s.cluster.free, s.HardBudgets, s.Budgets)
	for i, p := range s.Pods {
		text += fmt.Sprintf("\n%+v %v", p, s.cluster.pods[i])
	}
	show := func(tree *podtree.Tree, members []gang.Member) {
		for i, node := range tree.All() {
			text += fmt.Sprintf("\n  %d %q parent %d, children %d", i, node.Name, node.Parent, tree.RequiredChildren(i))
			if node.MinMember != nil {
				text += fmt.Sprintf(", min %d", *node.MinMember)
			}
		}
		for _, m := range members {
			text += fmt.Sprintf(" %d", m.Leaf)
		}
	}
	for _, g := range s.Gangs {
		text += fmt.Sprintf("\ngang, leaves only %t", g.Rules.LeavesOnly)
		show(g.Tree, g.Members)
	}
	text += fmt.Sprintf("\npreemptor, leaves only %t", s.Rules.LeavesOnly)
	show(s.Tree, s.Members)

	return text + fmt.Sprintf("\nwants %v", s.cluster.members)
}

// check runs Search and holds everything that is promised against the result.
func (s *story) check(t *testing.T) victims.Result {
	t.Helper()
	before := s.cluster.state()
	r, err := victims.Search(t.Context(), &s.Problem, s.cluster)
	if err != nil {
		t.Fatalf("Search(%s): %v", s, err)
	}
	if after := s.cluster.state(); after != before {
		t.Fatalf("Search(%s): the cluster was\n%s\nand is\n%s", s, before, after)
	}
	if r.Outcome == victims.Impossible || r.Outcome == victims.Unproven || r.Outcome == victims.Insufficient {
		if r.Reason == "" || len(r.Places) > 0 || len(r.Victims) > 0 || r.Violations != 0 {
			t.Fatalf("Search(%s) has no plan, but is %+v", s, r)
		}

		return r
	}
	s.checkPlan(t, r)

	return r
}

// checkPlan holds everything that is promised of a plan against it.
func (s *story) checkPlan(t *testing.T, r victims.Result) {
	t.Helper()
	if (len(r.Victims) > 0) != (r.Outcome == victims.Found) || r.Reason != "" || !slices.IsSorted(r.Victims) {
		t.Fatalf("Search(%s): the fields of %+v do not match", s, r)
	}
	s.checkPlaces(t, r)
	if !s.legal(r.Victims) {
		t.Fatalf("Search(%s): victims %v break a gang", s, s.names(r.Victims))
	}
	if got := s.violations(r.Victims); got != r.Violations || s.HardBudgets && got > 0 {
		t.Fatalf("Search(%s): %d violations, the twin counts %d", s, r.Violations, got)
	}
	for _, unit := range s.units(r.Victims) {
		rest := slices.DeleteFunc(slices.Clone(r.Victims), func(pod int) bool { return slices.Contains(unit, pod) })
		if s.legal(rest) && s.holds(r.Places, rest) {
			t.Fatalf("Search(%s): %+v, but %v could stay", s, r, s.names(unit))
		}
	}
}

// TestSpare: with places that a search has found, and all pods as candidates, the
// promises are the same. Without candidates, the places of a gang that does not
// fit do not hold.
func TestSpare(t *testing.T) {
	var found, unproven int
	for round := range rounds {
		s := draw(random(uint64(round)), false)
		r := s.check(t)
		if r.Outcome != victims.Found && r.Outcome != victims.Fits || s.HardBudgets {
			continue
		}
		before := s.cluster.state()
		got, err := victims.Spare(t.Context(), &s.Problem, s.cluster, r.Places)
		if err != nil || got.Outcome != victims.Found && got.Outcome != victims.Fits {
			t.Fatalf("round %d: Spare(%s) = %+v, %v, and the search found %+v", round, s, got, err, r)
		}
		s.checkPlan(t, got)
		if got.Outcome == victims.Found {
			found++
		}
		if (got.Outcome == victims.Fits) != s.holds(r.Places, nil) {
			t.Fatalf("round %d: Spare(%s) = %+v for places that hold without victims, or do not", round, s, got)
		}
		none := s.Problem
		none.Pods = nil
		if got, err = victims.Spare(t.Context(), &none, s.cluster, r.Places); err != nil || (got.Outcome == victims.Unproven) == s.holds(r.Places, nil) {
			t.Fatalf("round %d: Spare(%s) without candidates = %+v, %v", round, s, got, err)
		}
		if got.Outcome == victims.Unproven {
			unproven++
		}
		if after := s.cluster.state(); after != before {
			t.Fatalf("Spare(%s): the cluster was\n%s\nand is\n%s", s, before, after)
		}
	}
	if found < rounds/10 || unproven < rounds/10 {
		t.Errorf("%d had victims, %d were unproven: the test tests little", found, unproven)
	}
}

// checkPlaces: the places hold without the victims, and meet the minimum.
func (s *story) checkPlaces(t *testing.T, r victims.Result) {
	t.Helper()
	if !s.holds(r.Places, r.Victims) {
		t.Fatalf("Search(%s): places of %+v do not hold", s, r)
	}
	after := slices.Clone(s.Members)
	for _, p := range r.Places {
		if after[p.Member].State != gang.Waiting {
			t.Fatalf("Search(%s): member %d of %+v does not wait", s, p.Member, r)
		}
		after[p.Member].State = gang.Placed
	}
	if !gang.Satisfied(s.Tree, after, s.Rules)[s.Tree.Root()].Satisfied {
		t.Fatalf("Search(%s): places of %+v do not meet the minimum", s, r)
	}
	if stale := gang.Stale(s.Tree, after, s.Rules); len(stale) > 0 {
		t.Fatalf("Search(%s): places of %+v are of no use to %v", s, r, stale)
	}
}

// holds evicts pods and places members one by one.
func (s *story) holds(places []victims.Place, evict []int) bool {
	for _, pod := range evict {
		s.cluster.Evict(pod)
	}
	done, ok := 0, true
	for _, p := range places {
		if ok = s.cluster.fits(p.Member, p.Node); !ok {
			break
		}
		s.cluster.Place(p.Member, p.Node)
		done++
	}
	for _, p := range places[:done] {
		s.cluster.Unplace(p.Member, p.Node)
	}
	for _, pod := range evict {
		s.cluster.Restore(pod)
	}

	return ok
}

func (s *story) violations(evict []int) int {
	total := 0
	for b, allowed := range s.Budgets {
		covered := 0
		for _, pod := range evict {
			if slices.Contains(s.Pods[pod].Budgets, b) {
				covered++
			}
		}
		total += max(0, covered-int(allowed))
	}

	return total
}

// legal reports whether no gang is newly broken without some pods, and whether subgroups that were
// broken before leave whole. Members without a pod may leave or not, as if they did not exist.
func (s *story) legal(evict []int) bool {
	for g := range s.Gangs {
		podOf := map[int]int{}
		for i, p := range s.Pods {
			if p.Gang == g {
				podOf[p.Member] = i
			}
		}
		if !s.unbroken(g, podOf, evict) || !s.whole(g, evict) {
			return false
		}
	}

	return true
}

func (s *story) unbroken(g int, podOf map[int]int, evict []int) bool {
	of := s.Gangs[g]
	var ended []int
	for m := range of.Members {
		if _, running := podOf[m]; !running {
			ended = append(ended, m)
		}
	}
	for some := range 1 << len(ended) {
		left := func(m int) bool {
			if pod, running := podOf[m]; running {
				return slices.Contains(evict, pod)
			}

			return some>>slices.Index(ended, m)&1 == 1
		}
		if !gang.Broken(of.Tree, of.Members, of.Rules, left) {
			return true
		}
	}

	return false
}

// whole reports whether each of the topmost subgroups that are broken stays or leaves as a whole.
func (s *story) whole(g int, evict []int) bool {
	of := s.Gangs[g]
	reports := gang.Satisfied(of.Tree, of.Members, of.Rules)
	stay, leave := map[int]bool{}, map[int]bool{}
	for i, p := range s.Pods {
		if p.Gang != g {
			continue
		}
		top := -1
		for at := of.Members[p.Member].Leaf; at >= 0; at = of.Tree.Node(at).Parent {
			if !reports[at].Satisfied {
				top = at
			}
		}
		if slices.Contains(evict, i) {
			leave[top] = true
		} else {
			stay[top] = true
		}
	}
	for top := range leave {
		if top >= 0 && stay[top] {
			return false
		}
	}

	return true
}

// units returns each pod, and those of each subgroup and gang.
func (s *story) units(evict []int) [][]int {
	var all [][]int
	for _, pod := range evict {
		all = append(all, []int{pod})
	}
	for g, of := range s.Gangs {
		below := make([][]int, of.Tree.Len())
		for _, pod := range evict {
			p := s.Pods[pod]
			if p.Gang != g {
				continue
			}
			for at := of.Members[p.Member].Leaf; at >= 0; at = of.Tree.Node(at).Parent {
				below[at] = append(below[at], pod)
			}
		}
		for _, pods := range below {
			if len(pods) > 0 {
				all = append(all, pods)
			}
		}
	}

	return all
}

// subset yields the pods of a set by the bits of a number.
func subset(pods []int, bits int) []int {
	var some []int
	for i, pod := range pods {
		if bits>>i&1 == 1 {
			some = append(some, pod)
		}
	}

	return some
}

func TestSearchKeepsItsPromises(t *testing.T) {
	outcomes := map[victims.Outcome]int{}
	var improvable, violations, gangs int
	for round := range rounds {
		s := draw(random(uint64(round)), false)
		r := s.check(t)
		outcomes[r.Outcome]++
		if r.Outcome == victims.Unproven && !s.HardBudgets && !slices.ContainsFunc(s.cluster.members, func(m thing) bool { return m.alone != "" }) {
			t.Fatalf("round %d: Search(%s) = %+v, and no member looks at other nodes", round, s, r)
		}
		if r.Violations > 0 {
			violations++
		}
		if slices.ContainsFunc(s.units(r.Victims), func(u []int) bool { return len(u) > 1 }) {
			gangs++
		}
		// More than is promised: no part of the victims would have been enough.
		for bits := range 1<<len(r.Victims) - 1 {
			if rest := subset(r.Victims, bits); s.legal(rest) && s.holds(r.Places, rest) {
				improvable++

				break
			}
		}
	}
	t.Logf("%d found, %d fit, %d impossible, %d unproven; %d with several pods of a gang, %d violated budgets, in %d a part of the victims was enough",
		outcomes[victims.Found], outcomes[victims.Fits], outcomes[victims.Impossible], outcomes[victims.Unproven], gangs, violations, improvable)
	for outcome, least := range map[victims.Outcome]int{victims.Found: rounds / 5, victims.Fits: rounds / 20, victims.Impossible: rounds / 20, victims.Unproven: rounds / 1000} {
		if outcomes[outcome] < least {
			t.Errorf("outcome %d came %d times, want at least %d", outcome, outcomes[outcome], least)
		}
	}
	if gangs < rounds/20 || violations < rounds/100 {
		t.Errorf("%d searches had several victims of a gang, %d violated budgets: the test tests little", gangs, violations)
	}
	if improvable*200 > outcomes[victims.Found] {
		t.Errorf("in %d of %d searches a part of the victims was enough, want at most 1 in 200", improvable, outcomes[victims.Found])
	}
}
