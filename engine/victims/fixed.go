package victims

import "context"

// Spare finds which of the Pods must be evicted so that members can be placed at the given places,
// in that order. For these places, no pod, no subgroup and no gang of the victims could stay. If
// the places do not hold even without all Pods, the outcome is [Unproven].
func Spare(ctx context.Context, p *Problem, cluster Cluster, places []Place) (Result, error) {
	if err := p.check(); err != nil {
		return Result{}, err
	}
	s := newSearch(p, cluster)
	defer s.reset()
	for pod := range p.Pods {
		for _, one := range s.take([]int{pod}) {
			cluster.Evict(one)
		}
	}
	for _, place := range places {
		cluster.Place(place.Member, place.Node)
	}
	s.keep(places)
	if err := s.spare(ctx); err != nil {
		return Result{}, err
	}
	reason, err := s.verify(ctx)
	if err != nil {
		return Result{}, err
	}

	return s.result(reason), nil
}
