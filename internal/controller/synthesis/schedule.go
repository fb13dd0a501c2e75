package synthesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/kube"
)

// gathering is how long the scheduler waits for more to happen before it looks at
// all compositions.
const gathering = 20 * time.Millisecond

// A Scheduler begins syntheses.
type Scheduler struct {
	client  client.Client
	worker  *Worker
	metrics *Metrics
	limits  decide.Limits
	now     func() time.Time
	// ahead are compositions as they were written here, until the cache has them.
	ahead map[types.UID]written
	// since is when compositions began to wait for their turn.
	since map[types.UID]time.Time
}

// written is a composition and the version that it replaced.
type written struct {
	replaced string
	now      *enov1.Composition
}

func (s *Scheduler) setup(mgr ctrl.Manager) error {
	soon := everything()

	return ctrl.NewControllerManagedBy(mgr).
		Named("synthesis-scheduler").
		Watches(&enov1.Composition{}, soon).
		Watches(&enov1.Synthesizer{}, soon).
		Complete(kube.Patient(s))
}

// everything maps whatever happens to the one thing that there is to do.
func everything() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(q queue) { q.AddAfter(reconcile.Request{}, gathering) }

	return handler.Funcs{
		CreateFunc:  func(_ context.Context, _ event.CreateEvent, q queue) { enqueue(q) },
		UpdateFunc:  func(_ context.Context, _ event.UpdateEvent, q queue) { enqueue(q) },
		DeleteFunc:  func(_ context.Context, _ event.DeleteEvent, q queue) { enqueue(q) },
		GenericFunc: func(_ context.Context, _ event.GenericEvent, q queue) { enqueue(q) },
	}
}

// Reconcile begins the syntheses whose turn it is. There is one of it at a time.
func (s *Scheduler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	began := s.now()
	defer func() { s.metrics.latency.Observe(s.now().Sub(began).Seconds()) }()
	all, synthesizers, err := s.gather(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	plan := decide.Schedule(all, synthesizers, s.limits, s.now())
	s.metrics.free.Set(float64(plan.Free))
	s.wait(plan)
	if err := s.beginAll(ctx, plan.Begin); err != nil {
		return reconcile.Result{}, err
	}
	if plan.Next.IsZero() {
		return reconcile.Result{}, nil
	}

	return reconcile.Result{RequeueAfter: max(plan.Next.Sub(s.now()), gathering)}, nil
}

// gather lists everything, with what was written here in the place of what the
// cache has not seen yet: else one look after the other would find the same room.
func (s *Scheduler) gather(ctx context.Context) ([]*enov1.Composition, map[string]*enov1.Synthesizer, error) {
	compositions, synthesizers := &enov1.CompositionList{}, &enov1.SynthesizerList{}
	if err := s.client.List(ctx, compositions, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("cannot list Compositions: %w", err)
	}
	if err := s.client.List(ctx, synthesizers, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("cannot list Synthesizers: %w", err)
	}
	all := make([]*enov1.Composition, 0, len(compositions.Items))
	ahead := map[types.UID]written{}
	for i := range compositions.Items {
		c := &compositions.Items[i]
		if w, ok := s.ahead[c.UID]; ok && w.replaced == c.ResourceVersion {
			ahead[c.UID] = w
			c = w.now
		}
		all = append(all, c)
	}
	s.ahead = ahead
	known := make(map[string]*enov1.Synthesizer, len(synthesizers.Items))
	for i := range synthesizers.Items {
		known[synthesizers.Items[i].Name] = &synthesizers.Items[i]
	}

	return all, known, nil
}

// wait remembers who waits since when. Whoever cannot be begun now, because
// somebody else wrote first, goes on waiting.
func (s *Scheduler) wait(plan decide.Plan) {
	since, now := map[types.UID]time.Time{}, s.now()
	for _, start := range slices.Concat(plan.Waiting, plan.Begin) {
		uid := start.Composition.UID
		if since[uid] = s.since[uid]; since[uid].IsZero() {
			since[uid] = now
		}
	}
	s.since = since
}

// beginAll begins syntheses. Those of which somebody else wrote the composition
// first do not keep the others from beginning.
func (s *Scheduler) beginAll(ctx context.Context, all []decide.Start) error {
	var lost error
	for _, start := range all {
		err := s.begin(ctx, start)
		if err != nil && !kube.LostRace(err) {
			return err
		}
		lost = errors.Join(lost, err)
	}

	return lost
}

// begin writes that a synthesis is in flight, on condition that the composition
// is as it was read, and has it run.
func (s *Scheduler) begin(ctx context.Context, start decide.Start) error {
	if start.Wish.RollBackTo == "" && !s.worker.able() {
		return nil // the reconciler says why
	}
	before := start.Composition.ResourceVersion
	c := start.Composition.DeepCopy()
	c.Status = decide.Begin(start, string(uuid.NewUUID()), s.now())
	if err := s.client.Status().Update(ctx, c); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("cannot begin a synthesis of Composition %s/%s: %w", c.Namespace, c.Name, err))
	}
	s.ahead[c.UID] = written{before, c}
	s.metrics.started(start.Wish.Cause, s.now().Sub(s.since[c.UID]))
	delete(s.since, c.UID)
	var synthesizer *enov1.Synthesizer
	if start.Synthesizer != nil {
		synthesizer = start.Synthesizer.DeepCopy()
	}
	s.worker.launch(ctx, start.Composition, c.DeepCopy(), synthesizer)

	return nil
}
