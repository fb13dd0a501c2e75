package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerserverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
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
	// cleanups has groups that may have the record of a reservation that has ended;
	// clears bounds how fast nominations are removed.
	cleanups workqueue.TypedRateLimitingInterface[types.NamespacedName]
	clears   flowcontrol.RateLimiter
	// early wakes gangs that were tried without all members.
	early *earlyWakes
	// groupsRead is closed when all PodGroups have been read once.
	groupsRead chan struct{}

	// rounds are the gangs that are being bound.
	rounds *rounds
	// binds has a slot for each request to bind that may be under way.
	binds *slots
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

	s := &Scheduler{options: o, rules: o.rules(), binds: newSlots(bindsAtOnce)}
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
	s.gates, s.backOffs, s.rounds, s.early = newGates(), newBackOffs(s.wake, s.groups.exists), newRounds(s.wake), newEarlyWakes(s.wake)
	s.unprepared = newUnprepared(s.groups.exists)
	s.cleanups = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]())
	s.clears = flowcontrol.NewTokenBucketRateLimiter(clearsPerSecond, clearsPerSecond)
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
	s.preemptor = newPreemptor(s, c.InformerFactory.Policy().V1().PodDisruptionBudgets().Lister())
	s.staleness = newStaleness(s)
	s.reporter = newReporter(s, c.Client, s.groups.rest, c.EventBroadcaster.NewRecorder(Name))

	return nil
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
		go s.countWaiting(ctx)
	}()

	return nil
}

// lead begins to write: status, reservations and evictions. Replicas that do not lead
// follow all events, and leave that to the one that does.
func (s *Scheduler) lead(ctx context.Context) {
	go s.reporter.run(ctx)
	go s.preemptor.run(ctx)
	go s.staleness.run(ctx)
	go s.backstop(ctx)
	go s.drain(ctx, workerCleanup, s.cleanups, s.cleanUp)
	context.AfterFunc(ctx, s.cleanups.ShutDown)
}

// percentOf is the percentageOfNodesToScore of profiles that have none, 0 if the number
// of nodes decides.
func percentOf(cfg *config.KubeSchedulerConfiguration) int32 {
	if cfg.PercentageOfNodesToScore == nil {
		return 0
	}

	return *cfg.PercentageOfNodesToScore
}

// named makes a profile for each name.
func named(p config.KubeSchedulerProfile, names []string) []config.KubeSchedulerProfile {
	profiles := make([]config.KubeSchedulerProfile, 0, len(names))
	for _, name := range names {
		c := *p.DeepCopy()
		c.SchedulerName = name
		packGPUs(&c)
		profiles = append(profiles, c)
	}

	return profiles
}

// plugins are the plugins that profiles have beyond those of kube-scheduler.
func (s *Scheduler) plugins() frameworkruntime.Registry {
	return frameworkruntime.Registry{pluginName: s.newPlugin, preemptionName: s.newPlainPreemption, packingName: newPacking}
}

// enable adds the plugins of Arbor to a profile: the gang plugin at PreEnqueue and
// as the only QueueSort plugin, and ArborPreemption wherever the profile names
// DefaultPreemption. Where the profile disables DefaultPreemption, ArborPreemption
// is disabled too, and it gets the arguments of DefaultPreemption.
func enable(p *config.KubeSchedulerProfile) {
	if p.Plugins == nil {
		p.Plugins = &config.Plugins{}
	}
	ours := config.Plugin{Name: pluginName}
	p.Plugins.QueueSort = config.PluginSet{Enabled: []config.Plugin{ours}, Disabled: []config.Plugin{{Name: "*"}}}
	if !slices.Contains(p.Plugins.PreEnqueue.Enabled, ours) {
		p.Plugins.PreEnqueue.Enabled = append(p.Plugins.PreEnqueue.Enabled, ours)
	}
	for _, set := range []*config.PluginSet{&p.Plugins.MultiPoint, &p.Plugins.PreEnqueue, &p.Plugins.PostFilter} {
		for _, list := range [][]config.Plugin{set.Enabled, set.Disabled} {
			for i := range list {
				replacePreemption(&list[i].Name)
			}
		}
	}
	for i := range p.PluginConfig {
		replacePreemption(&p.PluginConfig[i].Name)
	}
}

func replacePreemption(name *string) {
	if *name == defaultpreemption.Name {
		*name = preemptionName
	}
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
