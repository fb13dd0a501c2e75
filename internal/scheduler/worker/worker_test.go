package worker

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/metrics/testutil"

	"github.com/arbor-control/arbor/internal/scheduler/gangmetrics"
)

// A panic affects the group that a worker deals with, and no other: the worker
// goes on, and so does the group when something happens to it.
func TestPanicAffectsOneGroup(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]())
	bert := types.NamespacedName{Namespace: "ml", Name: "bert"}
	other := types.NamespacedName{Namespace: "ml", Name: "gpt"}
	before, err := testutil.GetCounterMetricValue(gangmetrics.Panics.WithLabelValues("test"))
	if err != nil {
		t.Fatal(err)
	}
	written := make(chan types.NamespacedName)
	broken := true
	go Drain(t.Context(), "test", queue, func(_ context.Context, key types.NamespacedName) error {
		if key == bert && broken {
			broken = false
			panic("index out of range")
		}
		written <- key

		return nil
	})
	t.Cleanup(queue.ShutDown)
	queue.Add(bert)
	queue.Add(other)
	if got := <-written; got != other {
		t.Fatalf("the worker wrote %v", got)
	}
	queue.Add(bert)
	if got := <-written; got != bert {
		t.Fatalf("the worker wrote %v", got)
	}
	after, err := testutil.GetCounterMetricValue(gangmetrics.Panics.WithLabelValues("test"))
	if err != nil || after != before+1 {
		t.Errorf("%v panics were counted (%v)", after-before, err)
	}
}
