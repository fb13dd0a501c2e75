package scheduler

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	fwk "k8s.io/kube-scheduler/framework"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// onNode binds a pod to a node.
func onNode(i int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.NodeName = node(i, 0).Name }
}

// using has a pod request an eighth of the CPU and the memory of a node.
func using(pod *corev1.Pod) {
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("16")
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("128Gi")
}

// preferring has a pod prefer a node.
func preferring(i int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
			Weight: 1,
			Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node(i, 0).Name}},
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
			reason: "the second pod goes where the first one is", nodes: []*corev1.Node{node(0, 8), node(1, 8)},
			bound: crew("a", "", 1, 1, onNode(1)), pod: member("b", 0, 1), want: "node-0001",
		},
		"WithCPU": {
			reason: "although the CPU and the memory of that node are in use too", nodes: []*corev1.Node{node(0, 8), node(1, 8)},
			bound: crew("a", "", 1, 1, onNode(1), using), pod: crew("b", "", 1, 1, using)[0], want: "node-0001",
		},
		"Fullest": {
			reason: "the fullest node is preferred", nodes: []*corev1.Node{node(0, 8), node(1, 8)},
			bound: append(crew("a", "", 3, 1, onNode(0), using), crew("b", "", 4, 1, onNode(1), using)...), pod: crew("c", "", 1, 1, using)[0], want: "node-0001",
		},
		"Smallest": {
			reason: "a node that the pod fills is better than one that it does not", nodes: []*corev1.Node{node(0, 8), node(1, 4)},
			pod: member("a", 0, 4), want: "node-0001",
		},
		"NoGPU": {
			reason: "pods without GPUs are spread", nodes: []*corev1.Node{node(0, 8), node(1, 8)},
			bound: crew("a", "", 1, 0, onNode(1), using), pod: crew("b", "", 1, 0, using)[0], want: "node-0000",
		},
		"NoGPUBesideGPU": {
			reason: "also away from nodes whose GPUs are in use", nodes: []*corev1.Node{node(0, 8), node(1, 8)},
			bound: crew("a", "", 1, 1, onNode(1), using), pod: crew("b", "", 1, 0, using)[0], want: "node-0000",
		},
		"Preferred": {
			reason: "a preference of the pod is worth more", nodes: []*corev1.Node{node(0, 8), node(1, 8)},
			bound: crew("a", "", 1, 1, onNode(1)), pod: crew("b", "", 1, 1, preferring(0))[0], want: "node-0000",
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
	packGPUs(&profile)
	registry := frameworkplugins.NewInTreeRegistry()
	if err := registry.Register(packingName, newPacking); err != nil {
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

// The default profiles pack GPUs; a configuration file does so if it says so.
func TestFitPacks(t *testing.T) {
	const file = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: arbor-scheduler
  plugins: {multiPoint: {enabled: [{name: ArborGPUPacking, weight: 3}]}}
- schedulerName: spread
`
	for name, tc := range map[string]struct{ file, scheduler, want string }{
		"Default":  {"", Name, "node-0001"},
		"File":     {file, Name, "node-0001"},
		"FileNone": {file, "spread", "node-0000"},
	} {
		t.Run(name, func(t *testing.T) {
			path := ""
			if tc.file != "" {
				path = filepath.Join(t.TempDir(), "config.yaml")
				if err := os.WriteFile(path, []byte(tc.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			bound := crew("a", "", 1, 1, onNode(1), using)
			oracle := offlineWith(t, path, append(asObjects(bound), node(0, 8), node(1, 8))...)
			asked := func(pod *corev1.Pod) { pod.Spec.SchedulerName = tc.scheduler }
			got, err := oracle.Fit(t.Context(), podGroup("b", 1), crew("b", "", 1, 1, using, asked))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]string{"b-0": tc.want}, places(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
