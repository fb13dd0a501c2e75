package synthesis

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	deliveryrules "github.com/arbor-control/arbor/internal/decide/delivery"
	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/executor"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/internal/synthesis"
)

const (
	// reconcilers is how many compositions are reconciled at once.
	reconcilers = 8
	// orphanPoll is how often slices without owner reference are read.
	orphanPoll = 2 * time.Second
)

// Options of the part.
type Options struct {
	// Executor runs programs; nil if none are run here. Pods is whether they are run in pods
	// instead. If neither is set, Disabled is the reason.
	Executor executor.Executor
	Pods     bool
	Disabled string
	// Timeout of a synthesis, and Startup how long its pod may take to run, if it has one.
	Timeout, Startup time.Duration
	// Concurrency is how many syntheses are in flight at most, Cooldown the time
	// between two of a rollout.
	Concurrency int
	Cooldown    time.Duration
	// MaxFailures is how many compositions may fail before a rollout halts, 0 for any number.
	MaxFailures int
	// Namespace is the one that the manager is about, "" for all.
	Namespace string
	// StuckAfter is how long a composition may be reconciling before it counts as stuck.
	StuckAfter time.Duration
	// HistoryLimit is how many syntheses before the previous one are kept.
	HistoryLimit int
	// Rules are those between tenants.
	Rules tenancy.Rules
}

// A Reconciler keeps the status of compositions true, and clears up after them.
type Reconciler struct {
	client  client.Client
	reader  client.Reader
	inputs  *inputs
	worker  *Worker
	options Options
	now     func() time.Time
	lost    lostSlices
}

// SetupWithManager starts everything with the manager.
func SetupWithManager(mgr ctrl.Manager, o Options, m *Metrics) error {
	if err := index(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	m.census.of(mgr, o.StuckAfter)
	m.free.Set(float64(o.Concurrency)) // until the first reconciliation, nothing is in flight
	in, err := newInputs(mgr, o.Rules)
	if err != nil {
		return err
	}
	w := &Worker{
		runner: &synthesis.Runner{
			Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Mapper: mgr.GetRESTMapper(), Executor: o.Executor, Manifests: deliveryrules.NewReader(), Timeout: o.Timeout, Now: time.Now,
			HistoryLimit: o.HistoryLimit, Rules: o.Rules,
		},
		pods: o.Pods, recorder: mgr.GetEventRecorder("arbor-synthesis"), metrics: m, now: time.Now, flights: map[types.UID]*flight{},
	}
	if err := mgr.Add(w); err != nil {
		return fmt.Errorf("cannot add the worker: %w", err)
	}
	s := &Scheduler{
		client: mgr.GetClient(), worker: w, metrics: m, now: time.Now,
		limits: decide.Limits{Concurrency: o.Concurrency, Cooldown: o.Cooldown, MaxFailures: o.MaxFailures, Scope: o.Namespace, Rules: o.Rules}, recorder: w.recorder, ledger: decide.NewLedger(), since: map[types.UID]time.Time{},
	}
	if err := s.setup(mgr); err != nil {
		return fmt.Errorf("cannot set up the scheduler: %w", err)
	}
	r := &Reconciler{client: mgr.GetClient(), reader: mgr.GetAPIReader(), inputs: in, worker: w, options: o, now: time.Now}

	return ctrl.NewControllerManagedBy(mgr).
		Named("synthesis").
		For(&enov1.Composition{}).
		Watches(&enov1.Composition{}, handler.EnqueueRequestsFromMapFunc(r.neighborsOf)).
		Watches(&enov1.Synthesizer{}, handler.EnqueueRequestsFromMapFunc(r.usersOf)).
		Watches(&enov1.ResourceSlice{}, handler.EnqueueRequestsFromMapFunc(compositionOf)).
		Watches(&enov1.Symphony{}, handler.EnqueueRequestsFromMapFunc(r.membersOf), builder.WithPredicates(gone)).
		WatchesRawSource(source.Func(in.source)).
		WithOptions(controller.Options{MaxConcurrentReconciles: reconcilers}).
		Complete(kube.Patient(r))
}

// Reconcile reconciles one composition.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	c := &enov1.Composition{}
	if err := r.client.Get(ctx, request.NamespacedName, c); apierrors.IsNotFound(err) {
		r.worker.forget(request.NamespacedName)
		r.lost.since(request.NamespacedName, false, time.Time{})

		return reconcile.Result{}, r.forget(ctx, request.NamespacedName)
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot read Composition %s: %w", request, err)
	}
	if c.DeletionTimestamp == nil && !slices.Contains(c.Finalizers, enov1.Finalizer) {
		return reconcile.Result{}, r.finalizer(ctx, c, controllerutil.AddFinalizer)
	}
	all, err := r.slices(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	orphans, err := r.orphans(ctx, c)
	if err != nil {
		return reconcile.Result{}, err
	}

	return r.look(ctx, c, all, orphans)
}

// look decides about a composition and its slices, and does it.
func (r *Reconciler) look(ctx context.Context, c *enov1.Composition, all, orphans []*enov1.ResourceSlice) (reconcile.Result, error) {
	all = append(all, orphans...)
	v, again, err := r.gather(ctx, c, all)
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(orphans) > 0 && (again == 0 || again > orphanPoll) {
		again = orphanPoll // nothing maps changes of them to the composition
	}

	find := &finder{ctx: ctx, client: r.client}
	v.Find = find.composition
	d := decide.Look(v, r.now())
	if find.err != nil {
		return reconcile.Result{}, find.err
	}

	if err := r.apply(ctx, v, d, all); err != nil {
		return reconcile.Result{}, err
	}
	if !d.Next.IsZero() && (again == 0 || d.Next.Sub(r.now()) < again) {
		again = max(d.Next.Sub(r.now()), gathering)
	}

	return reconcile.Result{RequeueAfter: again}, nil
}

// gather reads everything that is decided on, and returns after how long to requeue.
func (r *Reconciler) gather(ctx context.Context, c *enov1.Composition, all []*enov1.ResourceSlice) (decide.View, time.Duration, error) {
	v := decide.View{Composition: c, Refusal: r.options.Disabled, Timeout: r.options.Timeout, Startup: r.options.Startup, HistoryLimit: r.options.HistoryLimit, Scope: r.options.Namespace, Rules: r.options.Rules}
	var (
		again time.Duration
		err   error
	)
	s := &enov1.Synthesizer{}
	if err = r.client.Get(ctx, client.ObjectKey{Name: c.Spec.Synthesizer.Name}, s); err == nil {
		v.Synthesizer = s
		v.Inputs, again, err = r.inputs.look(ctx, c, s)
	}
	if client.IgnoreNotFound(err) != nil {
		return v, 0, fmt.Errorf("cannot read the inputs of Composition %s/%s: %w", c.Namespace, c.Name, err)
	}
	if c.DeletionTimestamp != nil {
		if v.Dependents, err = r.dependents(ctx, c); err != nil {
			return v, 0, err
		}
		if v.SymphonyGone, err = r.symphonyGone(ctx, c); err != nil {
			return v, 0, err
		}
	}
	v.Current, v.Rejected, err = r.current(ctx, c, all)
	v.LostSince = r.lost.since(client.ObjectKeyFromObject(c), slices.Contains(v.Current, nil), r.now())
	v.Mine = r.worker.runs(c, decide.Measure(v.Current))

	return v, again, err
}

// current returns the slices of the current synthesis, nil for those that are lost, and why those
// are lost that exist.
func (r *Reconciler) current(ctx context.Context, c *enov1.Composition, all []*enov1.ResourceSlice) (current []*enov1.ResourceSlice, rejected []string, err error) {
	if c.Status.CurrentSynthesis == nil {
		return nil, nil, nil
	}
	for _, ref := range c.Status.CurrentSynthesis.ResourceSlices {
		s, err := r.slice(ctx, c, ref, all)
		if err != nil {
			return nil, nil, err
		}
		if s != nil {
			if problem := tenancy.SliceProblem(c, ref, s, digestOf(s)); problem != "" {
				s, rejected = nil, append(rejected, problem)
			}
		}
		current = append(current, s)
	}

	return current, rejected, nil
}

// slice returns a slice as the cache would, nil if it does not exist. The cache may have seen the
// composition and not yet its slices.
func (r *Reconciler) slice(ctx context.Context, c *enov1.Composition, ref *enov1.ResourceSliceRef, all []*enov1.ResourceSlice) (*enov1.ResourceSlice, error) {
	if i := slices.IndexFunc(all, func(s *enov1.ResourceSlice) bool { return s.Name == ref.Name }); i >= 0 {
		return all[i], nil
	}
	s := &enov1.ResourceSlice{}
	if err := r.reader.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: ref.Name}, s); apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // not existing is an answer
	} else if err != nil {
		return nil, fmt.Errorf("cannot read ResourceSlice %s/%s: %w", c.Namespace, ref.Name, err)
	}
	_, err := Slim(s)

	return s, err
}

// slices lists those that a composition of this name owns, or owned.
func (r *Reconciler) slices(ctx context.Context, key types.NamespacedName) ([]*enov1.ResourceSlice, error) {
	list := &enov1.ResourceSliceList{}
	if err := r.client.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{byOwner: key.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list ResourceSlices: %w", err)
	}
	all := make([]*enov1.ResourceSlice, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}

	return all, nil
}

// orphans lists the slices of a composition that is being deleted that have lost their
// owner reference: with --cascade=orphan, the garbage collector removes it.
func (r *Reconciler) orphans(ctx context.Context, c *enov1.Composition) ([]*enov1.ResourceSlice, error) {
	if c.DeletionTimestamp == nil {
		return nil, nil
	}
	list := &enov1.ResourceSliceList{}
	if err := r.client.List(ctx, list, client.InNamespace(c.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list ResourceSlices: %w", err)
	}
	var all []*enov1.ResourceSlice
	for i := range list.Items {
		if s := &list.Items[i]; owner(s) == nil && decide.Knows(&c.Status, s) {
			all = append(all, s)
		}
	}

	return all, nil
}

func (r *Reconciler) dependents(ctx context.Context, c *enov1.Composition) ([]*enov1.Composition, error) {
	list := &enov1.CompositionList{}
	if err := r.client.List(ctx, list, client.MatchingFields{byDependency: client.ObjectKeyFromObject(c).String()}); err != nil {
		return nil, fmt.Errorf("cannot list Compositions: %w", err)
	}
	all := make([]*enov1.Composition, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}

	return all, nil
}

// apply does what was decided.
func (r *Reconciler) apply(ctx context.Context, v decide.View, d decide.Decision, all []*enov1.ResourceSlice) error {
	c := v.Composition.DeepCopy()
	before := c.Status
	c.Status = d.Status
	if d.Canceled {
		r.worker.stop(c.UID)
	}
	wrote, err := kube.WriteStatus(ctx, r.client, c, before, c.Status)
	if err != nil {
		return err
	}
	if wrote {
		return nil // the event of the write requeues it
	}
	if d.Release {
		r.reportLost(v)

		return r.release(ctx, c, all)
	}
	if err := r.heal(ctx, v); err != nil {
		return err
	}

	return r.collect(ctx, c, all)
}
