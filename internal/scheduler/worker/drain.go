package worker

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// Drain deals with the groups of a queue until that is shut down. A group whose
// handling fails is retried with a back-off. After a panic it is not retried until an
// event adds it again.
func Drain(
	ctx context.Context, worker string, queue workqueue.TypedRateLimitingInterface[types.NamespacedName], do func(context.Context, types.NamespacedName) error,
) {
	for {
		key, shutdown := queue.Get()
		if shutdown {
			return
		}
		process(ctx, worker, queue, key, do)
	}
}

func process(
	ctx context.Context, worker string, queue workqueue.TypedRateLimitingInterface[types.NamespacedName], key types.NamespacedName,
	do func(context.Context, types.NamespacedName) error,
) {
	defer queue.Done(key)
	defer Recovered(worker, key)
	if err := do(ctx, key); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).V(1).Info("Handling a PodGroup failed; retrying", "worker", worker, "podGroup", key, "err", err)
		queue.AddRateLimited(key)

		return
	}
	queue.Forget(key)
}
