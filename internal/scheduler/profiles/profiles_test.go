package profiles

import (
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// readProfiles reads a configuration as the scheduler does, with the defaults of
// kube-scheduler.
func readProfiles(t *testing.T, text string) []config.KubeSchedulerProfile {
	t.Helper()
	if text == "" {
		c, err := latest.Default()
		if err != nil {
			t.Fatal(err)
		}

		return c.Profiles
	}
	o, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"+text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}

	return o.(*config.KubeSchedulerConfiguration).Profiles
}

// postFilters are the PostFilter plugins of a profile in the order in which they
// run, among those that the test knows.
func postFilters(p *config.Plugins) []string {
	var all []string
	disabled := func(name string) bool {
		return slices.ContainsFunc(p.PostFilter.Disabled, func(d config.Plugin) bool { return d.Name == "*" || d.Name == name })
	}
	for _, plugin := range p.MultiPoint.Enabled {
		if slices.Contains([]string{names.DynamicResources, defaultpreemption.Name, Preemption}, plugin.Name) && !disabled(plugin.Name) {
			all = append(all, plugin.Name)
		}
	}
	for _, plugin := range p.PostFilter.Enabled {
		if !slices.Contains(all, plugin.Name) {
			all = append(all, plugin.Name)
		}
	}

	return all
}

func TestEnable(t *testing.T) {
	type profile struct {
		PostFilters []string
		// Percentage is the argument of the preemption plugin, -1 if it has none.
		Percentage int32
	}
	usual := profile{PostFilters: []string{names.DynamicResources, Preemption}, Percentage: 10}
	cases := map[string]struct {
		reason string
		text   string
		want   []profile
	}{
		"Default": {reason: "ours takes the place of DefaultPreemption, behind DynamicResources", want: []profile{usual}},
		"Args": {
			reason: "ours has the arguments of DefaultPreemption",
			text:   "profiles: [{pluginConfig: [{name: DefaultPreemption, args: {minCandidateNodesPercentage: 42}}]}]",
			want:   []profile{{PostFilters: usual.PostFilters, Percentage: 42}},
		},
		"Disabled": {
			reason: "a profile that disables DefaultPreemption at PostFilter gets no preemption",
			text:   "profiles: [{plugins: {postFilter: {disabled: [{name: DefaultPreemption}]}}}]",
			want:   []profile{{PostFilters: []string{names.DynamicResources}, Percentage: 10}},
		},
		"DisabledEverywhere": {
			reason: "nor one that disables it at all extension points",
			text:   "profiles: [{plugins: {multiPoint: {disabled: [{name: DefaultPreemption}]}}}]",
			want:   []profile{{PostFilters: []string{names.DynamicResources}, Percentage: -1}},
		},
		"Own": {
			reason: "a profile with its own PostFilter plugins keeps them",
			text:   `profiles: [{plugins: {postFilter: {disabled: [{name: "*"}], enabled: [{name: Own}]}}}]`,
			want:   []profile{{PostFilters: []string{"Own"}, Percentage: 10}},
		},
		"Explicit": {
			reason: "an order that the profile asks for stays",
			text:   `profiles: [{plugins: {postFilter: {disabled: [{name: "*"}], enabled: [{name: DefaultPreemption}, {name: Own}]}}}]`,
			want:   []profile{{PostFilters: []string{Preemption, "Own"}, Percentage: 10}},
		},
		"Several": {
			reason: "every profile is enabled by itself",
			text:   "profiles: [{schedulerName: a}, {schedulerName: b, plugins: {postFilter: {disabled: [{name: DefaultPreemption}]}}}]",
			want:   []profile{usual, {PostFilters: []string{names.DynamicResources}, Percentage: 10}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := readProfiles(t, tc.text)
			var got []profile
			for i := range all {
				p := &all[i]
				Enable(p)
				once := p.DeepCopy()
				Enable(p)
				if diff := gocmp.Diff(once, p); diff != "" {
					t.Errorf("enable(...) a second time: -once, +twice:\n%s", diff)
				}
				seen := profile{PostFilters: postFilters(p.Plugins), Percentage: -1}
				for _, c := range p.PluginConfig {
					if c.Name == Preemption {
						seen.Percentage = c.Args.(*config.DefaultPreemptionArgs).MinCandidateNodesPercentage
					}
				}
				got = append(got, seen)
				sort, gate := p.Plugins.QueueSort.Enabled, p.Plugins.PreEnqueue.Enabled
				if want := []config.Plugin{{Name: Gang}}; !slices.Equal(sort, want) || !slices.Equal(gate, want) {
					t.Errorf("queueSort is %v and preEnqueue %v, want %v", sort, gate, want)
				}
			}
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nenable(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
