package delivery

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/source"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/apply"
	"github.com/arbor-control/arbor/internal/controller/delivery/env"
	"github.com/arbor-control/arbor/internal/controller/delivery/event"
	"github.com/arbor-control/arbor/internal/controller/delivery/health"
	"github.com/arbor-control/arbor/internal/controller/delivery/load"
	"github.com/arbor-control/arbor/internal/controller/delivery/metric"
	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	"github.com/arbor-control/arbor/internal/controller/delivery/registry"
	"github.com/arbor-control/arbor/internal/controller/delivery/status"
	"github.com/arbor-control/arbor/internal/controller/delivery/watch"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/delivery/pruning"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/internal/ownership"
)

// These are the ways to handle fields that other field managers own and that must be removed.
const (
	MigrationOff    = decide.MigrationOff
	MigrationReport = decide.MigrationReport
	MigrationOn     = decide.MigrationOn
)

// These are the ways to handle objects that other clients change after they were delivered.
const (
	DriftCorrect  = decide.DriftCorrect
	DriftReport   = decide.DriftReport
	DriftInterval = decide.DriftInterval
)

// loaders is how many compositions are read at a time.
const loaders = 4

// Options of the delivery.
type Options struct {
	// Remote is the cluster that is delivered to, nil for the one that the
	// compositions are in.
	Remote *rest.Config
	// Workers is how many resources are worked on at a time.
	Workers int
	// Migration is one of the constants.
	Migration string
	// Selector is of the compositions that are delivered, nil for all.
	Selector labels.Selector
	// Filter is of their resources, nil for all.
	Filter *Filter
	// PruneGuard stops syntheses that would delete too many objects.
	PruneGuard PruneGuard
	// UnreadableGrace is how long deletions wait for a composition that cannot be read.
	UnreadableGrace time.Duration
	// Drift is DriftCorrect, the default, DriftReport or DriftInterval.
	Drift string
	// Manager is the field manager that objects are applied as, "" for the default.
	Manager string
	// FailOpen passes over errors of manifests that do not set it.
	FailOpen bool
	// Readiness is that of manifests that do not set it: enov1.ReadinessEno, the default,
	// or enov1.ReadinessKstatus.
	Readiness string
	// HealthTimeout is how long an object may progress before it counts as degraded, 0 for
	// any time.
	HealthTimeout time.Duration
	// Scope is what compositions can reach. In tenancy.Namespace, their objects are written
	// as ServiceAccounts.
	Scope tenancy.Scope
	// DefaultAccount is the name of the ServiceAccount of compositions that name none.
	DefaultAccount string
	// ForbiddenGrace is how long objects that may not be deleted hold up a terminating
	// namespace.
	ForbiddenGrace time.Duration
}

func (o Options) manager() string { return cmp.Or(o.Manager, DefaultManager) }

// DefaultManager is the field manager that objects are applied as by default.
const DefaultManager = decide.Manager

// ValidateManager reports what is wrong with the name of a field manager.
func ValidateManager(name string) error { return decide.ValidateManager(name) }

// PruneGuardEmpty stops syntheses without manifests.
const PruneGuardEmpty = pruning.GuardEmpty

// A PruneGuard stops syntheses that would delete too many objects.
type PruneGuard = pruning.Guard

// ParsePruneGuard reads empty, off, or a percentage such as 50 or 50%.
func ParsePruneGuard(text string) (PruneGuard, error) { return pruning.ParseGuard(text) }

// A Filter selects the resources that are delivered.
type Filter = decide.Filter

// ParseFilter reads a CEL expression about self, a manifest, and composition.
func ParseFilter(expression string) (*Filter, error) { return decide.NewFilter(expression) }

// A Deliverer delivers the current syntheses of all compositions.
type Deliverer struct {
	*env.Environment
	*registry.Registry
	*load.Loader
	*apply.Worker

	// objects watches what is delivered.
	objects *watch.Watches
	workers int
	// healthTimeout is how long an object may progress, 0 for any time.
	healthTimeout time.Duration
}

// SetupWithManager starts it with the manager.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	d, err := newDeliverer(mgr, o)
	if err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(d.run)); err != nil {
		return err
	}

	return ctrl.NewControllerManagedBy(mgr).
		Named("delivery").
		For(&enov1.Composition{}).
		WatchesMetadata(&enov1.ResourceSlice{}, d.sliceHandler()).
		WatchesRawSource(source.Func(d.Requeues)).
		WithOptions(controller.Options{MaxConcurrentReconciles: loaders, RateLimiter: kube.NewLimiter()}).
		Complete(kube.Patient(d))
}

func newDeliverer(mgr ctrl.Manager, o Options) (*Deliverer, error) {
	config, hc := mgr.GetConfig(), mgr.GetHTTPClient()
	if o.Remote != nil {
		var err error
		if hc, err = rest.HTTPClientFor(o.Remote); err != nil {
			return nil, fmt.Errorf("cannot use the remote kubeconfig: %w", err)
		}
		config = o.Remote
	}
	remote, kinds, watching, served, err := clients(config, hc)
	if err != nil {
		return nil, err
	}
	if o.Scope.Restricts() {
		if remote, err = tenantClient(config, kinds); err != nil {
			return nil, err
		}
	}
	m := metric.New(metrics.Registry)
	e := &env.Environment{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Remote: remote, Mapper: kinds, Manifests: decide.NewReader(),
		Status: status.NewWriter(mgr.GetClient(), mgr.GetAPIReader(), m), Events: event.NewRecorder(mgr.GetEventRecorder("arbor-delivery")),
		Queue: queue.New(o.Workers), Metrics: m, Now: time.Now,
		Drift: o.Drift, Manager: o.manager(), Scope: o.Scope,
	}
	e.Manifests.FailOpen, e.Manifests.Scopes, e.Manifests.Manager, e.Manifests.Readiness = o.FailOpen, e.ScopeOf, o.manager(), o.Readiness
	d := newParts(e, o)
	d.Migrator = ownership.New(remote, ownership.Options{Manager: o.manager(), Metrics: ownership.NewMetrics(metrics.Registry)})
	d.Discovery, d.Metadata = served, watching
	d.objects = watch.New(watching, e.Manager, func(k queue.Key) { e.Queue.Add(k) })
	d.Watches = d.objects
	e.Health = health.NewTracker(d.objects, d.readForHealth, e.Queue.Len)
	m.Workers.Set(float64(o.Workers))
	m.Queued, m.Unwritten, m.PruneBlocked, m.Forbidden, m.Unhealthy = e.Queue.Len, e.Status.Depth, d.CountBlocked, d.CountForbidden, e.Health.Unhealthy

	return d, nil
}

// newParts returns a Deliverer of an environment.
func newParts(e *env.Environment, o Options) *Deliverer {
	r := registry.New(e, o.UnreadableGrace)
	l := &load.Loader{Environment: e, Selector: o.Selector, Filter: o.Filter, PruneGuard: o.PruneGuard, DefaultAccount: o.DefaultAccount}
	if l.Selector == nil {
		l.Selector = labels.Everything()
	}

	return &Deliverer{
		Environment: e, Registry: r, Loader: l,
		Worker:  &apply.Worker{Environment: e, Registry: r, Migration: o.Migration, ForbiddenGrace: o.ForbiddenGrace},
		workers: o.Workers, healthTimeout: o.HealthTimeout,
	}
}

// run works until ctx ends.
func (d *Deliverer) run(ctx context.Context) error {
	d.objects.Start(ctx)
	var all sync.WaitGroup
	all.Go(func() { d.Status.Run(ctx) })
	all.Go(func() { d.Health.Run(ctx, d.reportHealth) })
	for range d.workers {
		all.Go(func() { d.Run(ctx) })
	}
	<-ctx.Done()
	d.Queue.ShutDown()
	all.Wait()

	return nil
}
