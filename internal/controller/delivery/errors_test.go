package delivery

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/controllertest"
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

// TestErrors has each request of the controller fail: while slices are read, their states written, and
// the conditions of a composition reported. Objects are applied by workers, which have their own tests.
func TestErrors(t *testing.T) {
	scheme := controllertest.Scheme(t, enov1.AddToScheme)
	composition := func(change func(*enov1.Composition)) *enov1.Composition {
		c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "c"}}
		c.Status.CurrentSynthesis = &enov1.Synthesis{UUID: "u", ResourceSlices: []*enov1.ResourceSliceRef{{Name: "a"}}}
		change(c)

		return c
	}
	slice := func(name string, manifests ...string) *enov1.ResourceSlice {
		s := &enov1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(composition(func(*enov1.Composition) {}), enov1.GroupVersion.WithKind(enov1.CompositionKind)),
		}}, Spec: enov1.ResourceSliceSpec{SynthesisUUID: "u"}}
		for _, m := range manifests {
			s.Spec.Resources = append(s.Spec.Resources, enov1.Manifest{Manifest: m})
		}

		return s
	}
	cases := map[string]struct {
		reason      string
		composition *enov1.Composition
	}{
		"Invalid":   {"What is wrong with manifests is written to their slices.", composition(func(*enov1.Composition) {})},
		"Suspended": {"The condition Suspended is written, too.", composition(func(c *enov1.Composition) { c.Annotations = map[string]string{enov1.AnnotationSuspend: "maintenance"} })},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			controllertest.Check(t, controllertest.Case{
				Scheme: scheme, Objects: []client.Object{tc.composition, slice("a", "not a manifest", "{")},
				Status:  []client.Object{&enov1.Composition{}, &enov1.ResourceSlice{}},
				Dropped: map[string]string{"patch status ResourceSlice": "a slice that was deleted is restored with its states when its deletion is seen"},
				New:     reconciles,
				Final: func() []client.ObjectList {
					return []client.ObjectList{&enov1.CompositionList{}, &enov1.ResourceSliceList{}}
				},
			})
		})
	}
}

// reconciles returns what reconciles composition n/c, and writes what there is to write.
func reconciles(s *controllertest.Server) controllertest.Step {
	m := metric.New(prometheus.NewRegistry())
	e := &env.Environment{
		Client: s, Reader: s, Manifests: decide.NewReader(), Manager: decide.Manager, Mapper: kinds.NewCache(s.RESTMapper(), time.Now), Metrics: m, Status: status.NewWriter(s, s, m),
		Health: health.NewTracker(watch.New(nil, decide.Manager, func(queue.Key) {}), nil, func() int { return 0 }),
		Events: &event.Recorder{Recorder: &events.FakeRecorder{}, Limiter: rate.NewLimiter(0, 0)}, Now: func() time.Time { return time.Unix(1_000_000, 0) },
		Queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[queue.Key]()),
	}
	d := newParts(e, Options{})
	requeued := &requeues{}
	var compositions workqueue.TypedRateLimitingInterface[reconcile.Request] = requeued
	e.Compositions.Store(&compositions)

	return func(ctx context.Context) (reconcile.Result, error) {
		result, err := d.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "n", Name: "c"}})
		if requeued.after > 0 {
			result.RequeueAfter, requeued.after = requeued.after, 0
		}
		// A status that cannot be written is written later.
		late := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			if e.Status.Depth() > 0 {
				e.Status.Flush(ctx)
			}

			return e.Status.Depth() == 0, nil
		})

		return result, errors.Join(err, late)
	}
}

// requeues remembers that a composition is reconciled again.
type requeues struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]

	after time.Duration
}

func (q *requeues) AddAfter(_ reconcile.Request, after time.Duration) { q.after = after }
