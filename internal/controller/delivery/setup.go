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
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/delivery/pruning"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/internal/ownership"
)

// What is done about fields that other field managers own and that must be removed.
const (
	MigrationOff    = decide.MigrationOff
	MigrationReport = decide.MigrationReport
	MigrationOn     = decide.MigrationOn
)

// What is done about objects that other clients change after they were delivered.
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

// A Filter says which resources are delivered.
type Filter = decide.Filter

// ParseFilter reads a CEL expression about self, a manifest, and composition.
func ParseFilter(expression string) (*Filter, error) { return decide.NewFilter(expression) }

// A Deliverer delivers the current syntheses of all compositions.
type Deliverer struct {
	*environment
	*registry
	*loader
	*worker

	// objects watches what is delivered.
	objects *watches
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
		WatchesRawSource(source.Func(d.requeues)).
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
	m := NewMetrics(metrics.Registry)
	e := &environment{
		client: mgr.GetClient(), reader: mgr.GetAPIReader(), remote: remote, mapper: kinds, manifests: decide.NewReader(),
		status: newStatusWriter(mgr.GetClient(), mgr.GetAPIReader(), m), events: newEventRecorder(mgr.GetEventRecorder("arbor-delivery")),
		queue: newResourceQueue(o.Workers), metrics: m, now: time.Now,
		drift: o.Drift, manager: o.manager(), scope: o.Scope,
	}
	e.manifests.FailOpen, e.manifests.Scopes, e.manifests.Manager, e.manifests.Readiness = o.FailOpen, e.scopeOf, o.manager(), o.Readiness
	d := newParts(e, o)
	d.migrator = ownership.New(remote, ownership.Options{Manager: o.manager(), Metrics: ownership.NewMetrics(metrics.Registry)})
	d.discovery, d.metadata = served, watching
	d.objects = newWatches(watching, e.manager, func(k key) { e.queue.Add(k) })
	d.watches = d.objects
	e.health = newHealthTracker(d.objects, d.readForHealth, e.queue.Len)
	m.workers.Set(float64(o.Workers))
	m.queued, m.unwritten, m.pruneBlocked, m.forbidden, m.unhealthy = e.queue.Len, e.status.depth, d.countBlocked, d.countForbidden, e.health.unhealthy

	return d, nil
}

// newParts returns a Deliverer of an environment.
func newParts(e *environment, o Options) *Deliverer {
	r := newRegistry(e, o.UnreadableGrace)
	l := &loader{environment: e, selector: o.Selector, filter: o.Filter, pruneGuard: o.PruneGuard, defaultAccount: o.DefaultAccount}
	if l.selector == nil {
		l.selector = labels.Everything()
	}

	return &Deliverer{
		environment: e, registry: r, loader: l,
		worker:  &worker{environment: e, registry: r, migration: o.Migration, forbiddenGrace: o.ForbiddenGrace},
		workers: o.Workers, healthTimeout: o.HealthTimeout,
	}
}

// run works until ctx ends.
func (d *Deliverer) run(ctx context.Context) error {
	d.objects.start(ctx)
	var all sync.WaitGroup
	all.Go(func() { d.status.run(ctx) })
	all.Go(func() { d.health.run(ctx, d.reportHealth) })
	for range d.workers {
		all.Go(func() { d.work(ctx) })
	}
	<-ctx.Done()
	d.queue.ShutDown()
	all.Wait()

	return nil
}
