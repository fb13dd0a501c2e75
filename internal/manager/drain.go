package manager

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// run runs both managers until ctx ends, which SIGTERM does. Then, in this order:
//
//  1. The replica is not ready any more, and clients are asked to leave their connections.
//  2. The controllers end and release the lease, so that another replica leads at once.
//  3. The webhooks are served until the endpoints of their Service are updated, from
//     caches that are kept up to date.
//  4. The server stops once the requests that it has are answered.
//
// If one of the managers fails, both end at once.
func (r *runner) run(ctx context.Context) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	leading, yield := context.WithCancel(ctx)
	defer yield()
	begin := context.AfterFunc(ctx, r.drain.begin)
	defer begin()

	ended := make(chan struct{})
	var served error
	go func() {
		defer close(ended)
		defer yield()
		served = r.server.Start(serving)
	}()
	err := r.controllers.Start(leading)
	r.options.fence.Close()
	if ctx.Err() != nil {
		r.drain.wait(ended)
	}
	stop()
	<-ended

	return errors.Join(err, served)
}

// A drain is the time after SIGTERM in which webhooks are served although this replica is
// not one of the Service's endpoints any more: the API server and kube-proxy learn of that
// later than the process, and keep the connections that they have.
type drain struct {
	time  time.Duration
	begun atomic.Bool
	over  chan struct{}
}

func newDrain(d time.Duration) *drain { return &drain{time: d, over: make(chan struct{})} }

// begin must be called once.
func (d *drain) begin() {
	d.begun.Store(true)
	time.AfterFunc(d.time, func() { close(d.over) })
}

// wait returns when the time is over, or the server has ended.
func (d *drain) wait(ended <-chan struct{}) {
	select {
	case <-d.over:
	case <-ended:
	}
}

// ready is a readiness check.
func (d *drain) ready(*http.Request) error {
	if d.begun.Load() {
		return errors.New("the manager is shutting down")
	}

	return nil
}

// leave asks a client to leave the connection: its next one leads to another replica. HTTP/2
// has no such header: the server sends GOAWAY in its place.
func leave(w http.ResponseWriter) { w.Header().Set("Connection", "close") }

// around returns a handler that asks clients to leave the connection while the manager
// drains, and whose requests end after a time.
func (d *drain) around(timeout time.Duration, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.begun.Load() {
			leave(w)
		}
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

// lasting returns a handler whose requests are not canceled by the end of the server, which
// waits for them. They keep their deadline.
func lasting(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithoutCancel(r.Context())
		if deadline, ok := r.Context().Deadline(); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, deadline)
			defer cancel()
		}
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

// closed returns a handler that rejects requests while the manager drains. It is for those
// that need the controllers. A client that kept the connection would reach this replica
// again with its retry.
func (d *drain) closed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.begun.Load() {
			leave(w)
			w.Header().Set("Retry-After", "1")
			http.Error(w, "this replica is shutting down: try again", http.StatusServiceUnavailable)

			return
		}
		h.ServeHTTP(w, r)
	})
}

// borrowed is a cache that another manager starts and stops.
type borrowed struct{ cache.Cache }

// Start waits until ctx ends.
func (borrowed) Start(ctx context.Context) error {
	<-ctx.Done()

	return nil
}

// syncWait is how long a probe waits for caches: less than the kubelet waits for its answer.
const syncWait = 500 * time.Millisecond

// synced returns a readiness check: good once the caches have what was there at the start. The
// webhook server listens earlier, and webhooks that read the caches would reject every object
// until then.
func synced(c cache.Cache) healthz.Checker {
	var done atomic.Bool

	return func(r *http.Request) error {
		if done.Load() {
			return nil
		}
		ctx, cancel := context.WithTimeout(r.Context(), syncWait)
		defer cancel()
		if !c.WaitForCacheSync(ctx) {
			return errors.New("the caches are not synced yet")
		}
		done.Store(true)

		return nil
	}
}
