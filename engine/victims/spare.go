package victims

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// A unit is victims that can only stay together: a pod, the victims of a
// subgroup, or those of a gang.
type unit struct {
	gang int
	pods []int
	// saved is how many violations of budgets less there are if it stays.
	saved    int
	priority int32
	damage   int64
	// started is when the oldest pod was.
	started int64
}

// spare lets units stay whose eviction the places do not need, until none is
// left that could.
func (s *search) spare(ctx context.Context) error {
	// From here on losses begin with the whole gang, see legal.
	for _, losses := range s.losses {
		losses.Rollback(0)
	}
	for changed := true; changed; {
		changed = false
		for _, u := range s.units() {
			if err := ctx.Err(); err != nil {
				return err
			}
			stays, err := s.tryToStay(ctx, u)
			if err != nil {
				return err
			}
			changed = changed || stays
		}
	}

	return nil
}

// units returns those of the chosen pods: those that violate budgets first,
// then the most important, and gangs before their subgroups and pods.
func (s *search) units() []unit {
	var all []unit
	s.of = make([][]int, len(s.Gangs))
	for pod, in := range s.in {
		switch g := s.Pods[pod].Gang; {
		case in && g >= 0:
			s.of[g] = append(s.of[g], pod)
		case in:
			all = append(all, s.unit(-1, []int{pod}))
		}
	}
	for g, pods := range s.of {
		for _, some := range s.subgroups(g, pods) {
			all = append(all, s.unit(g, some))
		}
	}
	slices.SortStableFunc(all, func(a, b unit) int {
		return cmp.Or(cmp.Compare(b.saved, a.saved), cmp.Compare(b.priority, a.priority),
			cmp.Compare(len(b.pods), len(a.pods)), cmp.Compare(b.damage, a.damage), cmp.Compare(a.started, b.started))
	})

	return all
}

func (s *search) unit(of int, pods []int) unit {
	u := unit{gang: of, pods: pods, saved: s.violations, priority: math.MinInt32, started: math.MaxInt64}
	for _, pod := range pods {
		p := &s.Pods[pod]
		u.priority, u.started = max(u.priority, p.Priority), min(u.started, p.Started)
		u.damage += p.Damage
		s.remove(pod)
	}
	u.saved -= s.violations
	for _, pod := range pods {
		s.add(pod)
	}

	return u
}

// subgroups returns the pods of a gang below each node of its tree, and each
// pod alone, without repeating the same pods.
func (s *search) subgroups(of int, pods []int) [][]int {
	tree := s.Gangs[of].Tree
	below := make([][]int, tree.Len())
	for _, pod := range pods {
		for i := s.Gangs[of].Members[s.Pods[pod].Member].Leaf; i >= 0; i = tree.Node(i).Parent {
			below[i] = append(below[i], pod)
		}
	}
	var all [][]int
	for i, node := range tree.All() {
		if len(below[i]) == 0 {
			continue
		}
		if node.Parent < 0 || len(below[node.Parent]) > len(below[i]) {
			all = append(all, below[i])
		}
		if node.IsLeaf() && len(below[i]) > 1 {
			for _, pod := range below[i] {
				all = append(all, []int{pod})
			}
		}
	}

	return all
}

// tryToStay takes a unit out of the chosen pods if no gang is broken and all
// places hold.
func (s *search) tryToStay(ctx context.Context, u unit) (bool, error) {
	pods := slices.DeleteFunc(slices.Clone(u.pods), func(pod int) bool { return !s.in[pod] })
	if len(pods) == 0 {
		return false, nil
	}
	for _, pod := range pods {
		s.remove(pod)
	}
	holds, err := false, error(nil)
	if u.gang < 0 || s.legal(u.gang) {
		for _, pod := range pods {
			s.cluster.Restore(pod)
		}
		if holds, err = s.holds(ctx, pods); !holds {
			for _, pod := range pods {
				s.cluster.Evict(pod)
			}
		}
	}
	if !holds {
		for _, pod := range pods {
			s.add(pod)
		}
	}

	return holds, err
}

// legal reports whether the chosen pods of a gang can leave without any other.
func (s *search) legal(of int) bool {
	losses, pods, left := s.losses[of], 0, 0
	for _, pod := range s.of[of] {
		if !s.in[pod] {
			continue
		}
		pods++
		for _, m := range losses.Take(s.Pods[pod].Member) {
			if s.podOf[of][m] >= 0 {
				left++
			}
		}
	}
	losses.Rollback(0)

	return pods == left
}

// holds reports whether the places hold once pods are back: those on their
// nodes, and those of members that look at more than their own node.
func (s *search) holds(ctx context.Context, pods []int) (bool, error) {
	var nodes []int
	for _, pod := range pods {
		nodes = append(nodes, s.Pods[pod].Node)
	}
	for _, p := range s.places {
		if s.Members[p.Member].Shape == "" {
			nodes = append(nodes, p.Node)
		}
	}
	slices.Sort(nodes)
	for _, node := range slices.Compact(nodes) {
		if ok, err := s.stands(ctx, node); err != nil || !ok {
			return false, err
		}
	}

	return true, nil
}
