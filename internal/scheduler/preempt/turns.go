package preempt

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/internal/decide/preemption"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// usesCopy reports whether an action works on the private copy of the cluster.
func usesCopy(action preemption.Action) bool {
	return action == preemption.Search || action == preemption.Renew
}

// beginTurn reports whether it is the turn of a gang to use the copy. If it is not, the
// gang is dealt with again when it is.
func (p *Preemptor) beginTurn(key types.NamespacedName, g *decide.Gang, action preemption.Action) bool {
	priority := p.Groups.Priority(g.Group, g.Pods)
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.turns.Begin(key, priority, action == preemption.Renew)
}

// inTurn carries out an action, and ends the turn that it may have needed.
func (p *Preemptor) inTurn(ctx context.Context, key types.NamespacedName, g *decide.Gang, one *preempting, action preemption.Action, f preemption.Facts) bool {
	if usesCopy(action) {
		began := time.Now()
		defer func() { p.endTurn(key, time.Since(began)) }()
	}

	return p.act(ctx, key, g, one, action, f)
}

// endTurn has the next gang dealt with that waits for its turn. The gang that had its turn may
// have other things to do first, such as writes to the API server.
func (p *Preemptor) endTurn(key types.NamespacedName, took time.Duration) {
	p.mu.Lock()
	next, ok := p.turns.End(key, took)
	p.mu.Unlock()
	if ok {
		p.queue.Add(next)
	}
}

// callNext has the next gang dealt with that waits for its turn, after another one was dealt
// with, which may not have used its turn.
func (p *Preemptor) callNext(after types.NamespacedName) {
	p.mu.Lock()
	next, ok := p.turns.Done(after)
	p.mu.Unlock()
	if ok {
		p.queue.Add(next)
	}
}
