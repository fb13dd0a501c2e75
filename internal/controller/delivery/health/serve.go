package health

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
)

// serve takes what is in a queue until it is shut down.
func serve[T comparable](ctx context.Context, queue workqueue.TypedRateLimitingInterface[T], do func(context.Context, T) error) {
	for {
		item, shutdown := queue.Get()
		if shutdown {
			return
		}
		bounded, cancel := context.WithTimeout(ctx, healthTimeout)
		if err := do(bounded, item); err != nil {
			logr.FromContextOrDiscard(ctx).V(1).Info("cannot report health; trying again", "item", item, "error", err.Error())
			queue.AddRateLimited(item)
		} else {
			queue.Forget(item)
		}
		cancel()
		queue.Done(item)
	}
}
