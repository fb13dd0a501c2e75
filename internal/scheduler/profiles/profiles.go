package profiles

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// Plugins of Arbor, by their names in profiles and in the reasons why a pod waits.
const (
	// Gang is the gate before the queue, and the order in it.
	Gang = "ArborGang"
	// Preemption replaces DefaultPreemption.
	Preemption = "ArborPreemption"
	// Packing prefers nodes whose GPUs are in use.
	Packing = "ArborGPUPacking"
)

// packingWeight makes one GPU of eight worth 38 points. NodeResourcesFit and
// NodeResourcesBalancedAllocation take away about 12 when a pod with one GPU
// uses an eighth of CPU and memory too; preferred affinity and topology
// spread constraints are worth up to 200, so they still win.
const packingWeight = 3

// Load reads a configuration file. Without one, it returns the default with a profile for each
// scheduler.
func Load(ctx context.Context, schedulers []string, file string) (*config.KubeSchedulerConfiguration, error) {
	cfg, err := latest.Default()
	if err != nil {
		return nil, err
	}
	if file != "" {
		if cfg, err = options.LoadConfigFromFile(klog.FromContext(ctx), file); err != nil {
			return nil, fmt.Errorf("cannot read the scheduler's configuration: %w", err)
		}
	} else {
		cfg.Profiles = Named(cfg.Profiles[0], schedulers)
	}
	for i := range cfg.Profiles {
		Enable(&cfg.Profiles[i])
	}

	return cfg, nil
}

// PercentOf is the percentageOfNodesToScore of profiles that have none, 0 if the number
// of nodes decides.
func PercentOf(cfg *config.KubeSchedulerConfiguration) int32 {
	if cfg.PercentageOfNodesToScore == nil {
		return 0
	}

	return *cfg.PercentageOfNodesToScore
}

// Named makes a profile for each name.
func Named(p config.KubeSchedulerProfile, names []string) []config.KubeSchedulerProfile {
	profiles := make([]config.KubeSchedulerProfile, 0, len(names))
	for _, name := range names {
		c := *p.DeepCopy()
		c.SchedulerName = name
		PackGPUs(&c)
		profiles = append(profiles, c)
	}

	return profiles
}

// Enable adds the plugins of Arbor to a profile: the gang plugin at PreEnqueue and
// as the only QueueSort plugin, and ArborPreemption wherever the profile names
// DefaultPreemption. Where the profile disables DefaultPreemption, ArborPreemption
// is disabled too, and it gets the arguments of DefaultPreemption.
func Enable(p *config.KubeSchedulerProfile) {
	if p.Plugins == nil {
		p.Plugins = &config.Plugins{}
	}
	ours := config.Plugin{Name: Gang}
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
		*name = Preemption
	}
}

// PackGPUs enables the plugin in a profile.
func PackGPUs(p *config.KubeSchedulerProfile) {
	if p.Plugins == nil {
		p.Plugins = &config.Plugins{}
	}
	p.Plugins.MultiPoint.Enabled = append(p.Plugins.MultiPoint.Enabled, config.Plugin{Name: Packing, Weight: packingWeight})
}

// FitArgs returns the arguments of NodeResourcesFit by profile; nil for those that do not
// set any.
func FitArgs(cfg *config.KubeSchedulerConfiguration) map[string]*config.NodeResourcesFitArgs {
	all := map[string]*config.NodeResourcesFitArgs{}
	for _, p := range cfg.Profiles {
		for _, c := range p.PluginConfig {
			if args, ok := c.Args.(*config.NodeResourcesFitArgs); ok && c.Name == names.NodeResourcesFit {
				all[p.SchedulerName] = args
			}
		}
	}

	return all
}
