package delivery

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// A testWorker is a worker that talks to no server, with what loads compositions for it.
type testWorker struct {
	*environment
	*registry
	*loader
	*worker
}

func idleWorker() *testWorker {
	m := NewMetrics(prometheus.NewRegistry())
	e := &environment{
		health:    newHealthTracker(newWatches(nil, decide.Manager, func(key) {}), nil, func() int { return 0 }),
		manifests: decide.NewReader(), manager: decide.Manager, mapper: newKindCache(meta.NewDefaultRESTMapper(nil), time.Now), metrics: m, status: newStatusWriter(nil, nil, m),
		events: &eventRecorder{recorder: &events.FakeRecorder{}, limiter: rate.NewLimiter(0, 0)}, now: time.Now,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[key]()),
	}
	r := newRegistry(e, 0)

	return &testWorker{environment: e, registry: r, loader: &loader{environment: e, selector: labels.Everything()}, worker: &worker{environment: e, registry: r}}
}

// swap replaces the view of a composition.
func (w *testWorker) swap(name types.NamespacedName, v *view) { w.registry.put(name, v) }

// A compositionLister lists compositions, and calls a function before the answer arrives.
type compositionLister struct {
	client.Client

	items     []enov1.Composition
	meanwhile func()
}

func (l *compositionLister) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*enov1.CompositionList).Items = l.items
	l.meanwhile()

	return nil
}
