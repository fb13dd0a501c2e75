package kube

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// longestPause is how long a reconciler waits at most before it tries again.
	longestPause = 5 * time.Second
	// pauseJitter keeps two managers from meeting again and again.
	pauseJitter = 0.5
)

// Patient returns a reconciler that retries, a little later, if another writer was faster. Every
// controller uses it.
//
// A lost race is not an error: it need not be reported, and nothing has to be repaired. But the
// reconciliation is not complete either. The event of the faster writer may have come before the
// read, may belong to an object that is not watched here, or may never come, because the conflict
// did not come from the API server. So the reconciliation is retried, with a back-off that grows
// while the cache is behind.
func Patient(r reconcile.Reconciler) reconcile.Reconciler {
	return &patient{Reconciler: r, lost: newGradual(longestPause)}
}

type patient struct {
	reconcile.Reconciler

	// lost counts races in a row. Each is followed by another attempt, so every entry is removed
	// again.
	lost *gradual
}

func (p *patient) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := p.Reconciler.Reconcile(ctx, request)
	if !LostRace(err) {
		p.lost.Forget(request)

		return result, err
	}
	pause := wait.Jitter(p.lost.When(request), pauseJitter)
	logr.FromContextOrDiscard(ctx).V(1).Info("Another writer was faster; retrying", "after", pause.String(), "error", err.Error())

	return reconcile.Result{RequeueAfter: pause}, nil
}
