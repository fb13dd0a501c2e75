package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/tools/events"
	schedulerserverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
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
	// ready is when gangs were last found complete, by key.
	ready     sync.Map
	pace      *pace
	reporter  *reporter
	trial     *trial
	preemptor *preemptor
	// binds has a place for each binding that may be under way.
	binds chan struct{}
}

// setup is that of kube-scheduler, with the gang plugin in every profile.
func setup(ctx context.Context, kube *options.Options, o *Options) (*schedulerserverconfig.CompletedConfig, *Scheduler, error) {
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
	if kube.ConfigFile == "" {
		c.ComponentConfig.Profiles = named(c.ComponentConfig.Profiles[0], o.Names)
	}
	for i := range c.ComponentConfig.Profiles {
		enable(&c.ComponentConfig.Profiles[i])
	}
	completed := c.Complete()

	s := &Scheduler{options: o, rules: o.rules(), binds: make(chan struct{}, bindsAtOnce)}
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
	s.pace = newPace(s.wake)
	cfg := &c.ComponentConfig
	registry := frameworkruntime.Registry{pluginName: s.newPlugin}
	s.kube, err = kubescheduler.New(ctx, c.Client, c.InformerFactory, c.DynInformerFactory,
		func(name string) events.EventRecorderLogger { return c.EventBroadcaster.NewRecorder(name) },
		kubescheduler.WithComponentConfigVersion(cfg.APIVersion),
		kubescheduler.WithKubeConfig(c.KubeConfig),
		kubescheduler.WithProfiles(cfg.Profiles...),
		kubescheduler.WithPercentageOfNodesToScore(cfg.PercentageOfNodesToScore),
		kubescheduler.WithFrameworkOutOfTreeRegistry(registry),
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
	for name, fw := range s.kube.Profiles {
		s.fitters[name] = &fitter{fw: fw, snapshot: s.snapshot}
	}
	s.groups.assumed = s.kube.Cache
	s.kube.NextPod = s.next(ctx)

	if s.trial, err = newTrial(ctx, c.Client, c.KubeConfig, c.InformerFactory, cfg, s.newPlugin); err != nil {
		return err
	}
	s.trial.nominees.of = s.kube.SchedulingQueue.NominatedPodsForNode
	s.preemptor = newPreemptor(s, c.InformerFactory.Policy().V1().PodDisruptionBudgets().Lister())
	s.reporter = newReporter(s, c.Client, s.groups.rest, c.EventBroadcaster.NewRecorder(Name))

	return nil
}

// start reads the groups, so that the first pod that asks for one finds it. It
// writes nothing: see lead.
func (s *Scheduler) start(ctx context.Context) error {
	if err := s.watch(); err != nil {
		return err
	}
	if err := s.groups.start(ctx); err != nil {
		return err
	}

	return nil
}

// lead begins to write: what was decided, and who has to go. Replicas that wait
// for their turn know all that happens, and must leave it to the one that leads.
func (s *Scheduler) lead(ctx context.Context) {
	go s.reporter.run(ctx)
	go s.preemptor.run(ctx)
}

// named makes a profile for each name.
func named(p config.KubeSchedulerProfile, names []string) []config.KubeSchedulerProfile {
	profiles := make([]config.KubeSchedulerProfile, 0, len(names))
	for _, name := range names {
		c := *p.DeepCopy()
		c.SchedulerName = name
		profiles = append(profiles, c)
	}

	return profiles
}

// enable puts the gang plugin into a profile: as its gate, and as the one that
// sorts the queue, of which there is one.
func enable(p *config.KubeSchedulerProfile) {
	if p.Plugins == nil {
		p.Plugins = &config.Plugins{}
	}
	ours := config.Plugin{Name: pluginName}
	p.Plugins.QueueSort = config.PluginSet{Enabled: []config.Plugin{ours}, Disabled: []config.Plugin{{Name: "*"}}}
	if !slices.Contains(p.Plugins.PreEnqueue.Enabled, ours) {
		p.Plugins.PreEnqueue.Enabled = append(p.Plugins.PreEnqueue.Enabled, ours)
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
