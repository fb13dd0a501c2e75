package delivery

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/env"
	"github.com/arbor-control/arbor/internal/controller/delivery/event"
	"github.com/arbor-control/arbor/internal/controller/delivery/health"
	"github.com/arbor-control/arbor/internal/controller/delivery/kinds"
	"github.com/arbor-control/arbor/internal/controller/delivery/metric"
	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	"github.com/arbor-control/arbor/internal/controller/delivery/status"
	"github.com/arbor-control/arbor/internal/controller/delivery/watch"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// idle is a Deliverer that talks to no server.
func idle() *Deliverer {
	m := metric.New(prometheus.NewRegistry())

	d := newParts(&env.Environment{
		Health:    health.NewTracker(watch.New(nil, decide.Manager, func(queue.Key) {}), nil, func() int { return 0 }),
		Manifests: decide.NewReader(), Manager: decide.Manager, Mapper: kinds.NewCache(meta.NewDefaultRESTMapper(nil), time.Now), Metrics: m, Status: status.NewWriter(nil, nil, m),
		Events: &event.Recorder{Recorder: &events.FakeRecorder{}, Limiter: rate.NewLimiter(0, 0)}, Now: time.Now,
		Queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[queue.Key]()),
	}, Options{})

	return d
}

// exampleManifest is that of a ConfigMap.
const exampleManifest = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"},"data":{"a":"b"}}`

// tenantComposition is a composition of a namespace that is delivered as the account deployer, with a
// ConfigMap of namespace a, or the tombstone of one.
func tenantComposition(namespace string, deleted bool) (*enov1.Composition, []enov1.ResourceSlice) {
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c", UID: types.UID(namespace), ResourceVersion: "5"}, Spec: enov1.CompositionSpec{ServiceAccountName: "deployer"}}
	c.Status.CurrentSynthesis = &enov1.Synthesis{UUID: "1", ResourceSlices: []*enov1.ResourceSliceRef{{Name: "s"}}}

	return c, []enov1.ResourceSlice{{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s"}, Spec: enov1.ResourceSliceSpec{Resources: []enov1.Manifest{
		{Manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"a"}}`, Deleted: deleted},
	}}}}
}
