package victims

import (
	"context"

	"github.com/arbor-control/arbor/engine/gang"
)

// A search is the work of one [Search].
type search struct {
	*Problem
	*chosen

	cluster Cluster
	// on has the pods of each node.
	on [][]int
	// away has the pods that needed has evicted, by pod.
	away []bool
	// The plan: places in the order in which they were made, and members by
	// node. The cluster has them placed, and the chosen pods evicted.
	places []Place
	at     [][]int
	// of has the chosen pods of each gang when spare began to look at them.
	of [][]int
}

// Search finds pods to evict so that the minimum of a gang fits. For the places
// that it returns, no pod, no subgroup and no gang of the victims could stay.
// The error is that of the context or of the cluster, and then there is no
// plan.
func Search(ctx context.Context, p *Problem, cluster Cluster) (Result, error) {
	if err := p.check(); err != nil {
		return Result{}, err
	}
	if reason := Sums(p); reason != "" {
		return Result{Outcome: Insufficient, Reason: reason}, nil
	}
	s := newSearch(p, cluster)
	defer s.reset()

	last, reason, err := s.placeWithoutAll(ctx)
	if err != nil {
		return Result{}, err
	}
	if reason != "" {
		return Result{Outcome: Impossible, Reason: reason}, nil
	}
	reason, err = s.plan(ctx, last)
	if err != nil {
		return Result{}, err
	}

	return s.result(reason), nil
}

func newSearch(p *Problem, cluster Cluster) *search {
	s := &search{
		Problem: p, chosen: newChosen(p), cluster: cluster,
		on: make([][]int, p.Nodes), at: make([][]int, p.Nodes), away: make([]bool, len(p.Pods)),
	}
	for i, pod := range p.Pods {
		s.on[pod.Node] = append(s.on[pod.Node], i)
	}

	return s
}

// plan finds places and victims. It returns why there is no plan, "" if there
// is one.
func (s *search) plan(ctx context.Context, last []Place) (reason string, err error) {
	found, err := s.placeCheaply(ctx)
	if err == nil && !found {
		err = s.settleFor(ctx, last)
	}
	if err == nil {
		err = s.spare(ctx)
	}
	if err != nil {
		return "", err
	}

	return s.verify(ctx)
}

// placeWithoutAll places the gang as if all pods were evicted. Without a reason
// it fits.
func (s *search) placeWithoutAll(ctx context.Context) (places []Place, reason string, err error) {
	for pod := range s.Pods {
		s.cluster.Evict(pod)
	}
	defer func() {
		for pod := range s.Pods {
			s.cluster.Restore(pod)
		}
	}()
	w := newWorld(s)
	decision, err := gang.PlaceMinimum(ctx, s.Tree, s.Members, w, s.Rules)
	if err != nil {
		return nil, "", err
	}
	if !decision.Fits {
		return nil, decision.Reason(s.Tree), nil
	}
	places = w.made()
	w.Rollback(0)

	return places, "", nil
}

// placeCheaply places the gang and evicts what costs least for each member.
func (s *search) placeCheaply(ctx context.Context) (found bool, err error) {
	w := newWorld(s)
	w.evicts = true
	decision, err := gang.PlaceMinimum(ctx, s.Tree, s.Members, w, s.Rules)
	if err != nil || !decision.Fits {
		return false, err
	}
	s.keep(w.made())

	return true, nil
}

// settleFor takes given places, and evicts on each node what is in the way.
func (s *search) settleFor(ctx context.Context, places []Place) error {
	for _, p := range places {
		s.cluster.Place(p.Member, p.Node)
	}
	s.keep(places)
	for node, members := range s.at {
		if len(members) == 0 {
			continue
		}
		pods, ok, err := s.needed(ctx, node, func() (bool, error) { return s.stands(ctx, node) })
		if err != nil {
			return err
		}
		if !ok {
			pods = s.on[node]
		}
		for _, pod := range s.take(pods) {
			s.cluster.Evict(pod)
		}
	}

	return nil
}

// keep makes places, which the cluster has already, those of the plan.
func (s *search) keep(places []Place) {
	s.places = places
	for _, p := range places {
		s.at[p.Node] = append(s.at[p.Node], p.Member)
	}
}

// reset leaves the cluster as it was.
func (s *search) reset() {
	for _, p := range s.places {
		s.cluster.Unplace(p.Member, p.Node)
	}
	for pod, in := range s.in {
		if in {
			s.cluster.Restore(pod)
		}
	}
}

func (s *search) result(reason string) Result {
	if reason != "" {
		return Result{Outcome: Unproven, Reason: reason}
	}
	r := Result{Outcome: Fits, Places: s.places, Violations: s.violations}
	for pod, in := range s.in {
		if in {
			r.Outcome = Found
			r.Victims = append(r.Victims, pod)
		}
	}

	return r
}
