package scheduler

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerserverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/features"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/internal/scheduler/backoff"
	"github.com/arbor-control/arbor/internal/scheduler/binding"
	"github.com/arbor-control/arbor/internal/scheduler/eviction"
	"github.com/arbor-control/arbor/internal/scheduler/gangmetrics"
	"github.com/arbor-control/arbor/internal/scheduler/gate"
	"github.com/arbor-control/arbor/internal/scheduler/placement"
	"github.com/arbor-control/arbor/internal/scheduler/plainpreemption"
	"github.com/arbor-control/arbor/internal/scheduler/podgroups"
	"github.com/arbor-control/arbor/internal/scheduler/preempt"
	"github.com/arbor-control/arbor/internal/scheduler/profiles"
	"github.com/arbor-control/arbor/internal/scheduler/report"
	"github.com/arbor-control/arbor/internal/scheduler/reservation"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
	"github.com/arbor-control/arbor/internal/scheduler/stale"
	"github.com/arbor-control/arbor/internal/scheduler/worker"
)

// A Scheduler is kube-scheduler and what it needs for gangs.
type Scheduler struct {
	kube     *kubescheduler.Scheduler
	snapshot *internalcache.Snapshot
	fitters  map[string]*placement.Fitter // by profile, for the goroutine that places pods
	options  *settings.Options
	rules    gang.Rules
	groups   *podgroups.Index

	gates        *gate.Gates
	backOffs     *backoff.BackOffs
	unprepared   *backoff.Unprepared
	reservations *reservation.Reservations
	reporter     *report.Reporter
	trial        *placement.Trial
	preemptor    *preempt.Preemptor
	staleness    *stale.Staleness
	evictor      *eviction.Evictor
	// early wakes gangs that were tried without all members.
	early *backoff.EarlyWakes
	// groupsRead is closed when all PodGroups have been read once.
	groupsRead chan struct{}

	// rounds are the gangs that are being bound.
	rounds *binding.Rounds
	binder *binding.Binder
}

// setup is that of kube-scheduler, with the gang plugin in every profile.
func setup(ctx context.Context, kube *options.Options, o *settings.Options) (*schedulerserverconfig.CompletedConfig, *Scheduler, error) {
	if err := checkGates(); err != nil {
		return nil, nil, err
	}
	defaults, err := latest.Default()
	if err != nil {
		return nil, nil, err
	}
	defaults.LeaderElection.ResourceName = settings.Name
	kube.ComponentConfig = defaults
	if errs := kube.Validate(); len(errs) > 0 {
		return nil, nil, utilerrors.NewAggregate(errs)
	}
	c, err := kube.Config(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := fenced(c); err != nil {
		return nil, nil, err
	}
	if kube.ConfigFile == "" {
		c.ComponentConfig.Profiles = profiles.Named(c.ComponentConfig.Profiles[0], o.Names)
	}
	for i := range c.ComponentConfig.Profiles {
		profiles.Enable(&c.ComponentConfig.Profiles[i])
	}
	completed := c.Complete()

	s := &Scheduler{options: o, rules: o.Rules()}
	if err := s.build(ctx, &completed); err != nil {
		return nil, nil, err
	}

	return &completed, s, nil
}

// build makes the scheduler, and puts the gangs into it.
func (s *Scheduler) build(ctx context.Context, c *schedulerserverconfig.CompletedConfig) error {
	var err error
	if s.groups, err = podgroups.New(c.KubeConfig, c.Client, c.InformerFactory, s.rules); err != nil {
		return err
	}
	s.groups.OnStay = s.onStay
	s.gates, s.backOffs, s.rounds, s.early = gate.New(s.groups, s.wake), backoff.New(s.wake, s.groups.Exists), binding.NewRounds(s.wake), backoff.NewEarlyWakes(s.wake)
	s.unprepared = backoff.NewUnprepared(s.groups.Exists)
	cfg := &c.ComponentConfig
	s.kube, err = kubescheduler.New(ctx, c.Client, c.InformerFactory, c.DynInformerFactory,
		func(name string) events.EventRecorderLogger { return c.EventBroadcaster.NewRecorder(name) },
		kubescheduler.WithComponentConfigVersion(cfg.APIVersion),
		kubescheduler.WithKubeConfig(c.KubeConfig),
		kubescheduler.WithProfiles(cfg.Profiles...),
		kubescheduler.WithPercentageOfNodesToScore(cfg.PercentageOfNodesToScore),
		kubescheduler.WithFrameworkOutOfTreeRegistry(s.plugins()),
		kubescheduler.WithPodMaxBackoffSeconds(cfg.PodMaxBackoffSeconds),
		kubescheduler.WithPodInitialBackoffSeconds(cfg.PodInitialBackoffSeconds),
		kubescheduler.WithPodMaxInUnschedulablePodsDuration(c.PodMaxInUnschedulablePodsDuration),
		kubescheduler.WithExtenders(cfg.Extenders...),
		kubescheduler.WithParallelism(cfg.Parallelism),
	)
	if err != nil {
		return err
	}
	if s.snapshot, err = assume(s.kube); err != nil {
		return err
	}
	s.fitters = map[string]*placement.Fitter{}
	s.reservations = reservation.New(s.kube.SchedulingQueue)
	for name, fw := range s.kube.Profiles {
		fw.SetPodNominator(s.reservations)
		s.fitters[name] = placement.NewFitter(fw, s.snapshot, profiles.PercentOf(cfg), s.reservations.On)
		if err := s.reservations.Check(fw); err != nil {
			return err
		}
	}
	s.kube.NextPod = s.next(ctx)

	if s.trial, err = placement.NewTrial(ctx, c.Client, c.KubeConfig, c.InformerFactory, cfg, s.plugins()); err != nil {
		return err
	}
	s.trial.SetNominated(func(node string, trying *types.NamespacedName) []fwk.PodInfo {
		return s.reservations.Onto(s.kube.SchedulingQueue.NominatedPodsForNode(node), node, trying)
	})
	worker.CountPanics()
	s.assemble(c.EventBroadcaster.NewRecorder(settings.Name), c.InformerFactory.Policy().V1().PodDisruptionBudgets().Lister())

	return nil
}

// assemble makes the workers of gangs.
func (s *Scheduler) assemble(recorder events.EventRecorder, budgets policylisters.PodDisruptionBudgetLister) {
	s.reporter = report.New(s.groups, recorder, s.answers, s.rounds.Status)
	s.evictor = eviction.New(s.kube, s.groups, recorder)
	s.staleness = stale.New(s.groups, s.evictor, s.answers, s.options.StaleGrace)
	s.preemptor = preempt.New(preempt.Deps{
		Kube: s.kube, Snapshot: s.snapshot, Options: s.options, Groups: s.groups, Trial: s.trial, Reservations: s.reservations,
		Reporter: s.reporter, Evictor: s.evictor, BackOffs: s.backOffs, Unprepared: s.unprepared, Budgets: budgets, Answers: s.answers, Wake: s.wake,
	})
	s.binder = binding.NewBinder(binding.Deps{
		Kube: s.kube, Groups: s.groups, BackOffs: s.backOffs, Unprepared: s.unprepared, Timeout: s.options.BindTimeout,
		Preemptor: s.preemptor, Reporter: s.reporter, PutBack: s.putBack, Activate: s.activate,
		Reserved: func(key types.NamespacedName) bool { return s.reservations.Of(key) != nil },
	}, s.rounds)
}

// start begins to read the PodGroups, next to what kube-scheduler reads. It writes
// nothing: see lead.
func (s *Scheduler) start(ctx context.Context) error {
	if err := s.watch(); err != nil {
		return err
	}
	s.groupsRead = make(chan struct{})
	go func() {
		defer close(s.groupsRead)
		if err := s.groups.Start(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot read PodGroups")
		}
		gangmetrics.Reached(gangmetrics.PhaseGroupsSynced)
		go s.groups.CountWaiting(ctx)
	}()

	return nil
}

// lead begins to write: status, reservations and evictions. Replicas that do not lead
// follow all events, and leave that to the one that does.
func (s *Scheduler) lead(ctx context.Context) {
	go s.reporter.Run(ctx)
	go s.preemptor.Run(ctx)
	go s.staleness.Run(ctx)
	go s.gates.Backstop(ctx)
}

// plugins are the plugins that profiles have beyond those of kube-scheduler.
func (s *Scheduler) plugins() frameworkruntime.Registry {
	return frameworkruntime.Registry{profiles.Gang: gate.NewPlugin(s.groups, s.gates, s.backOffs), profiles.Preemption: plainpreemption.New(s.groups), profiles.Packing: placement.NewPacking}
}

// assume checks what the gangs rely on and no signature promises: that the
// snapshot in which SchedulePod looks for nodes is the one that the framework
// hands out, in every profile.
func assume(kube *kubescheduler.Scheduler) (*internalcache.Snapshot, error) {
	var snapshot *internalcache.Snapshot
	for name, fw := range kube.Profiles {
		found, ok := fw.SnapshotSharedLister().(*internalcache.Snapshot)
		if !ok || (snapshot != nil && found != snapshot) {
			return nil, fmt.Errorf("profile %s: the framework's snapshot is a %T, not the scheduler's: this release of Kubernetes is not the one that Arbor was built for", name, fw.SnapshotSharedLister())
		}
		snapshot = found
	}
	if kube.NextPod == nil || kube.SchedulingQueue == nil || kube.Cache == nil {
		return nil, errors.New("the scheduler has no queue or no cache: this release of Kubernetes is not the one that Arbor was built for")
	}

	return snapshot, nil
}

// checkGates refuses feature gates that change how pods are bound.
func checkGates() error {
	if utilfeature.DefaultFeatureGate.Enabled(features.SchedulerAsyncAPICalls) {
		return fmt.Errorf("feature gate %s is enabled: Arbor binds the pods of a gang itself; remove it from --feature-gates", features.SchedulerAsyncAPICalls)
	}

	return nil
}
