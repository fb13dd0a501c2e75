package victims

import (
	"cmp"
	"container/heap"
	"context"
	"math"
)

// maxOffers is how many nodes are compared for a member without a shape, of
// which nothing can be remembered.
const maxOffers = 100

// A need is which pods of a node must be evicted so that a member fits, at a
// stamp of the node; none if it does not fit.
type need struct {
	stamp int
	pods  []int
}

// A cost is compared field by field; the last is when the oldest pod started,
// and later is better.
type cost struct {
	violations int
	priority   int32
	damage     int64
	pods       int
	started    int64
}

func (c cost) compare(d cost) int {
	return cmp.Or(cmp.Compare(c.violations, d.violations), cmp.Compare(c.priority, d.priority),
		cmp.Compare(c.damage, d.damage), cmp.Compare(c.pods, d.pods), cmp.Compare(d.started, c.started))
}

// An offer is a node, and its cost when it was computed.
type offer struct {
	node, stamp int
	cost        cost
}

// offers is a heap with the cheapest in front.
type offers []offer

func (o *offers) Len() int { return len(*o) }
func (o *offers) Less(i, j int) bool {
	a, b := (*o)[i], (*o)[j]

	return cmp.Or(a.cost.compare(b.cost), cmp.Compare(a.node, b.node)) < 0
}
func (o *offers) Swap(i, j int) { (*o)[i], (*o)[j] = (*o)[j], (*o)[i] }
func (o *offers) Push(x any)    { *o = append(*o, x.(offer)) } //nolint:forcetypeassert // nothing else is pushed
func (o *offers) Pop() any {
	last := (*o)[len(*o)-1]
	*o = (*o)[:len(*o)-1]

	return last
}

// cheapestNode returns the node on which evictions for a member cost least, and which pods they
// are; -1 if there is none. Costs grow as pods are chosen, so they are computed again when their
// turn comes.
func (w *world) cheapestNode(ctx context.Context, sh *shape, member int) (int, []int, error) {
	if err := w.collect(ctx, sh, member); err != nil {
		return -1, nil, err
	}
	for sh.offers.Len() > 0 {
		best := heap.Pop(&sh.offers).(offer) //nolint:forcetypeassert // nothing else is pushed
		if best.stamp != w.stamp(best.node) {
			continue
		}
		n := &sh.needs[best.node]
		now := w.cost(n.pods)
		if w.HardBudgets && now.violations > 0 {
			// With what is chosen by now, it may need other pods.
			if err := w.look(ctx, n, member, best.node); err != nil {
				return -1, nil, err
			}
			if now = w.cost(n.pods); now.violations > 0 {
				continue
			}
		}
		if now.compare(best.cost) > 0 {
			best.cost = now
			heap.Push(&sh.offers, best)

			continue
		}

		return best.node, n.pods, nil
	}

	return -1, nil, nil
}

// collect computes the offers of the nodes that have changed, and after a rollback the costs of
// all.
func (w *world) collect(ctx context.Context, sh *shape, member int) error {
	again := sh.rollbacks != w.rollbacks
	if again {
		sh.offers, sh.rollbacks = sh.offers[:0], w.rollbacks
	}
	for node := range sh.needs {
		n := &sh.needs[node]
		known := n.stamp == w.stamp(node)
		if known && !again {
			continue
		}
		if !known {
			if err := w.look(ctx, n, member, node); err != nil {
				return err
			}
		}
		if n.pods != nil {
			heap.Push(&sh.offers, offer{node: node, stamp: n.stamp, cost: w.cost(n.pods)})
		}
		if w.Members[member].Shape == "" && sh.offers.Len() == maxOffers {
			break
		}
	}

	return nil
}

// look finds out what a member needs on a node.
func (w *world) look(ctx context.Context, n *need, member, node int) error {
	pods, ok, err := w.needed(ctx, node, func() (bool, error) { return w.cluster.Fits(ctx, member, node) })
	if err != nil {
		return err
	}
	*n = need{stamp: w.stamp(node)}
	if ok {
		n.pods = pods
	}

	return nil
}

// cost is that of pods and all that leave with them.
func (s *search) cost(pods []int) cost {
	before := s.numTakes()
	c := cost{priority: math.MinInt32, started: math.MaxInt64}
	for _, pod := range s.take(pods) {
		p := &s.Pods[pod]
		c.priority, c.started = max(c.priority, p.Priority), min(c.started, p.Started)
		c.damage += p.Damage
		c.pods++
	}
	c.violations = s.violations
	s.undoTakes(before)

	return c
}
