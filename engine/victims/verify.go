package victims

import (
	"context"
	"fmt"
)

// stands reports whether the members on a node pass there together.
func (s *search) stands(ctx context.Context, node int) (bool, error) {
	for _, m := range s.at[node] {
		s.cluster.Unplace(m, node)
	}
	ok, err := true, error(nil)
	for _, m := range s.at[node] {
		if ok && err == nil {
			ok, err = s.cluster.Fits(ctx, m, node)
		}
		s.cluster.Place(m, node)
	}

	return ok && err == nil, err
}

// verify places all members once more, one after the other, with the victims
// evicted. It returns why the plan does not hold, "" if it does.
func (s *search) verify(ctx context.Context) (reason string, err error) {
	if s.HardBudgets && s.violations > 0 {
		return "every plan that was found violates a PodDisruptionBudget", nil
	}
	for _, p := range s.places {
		s.cluster.Unplace(p.Member, p.Node)
	}
	for _, p := range s.places {
		if err == nil && reason == "" {
			var ok bool
			if ok, err = s.cluster.Fits(ctx, p.Member, p.Node); !ok {
				reason = fmt.Sprintf("%s does not pass on the node that was found for it, once the other members are placed", s.Members[p.Member].Name)
			}
		}
		s.cluster.Place(p.Member, p.Node)
	}
	if err == nil {
		err = ctx.Err()
	}

	return reason, err
}
