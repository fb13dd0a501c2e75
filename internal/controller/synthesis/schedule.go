package synthesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/events"
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

// gathering is how long the scheduler waits for more changes before it plans.
const gathering = 20 * time.Millisecond

// A Scheduler begins syntheses.
type Scheduler struct {
	client  client.Client
	worker  *Worker
	metrics *Metrics
	limits  decide.Limits
	now     func() time.Time
	// recorder records events on Synthesizers.
	recorder events.EventRecorder
	// ledger has all compositions and Synthesizers, as the events and this Scheduler's own writes
	// show them. loaded is whether it was filled from the cache.
	ledger *decide.Ledger
	loaded bool
	// since is when compositions began to wait for their turn.
	since map[types.UID]time.Time

	mu sync.Mutex
	// events are changes that the ledger does not have yet, in their order.
	events []func(*decide.Ledger)
}

func (s *Scheduler) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("synthesis-scheduler").
		Watches(&enov1.Composition{}, s.changes()).
		Watches(&enov1.Synthesizer{}, s.changes()).
		Complete(kube.Patient(s))
}

// changes records what happens, and maps it to the single request of the scheduler.
func (s *Scheduler) changes() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	record := func(q queue, change func(*decide.Ledger)) {
		s.mu.Lock()
		s.events = append(s.events, change)
		s.mu.Unlock()
		q.AddAfter(reconcile.Request{}, gathering)
	}

	return handler.Funcs{
		CreateFunc:  func(_ context.Context, e event.CreateEvent, q queue) { record(q, set(e.Object)) },
		UpdateFunc:  func(_ context.Context, e event.UpdateEvent, q queue) { record(q, set(e.ObjectNew)) },
		DeleteFunc:  func(_ context.Context, e event.DeleteEvent, q queue) { record(q, remove(e.Object)) },
		GenericFunc: func(_ context.Context, e event.GenericEvent, q queue) { record(q, set(e.Object)) },
	}
}

// set enters an object of the cache into the ledger.
func set(o client.Object) func(*decide.Ledger) {
	return func(l *decide.Ledger) {
		switch o := o.(type) {
		case *enov1.Composition:
			l.Set(o)
		case *enov1.Synthesizer:
			l.SetSynthesizer(o)
		}
	}
}

// remove takes an object out of the ledger that is gone.
func remove(o client.Object) func(*decide.Ledger) {
	return func(l *decide.Ledger) {
		switch o := o.(type) {
		case *enov1.Composition:
			l.Remove(o.Namespace, o.Name, o.UID)
		case *enov1.Synthesizer:
			l.RemoveSynthesizer(o.Name)
		}
	}
}

// Reconcile begins the syntheses whose turn it is. There is one of it at a time.
func (s *Scheduler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	began := s.now()
	defer func() { s.metrics.latency.Observe(s.now().Sub(began).Seconds()) }()
	if err := s.catchUp(ctx); err != nil {
		return reconcile.Result{}, err
	}
	plan := s.ledger.Plan(s.limits, s.now())
	s.metrics.free.Set(float64(plan.Free))
	s.wait(plan)
	if err := errors.Join(s.beginAll(ctx, plan.Begin), s.report(ctx, plan.Halts)); err != nil {
		return reconcile.Result{}, err
	}
	if plan.Next.IsZero() {
		return reconcile.Result{}, nil
	}

	return reconcile.Result{RequeueAfter: max(plan.Next.Sub(s.now()), gathering)}, nil
}

// catchUp enters what has happened into the ledger. The first time, everything is listed:
// what is in flight must be known before anything is begun.
func (s *Scheduler) catchUp(ctx context.Context) error {
	s.mu.Lock()
	events := s.events
	s.events = nil
	s.mu.Unlock()
	if !s.loaded {
		if err := s.load(ctx); err != nil {
			s.mu.Lock()
			s.events = append(events, s.events...)
			s.mu.Unlock()

			return err
		}
		s.loaded = true
	}
	for _, change := range events {
		change(s.ledger)
	}

	return nil
}

// load fills the ledger from the cache.
func (s *Scheduler) load(ctx context.Context) error {
	compositions, synthesizers := &enov1.CompositionList{}, &enov1.SynthesizerList{}
	if err := s.client.List(ctx, compositions, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("cannot list Compositions: %w", err)
	}
	if err := s.client.List(ctx, synthesizers, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("cannot list Synthesizers: %w", err)
	}
	for i := range synthesizers.Items {
		s.ledger.SetSynthesizer(&synthesizers.Items[i])
	}
	for i := range compositions.Items {
		s.ledger.Set(&compositions.Items[i])
	}

	return nil
}

// wait records since when compositions wait. One that cannot be started now, because another writer
// was faster, continues to wait.
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

// beginAll starts syntheses. A composition that another client wrote first does not prevent the
// rest from starting.
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
		return nil // the reconciler reports why
	}
	c := start.Composition.DeepCopy()
	c.Status = decide.Begin(start, string(uuid.NewUUID()), s.now())
	if err := s.client.Status().Update(ctx, c); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("cannot begin a synthesis of Composition %s/%s: %w", c.Namespace, c.Name, err))
	}
	s.ledger.Set(c) // else the next plan would find the same slot
	if !decide.Running(&start.Composition.Status) {
		s.ledger.Served(c.Namespace)
	}
	s.metrics.started(start.Wish.Cause, s.now().Sub(s.since[c.UID]))
	delete(s.since, c.UID)
	var synthesizer *enov1.Synthesizer
	if start.Synthesizer != nil {
		synthesizer = start.Synthesizer.DeepCopy()
	}
	s.worker.launch(ctx, start.Composition, c.DeepCopy(), synthesizer)

	return nil
}
