package apply

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
	"github.com/arbor-control/arbor/internal/controller/delivery/env"
	"github.com/arbor-control/arbor/internal/controller/delivery/event"
	"github.com/arbor-control/arbor/internal/controller/delivery/health"
	"github.com/arbor-control/arbor/internal/controller/delivery/kinds"
	"github.com/arbor-control/arbor/internal/controller/delivery/load"
	"github.com/arbor-control/arbor/internal/controller/delivery/metric"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	"github.com/arbor-control/arbor/internal/controller/delivery/registry"
	"github.com/arbor-control/arbor/internal/controller/delivery/status"
	"github.com/arbor-control/arbor/internal/controller/delivery/watch"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// A testWorker is a worker that talks to no server, with what loads compositions for it.
type testWorker struct {
	*env.Environment
	*registry.Registry
	*load.Loader
	*Worker
}

func idleWorker() *testWorker {
	m := metric.New(prometheus.NewRegistry())
	e := &env.Environment{
		Health:    health.NewTracker(watch.New(nil, decide.Manager, func(queue.Key) {}), nil, func() int { return 0 }),
		Manifests: decide.NewReader(), Manager: decide.Manager, Mapper: kinds.NewCache(meta.NewDefaultRESTMapper(nil), time.Now), Metrics: m, Status: status.NewWriter(nil, nil, m),
		Events: &event.Recorder{Recorder: &events.FakeRecorder{}, Limiter: rate.NewLimiter(0, 0)}, Now: time.Now,
		Queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[queue.Key]()),
	}
	r := registry.New(e, 0)

	return &testWorker{Environment: e, Registry: r, Loader: &load.Loader{Environment: e, Selector: labels.Everything()}, Worker: &Worker{Environment: e, Registry: r}}
}

// swap replaces the view of a composition.
func (w *testWorker) swap(name types.NamespacedName, v *model.Composition) { w.Put(name, v) }

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
