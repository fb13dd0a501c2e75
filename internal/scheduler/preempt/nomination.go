package preempt

import (
	"context"
	"errors"
	"sync"

	"k8s.io/client-go/util/workqueue"
)

// nominationsAtOnce bounds the status writes that are under way for a reservation.
const nominationsAtOnce = 50

// nominate writes the reserved places to the status of the pods.
func (p *Preemptor) nominate(ctx context.Context, of *plan) error {
	var mu sync.Mutex
	var failed error
	workqueue.ParallelizeUntil(ctx, nominationsAtOnce, len(of.pods), func(i int) {
		if err := p.Groups.SetNominatedNode(ctx, of.pods[i], of.nodes[i]); err != nil {
			mu.Lock()
			failed = errors.Join(failed, err)
			mu.Unlock()
		}
	})

	return errors.Join(failed, ctx.Err())
}
