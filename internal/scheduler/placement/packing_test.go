package placement

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/arbor-control/arbor/internal/scheduler/profiles"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
)

// preferring has a pod prefer a node.
func preferring(i int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
			Weight: 1,
			Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{schedulertest.Node(i, 0).Name}},
			}},
		}}}}
	}
}

func TestPacking(t *testing.T) {
	cases := map[string]struct {
		reason string
		nodes  []*corev1.Node
		bound  []*corev1.Pod
		pod    *corev1.Pod
		want   string
	}{
		"SameNode": {
			reason: "the second pod goes where the first one is", nodes: []*corev1.Node{schedulertest.Node(0, 8), schedulertest.Node(1, 8)},
			bound: schedulertest.Crew("a", "", 1, 1, schedulertest.OnNode(1)), pod: schedulertest.Member("b", 0, 1), want: "node-0001",
		},
		"WithCPU": {
			reason: "although the CPU and the memory of that node are in use too", nodes: []*corev1.Node{schedulertest.Node(0, 8), schedulertest.Node(1, 8)},
			bound: schedulertest.Crew("a", "", 1, 1, schedulertest.OnNode(1), schedulertest.Using), pod: schedulertest.Crew("b", "", 1, 1, schedulertest.Using)[0], want: "node-0001",
		},
		"Fullest": {
			reason: "the fullest node is preferred", nodes: []*corev1.Node{schedulertest.Node(0, 8), schedulertest.Node(1, 8)},
			bound: append(schedulertest.Crew("a", "", 3, 1, schedulertest.OnNode(0), schedulertest.Using), schedulertest.Crew("b", "", 4, 1, schedulertest.OnNode(1), schedulertest.Using)...), pod: schedulertest.Crew("c", "", 1, 1, schedulertest.Using)[0], want: "node-0001",
		},
		"Smallest": {
			reason: "a node that the pod fills is better than one that it does not", nodes: []*corev1.Node{schedulertest.Node(0, 8), schedulertest.Node(1, 4)},
			pod: schedulertest.Member("a", 0, 4), want: "node-0001",
		},
		"NoGPU": {
			reason: "pods without GPUs are spread", nodes: []*corev1.Node{schedulertest.Node(0, 8), schedulertest.Node(1, 8)},
			bound: schedulertest.Crew("a", "", 1, 0, schedulertest.OnNode(1), schedulertest.Using), pod: schedulertest.Crew("b", "", 1, 0, schedulertest.Using)[0], want: "node-0000",
		},
		"NoGPUBesideGPU": {
			reason: "also away from nodes whose GPUs are in use", nodes: []*corev1.Node{schedulertest.Node(0, 8), schedulertest.Node(1, 8)},
			bound: schedulertest.Crew("a", "", 1, 1, schedulertest.OnNode(1), schedulertest.Using), pod: schedulertest.Crew("b", "", 1, 0, schedulertest.Using)[0], want: "node-0000",
		},
		"Preferred": {
			reason: "a preference of the pod is worth more", nodes: []*corev1.Node{schedulertest.Node(0, 8), schedulertest.Node(1, 8)},
			bound: schedulertest.Crew("a", "", 1, 1, schedulertest.OnNode(1)), pod: schedulertest.Crew("b", "", 1, 1, preferring(0))[0], want: "node-0000",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := preferred(t, tc.nodes, tc.bound, tc.pod); got != tc.want {
				t.Errorf("%s: the pod goes to %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// preferred returns the node with the highest score in the default profile, without
// the plugins that have nothing to do with it. Several with the same score are none.
func preferred(t *testing.T, nodes []*corev1.Node, bound []*corev1.Pod, pod *corev1.Pod) string {
	t.Helper()
	snapshot := internalcache.NewSnapshot(bound, nodes)
	fw := packed(t, snapshot)
	infos, err := snapshot.NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	state := framework.NewCycleState()
	if status := fw.RunPreScorePlugins(t.Context(), state, pod, infos); !status.IsSuccess() {
		t.Fatal(status.AsError())
	}
	scores, status := fw.RunScorePlugins(t.Context(), state, pod, infos)
	if !status.IsSuccess() {
		t.Fatal(status.AsError())
	}
	slices.SortFunc(scores, func(a, b fwk.NodePluginScores) int { return int(b.TotalScore - a.TotalScore) })
	if scores[0].TotalScore == scores[1].TotalScore {
		return ""
	}

	return scores[0].Name
}

func packed(t *testing.T, snapshot *internalcache.Snapshot) framework.Framework {
	t.Helper()
	defaults, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	profile := defaults.Profiles[0]
	kept := []string{names.PrioritySort, names.NodeAffinity, names.NodeResourcesFit, names.NodeResourcesBalancedAllocation, names.DefaultBinder}
	profile.Plugins.MultiPoint.Enabled = slices.DeleteFunc(profile.Plugins.MultiPoint.Enabled, func(p config.Plugin) bool { return !slices.Contains(kept, p.Name) })
	profiles.PackGPUs(&profile)
	registry := frameworkplugins.NewInTreeRegistry()
	if err := registry.Register(profiles.Packing, NewPacking); err != nil {
		t.Fatal(err)
	}
	metrics.Register()
	fw, err := frameworkruntime.NewFramework(t.Context(), registry, &profile,
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithMetricsRecorder(metrics.NewMetricsAsyncRecorder(1000, time.Second, t.Context().Done())))
	if err != nil {
		t.Fatal(err)
	}

	return fw
}
