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
)

// A Scheduler is kube-scheduler and what it needs for gangs.
type Scheduler struct {
	kube     *kubescheduler.Scheduler
	snapshot *internalcache.Snapshot
	fitters  map[string]*fitter // by profile, for the goroutine that places pods
	options  *Options
	rules    gang.Rules
	groups   *groups

	gates        *gates
	backOffs     *backOffs
	unprepared   *unprepared
	reservations *reservations
	reporter     *reporter
	trial        *trial
	preemptor    *preemptor
	staleness    *staleness
	evictor      *evictor
	// early wakes gangs that were tried without all members.
	early *earlyWakes
	// groupsRead is closed when all PodGroups have been read once.
	groupsRead chan struct{}

	// rounds are the gangs that are being bound.
	rounds *rounds
	binder *binder
}

// setup is that of kube-scheduler, with the gang plugin in every profile.
func setup(ctx context.Context, kube *options.Options, o *Options) (*schedulerserverconfig.CompletedConfig, *Scheduler, error) {
	if err := checkGates(); err != nil {
		return nil, nil, err
	}
	defaults, err := latest.Default()
	if err != nil {
		return nil, nil, err
	}
	defaults.LeaderElection.ResourceName = Name
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
		c.ComponentConfig.Profiles = named(c.ComponentConfig.Profiles[0], o.Names)
	}
	for i := range c.ComponentConfig.Profiles {
		enable(&c.ComponentConfig.Profiles[i])
	}
	completed := c.Complete()

	s := &Scheduler{options: o, rules: o.rules()}
	if err := s.build(ctx, &completed); err != nil {
		return nil, nil, err
	}

	return &completed, s, nil
}

// build makes the scheduler, and puts the gangs into it.
func (s *Scheduler) build(ctx context.Context, c *schedulerserverconfig.CompletedConfig) error {
	var err error
	if s.groups, err = newGroups(c.KubeConfig, c.Client, c.InformerFactory, s.rules); err != nil {
		return err
	}
	s.groups.stays = s.onStay
	s.gates, s.backOffs, s.rounds, s.early = newGates(s.groups, s.wake), newBackOffs(s.wake, s.groups.exists), newRounds(s.wake), newEarlyWakes(s.wake)
	s.unprepared = newUnprepared(s.groups.exists)
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
	s.fitters = map[string]*fitter{}
	s.reservations = newReservations(s.kube.SchedulingQueue)
	for name, fw := range s.kube.Profiles {
		fw.SetPodNominator(s.reservations)
		s.fitters[name] = &fitter{fw: fw, snapshot: s.snapshot, percent: percentOf(cfg), memos: newMemos(fw), reserved: s.reservations.on}
		if err := s.reservations.check(fw); err != nil {
			return err
		}
	}
	s.kube.NextPod = s.next(ctx)

	if s.trial, err = newTrial(ctx, c.Client, c.KubeConfig, c.InformerFactory, cfg, s.plugins()); err != nil {
		return err
	}
	s.trial.nominees.of = func(node string, trying *types.NamespacedName) []fwk.PodInfo {
		return s.reservations.state.Load().onto(s.kube.SchedulingQueue.NominatedPodsForNode(node), node, trying)
	}
	countPanics()
	s.assemble(c.EventBroadcaster.NewRecorder(Name), c.InformerFactory.Policy().V1().PodDisruptionBudgets().Lister())

	return nil
}

// assemble makes the workers of gangs.
func (s *Scheduler) assemble(recorder events.EventRecorder, budgets policylisters.PodDisruptionBudgetLister) {
	s.reporter = newReporter(s.groups, recorder, s.answers, s.rounds.status)
	s.evictor = newEvictor(s.kube, s.groups, recorder)
	s.staleness = newStaleness(s.groups, s.evictor, s.answers, s.options.StaleGrace)
	s.preemptor = newPreemptor(preemptorDeps{
		kube: s.kube, snapshot: s.snapshot, options: s.options, groups: s.groups, trial: s.trial, reservations: s.reservations,
		reporter: s.reporter, evictor: s.evictor, backOffs: s.backOffs, unprepared: s.unprepared, budgets: budgets, answers: s.answers, wake: s.wake,
	})
	s.binder = newBinder(binderDeps{
		kube: s.kube, groups: s.groups, backOffs: s.backOffs, unprepared: s.unprepared, timeout: s.options.BindTimeout,
		preemptor: s.preemptor, reporter: s.reporter, putBack: s.putBack, activate: s.activate,
		reserved: func(key types.NamespacedName) bool { return s.reservations.of(key) != nil },
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
		if err := s.groups.start(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot read PodGroups")
		}
		reached(phaseGroupsSynced)
		go s.groups.countWaiting(ctx)
	}()

	return nil
}

// lead begins to write: status, reservations and evictions. Replicas that do not lead
// follow all events, and leave that to the one that does.
func (s *Scheduler) lead(ctx context.Context) {
	go s.reporter.run(ctx)
	go s.preemptor.run(ctx)
	go s.staleness.run(ctx)
	go s.gates.backstop(ctx)
}

// plugins are the plugins that profiles have beyond those of kube-scheduler.
func (s *Scheduler) plugins() frameworkruntime.Registry {
	return frameworkruntime.Registry{pluginName: newPlugin(s.groups, s.gates, s.backOffs), preemptionName: newPlainPreemption(s.groups), packingName: newPacking}
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
