package oracle

import (
	"slices"
	"testing"

	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"

	"github.com/arbor-control/arbor/internal/scheduler/profiles"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
)

// The framework that results has one preemption plugin, at PostFilter and at
// PreEnqueue, which keeps pods out of the queue while their victims are evicted.
func TestEnabledFramework(t *testing.T) {
	plugins := offline(t).trial.Profiles[settings.Name].ListPlugins()
	for point, set := range map[string]config.PluginSet{"PostFilter": plugins.PostFilter, "PreEnqueue": plugins.PreEnqueue} {
		has := func(name string) bool {
			return slices.ContainsFunc(set.Enabled, func(p config.Plugin) bool { return p.Name == name })
		}
		if !has(profiles.Preemption) || has(defaultpreemption.Name) {
			t.Errorf("%s plugins are %v", point, set.Enabled)
		}
	}
}
