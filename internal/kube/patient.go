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

// Patient returns a reconciler that looks again, a little later, at what another
// writer changed first. Every controller is made of one.
//
// A lost race is no error: nobody has to know, and nothing has to be mended. But
// it is not the end either. The event of whoever was faster may have come before
// the read, may belong to an object that nobody watches here, or may never come,
// because it was not the API server that said so. So what was not written is
// decided on anew, with pauses that grow while the cache is behind.
func Patient(r reconcile.Reconciler) reconcile.Reconciler {
	return &patient{Reconciler: r, lost: newGradual(longestPause)}
}

type patient struct {
	reconcile.Reconciler

	// lost counts races in a row. Each is followed by another attempt, so whoever
	// is in it leaves it again.
	lost *gradual
}

func (p *patient) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := p.Reconciler.Reconcile(ctx, request)
	if !LostRace(err) {
		p.lost.Forget(request)

		return result, err
	}
	pause := wait.Jitter(p.lost.When(request), pauseJitter)
	logr.FromContextOrDiscard(ctx).V(1).Info("Somebody else wrote first; looking again", "after", pause.String(), "error", err.Error())

	return reconcile.Result{RequeueAfter: pause}, nil
}
