package victims

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// A block is pods of one node that leave together.
type block struct {
	// pods on the node, and with other pods elsewhere.
	pods, with []int
	// violates is whether some are covered by a budget that would be exceeded.
	violates bool
	priority int32
	damage   int64
	// started is when the oldest pod was.
	started int64
}

// needed returns the pods of a node that must be evicted so that something
// fits, which is asked about with fits. As kube-scheduler does, it evicts all
// and restores one block after the other, the most important first. The cluster
// is as before on return.
func (s *search) needed(ctx context.Context, node int, fits func() (bool, error)) (pods []int, ok bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	blocks := s.blocks(node)
	for _, b := range blocks {
		s.evict(b.pods)
	}
	defer func() {
		for _, b := range blocks {
			s.restore(b.pods)
		}
	}()
	if ok, err = fits(); err != nil || !ok {
		return nil, false, err
	}
	for _, b := range blocks {
		s.restore(b.pods)
		stays, err := fits()
		if err != nil {
			return nil, false, err
		}
		if !stays {
			s.evict(b.pods)
			pods = append(pods, b.pods...)
		}
	}

	return pods, true, nil
}

// evict and restore pods in the cluster, for a moment.
func (s *search) evict(pods []int) {
	for _, pod := range pods {
		s.cluster.Evict(pod)
		s.away[pod] = true
	}
}

func (s *search) restore(pods []int) {
	for _, pod := range pods {
		if s.away[pod] {
			s.cluster.Restore(pod)
			s.away[pod] = false
		}
	}
}

// blocks returns the pods of a node that may be evicted, the most important
// first.
func (s *search) blocks(node int) []block {
	var all []block
	for _, pod := range s.on[node] {
		if s.in[pod] {
			continue
		}
		with := s.with(pod)
		at := slices.IndexFunc(all, func(b block) bool { return b.with[0] == with[0] && len(b.with) == len(with) })
		if at < 0 {
			at = len(all)
			all = append(all, s.block(with))
		}
		all[at].pods = append(all[at].pods, pod)
	}
	before := s.numTakes()
	for _, b := range all {
		s.take(b.pods)
	}
	for i := range all {
		all[i].violates = slices.ContainsFunc(all[i].with, s.exceeds)
	}
	s.undoTakes(before)
	slices.SortStableFunc(all, moreImportant)

	return all
}

func (s *search) block(with []int) block {
	b := block{with: with, priority: math.MinInt32, started: math.MaxInt64}
	for _, pod := range with {
		p := &s.Pods[pod]
		b.priority, b.started = max(b.priority, p.Priority), min(b.started, p.Started)
		b.damage += p.Damage
	}

	return b
}

func moreImportant(a, b block) int {
	if a.violates != b.violates {
		if a.violates {
			return -1
		}

		return 1
	}

	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(b.damage, a.damage), cmp.Compare(a.started, b.started))
}
