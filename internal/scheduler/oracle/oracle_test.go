package oracle

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/dump"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
)

// four are the nodes of most questions, with 8 GPUs each.
func four() []runtime.Object {
	var all []runtime.Object
	for i := range 4 {
		all = append(all, schedulertest.Node(i, 8))
	}

	return all
}

func lone(pod *corev1.Pod) {
	pod.Labels = map[string]string{"lone": "yes"}
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{LabelSelector: &metav1.LabelSelector{}, TopologyKey: corev1.LabelHostname},
	}}}
}

func on(name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: name} }
}

// placed counts the pods that get a place, by subgroup.
func placed(a *decide.Answer) map[string]int {
	counts := map[string]int{}
	for _, p := range a.Decision.Places {
		counts[a.Gang.Tree.Node(a.Gang.Members[p.Member].Leaf).Name]++
	}

	return counts
}

// places are the nodes of pods.
func places(a *decide.Answer) map[string]string {
	all := map[string]string{}
	for _, p := range a.Decision.Places {
		all[a.Gang.Members[p.Member].Name] = p.Node
	}

	return all
}

func TestFit(t *testing.T) {
	ab := []v2alpha2.SubGroup{{Name: "a", MinMember: new(int32(10))}, {Name: "b", MinMember: new(int32(2))}}
	tainted := func(objects []runtime.Object) []runtime.Object {
		for _, o := range objects[1:] {
			o.(*corev1.Node).Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
		}

		return objects
	}
	cases := map[string]struct {
		reason string
		world  []runtime.Object
		group  *v2alpha2.PodGroup
		pods   []*corev1.Pod
		placed map[string]int
		says   string
	}{
		"Two": {
			reason: "20 of 32 GPUs are there for a gang", world: four(), group: schedulertest.PodGroup("g", 20), pods: schedulertest.Crew("g", "", 20, 1),
			placed: map[string]int{"default": 20},
		},
		"TwoAgain": {
			reason: "and not for a second one", world: append(four(), schedulertest.AsObjects(schedulertest.Crew("h", "", 20, 1, schedulertest.BindTo(0, 8), schedulertest.BindTo(1, 8), schedulertest.BindTo(2, 4)))...),
			group: schedulertest.PodGroup("g", 20), pods: schedulertest.Crew("g", "", 20, 1),
			says: "room for 12 of min 20 pods: 0/4 nodes are available: 4 Insufficient nvidia.com/gpu.",
		},
		"OneDoesNot": {
			reason: "a subgroup that does not fit keeps back the other", world: four(), group: schedulertest.PodGroup("g", -1, ab...),
			pods: slices.Concat(schedulertest.Crew("g", "a", 10, 1), schedulertest.Crew("g", "b", 2, 9)),
			says: `subgroup "b": room for 0 of min 2 pods: 0/4 nodes are available: 4 Insufficient nvidia.com/gpu.`,
		},
		"MinimumsFirst": {
			reason: "further pods of one leave room for the minimum of the other", world: four(),
			group: schedulertest.PodGroup("g", -1, v2alpha2.SubGroup{Name: "a", MinMember: new(int32(8))}, v2alpha2.SubGroup{Name: "b", MinMember: new(int32(8))}),
			pods:  slices.Concat(schedulertest.Crew("g", "a", 30, 1), schedulertest.Crew("g", "b", 8, 1)), placed: map[string]int{"a": 24, "b": 8},
		},
		"AntiAffinity": {
			reason: "members that keep everybody away need a node each", world: four(), group: schedulertest.PodGroup("g", 5), pods: schedulertest.Crew("g", "", 5, 1, lone),
			says: "room for 4 of min 5 pods: 0/4 nodes are available: 4 node(s) didn't match pod anti-affinity rules.",
		},
		"AntiAffinityOfOthers": {
			reason: "also from members that come later and do not mind", world: four()[:1], group: schedulertest.PodGroup("g", 2),
			pods: append(schedulertest.Crew("g", "", 1, 1, lone), schedulertest.Crew("g", "", 2, 1)[1]),
			says: "room for 1 of min 2 pods: 0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules.",
		},
		"Selector": {
			reason: "a pod is where it wants to be", world: four(), group: schedulertest.PodGroup("g", 9), pods: schedulertest.Crew("g", "", 9, 1, on("node-0002")),
			says: "room for 8 of min 9 pods: 0/4 nodes are available: 3 node(s) didn't match Pod's node affinity/selector, 1 Insufficient nvidia.com/gpu.",
		},
		"Taints": {
			reason: "and not where it is not wanted", world: tainted(four()), group: schedulertest.PodGroup("g", 9), pods: schedulertest.Crew("g", "", 9, 1),
			says: "room for 8 of min 9 pods: 0/4 nodes are available: 3 node(s) had untolerated taint(s), 1 Insufficient nvidia.com/gpu.",
		},
		"HostPort": {
			reason: "a port of a node is there once", world: four(), group: schedulertest.PodGroup("g", 5), pods: schedulertest.Crew("g", "", 5, 1, schedulertest.OnPort),
			says: "room for 4 of min 5 pods: 0/4 nodes are available: 4 node(s) didn't have free ports for the requested pod ports.",
		},
		"TooFew":     {reason: "pods that do not exist are not placed", world: four(), group: schedulertest.PodGroup("g", 5), pods: schedulertest.Crew("g", "", 4, 1), says: "it has 4 of min 5 pods"},
		"NoNodes":    {reason: "a cluster may be empty", group: schedulertest.PodGroup("g", 1), pods: schedulertest.Crew("g", "", 1, 1), says: "room for 0 of min 1 pods: 0/0 nodes are available: 0 there are no nodes."},
		"OtherNames": {reason: "whichever scheduler is asked for", world: four(), group: schedulertest.PodGroup("g", 1), pods: schedulertest.Crew("g", "", 1, 1, func(p *corev1.Pod) { p.Spec.SchedulerName = "x" }), placed: map[string]int{"default": 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			oracle := offline(t, tc.world...)
			got, err := oracle.Fit(t.Context(), tc.group, tc.pods)
			if err != nil || got.Refusal != nil {
				t.Fatal(err, got.Refusal)
			}
			if tc.placed == nil {
				tc.placed = map[string]int{}
			}
			if diff := cmp.Diff(tc.placed, placed(got)); diff != "" || got.Decision.Reason(got.Gang.Tree) != tc.says {
				t.Errorf("%s: says %q, places (-want +got):\n%s", tc.reason, got.Decision.Reason(got.Gang.Tree), diff)
			}
			again, err := oracle.Fit(t.Context(), tc.group, tc.pods)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(places(got), places(again)); diff != "" || got.Decision.Reason(got.Gang.Tree) != again.Decision.Reason(again.Gang.Tree) {
				t.Errorf("the same question has two answers (-first +second):\n%s", diff)
			}
		})
	}
}

// Another cluster with the same content, in another order, is the same.
func TestFitOrder(t *testing.T) {
	pods := schedulertest.Crew("g", "", 20, 1)
	var want map[string]string
	for i := range 5 {
		objects := four()
		slices.Reverse(objects[i%4:])
		got, err := offline(t, objects...).Fit(t.Context(), schedulertest.PodGroup("g", 20), pods)
		if err != nil {
			t.Fatal(err)
		}
		slices.Reverse(pods)
		if want == nil {
			want = places(got)
		}
		if diff := cmp.Diff(want, places(got)); diff != "" || len(want) != 20 {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

func TestRooms(t *testing.T) {
	world := []runtime.Object{schedulertest.Node(0, 8), schedulertest.Node(1, 4), schedulertest.Node(2, 2), schedulertest.Node(3, 8), schedulertest.Node(4, 8)}
	world[3].(*corev1.Node).Spec.Unschedulable = true
	full := schedulertest.Crew("h", "", 1, 6)[0]
	full.Spec.NodeName = "node-0004"
	got, err := offline(t, append(world, full)...).Fit(t.Context(), schedulertest.PodGroup("g", 4), schedulertest.Crew("g", "", 4, 3))
	if err != nil {
		t.Fatal(err)
	}
	short := func(free, allocatable int64) []decide.Shortage {
		return []decide.Shortage{{Resource: "nvidia.com/gpu", Asked: 3, Free: free, Allocatable: allocatable}}
	}
	want := []decide.Room{
		{Node: "node-0000", Fits: 2},
		{Node: "node-0001", Fits: 1},
		{Node: "node-0002", Short: short(2, 2)},
		{Node: "node-0004", Short: short(2, 8)},
		{Node: "node-0003", Reasons: []string{"node(s) were unschedulable"}},
	}
	if diff := cmp.Diff(want, got.Rooms); diff != "" || got.Gang.Pods[got.For].Name != "g-0" {
		t.Errorf("rooms of pod %d (-want +got):\n%s", got.For, diff)
	}
}

func TestRefused(t *testing.T) {
	pods := schedulertest.Crew("g", "", 1, 1)
	pods[0].Labels = map[string]string{decide.SubGroupLabel: "x"}
	got, err := offline(t, four()...).Fit(t.Context(), schedulertest.PodGroup("g", 1), pods)
	if err != nil || got.Refusal == nil || got.Refusal.Reason != v2alpha2.ReasonUnknownSubGroup {
		t.Errorf("got %+v, %v, want a refusal", got, err)
	}
}

// An oracle knows what is in the cluster.
func TestOracleKnows(t *testing.T) {
	class := func(name string, value int32, general bool) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{
			TypeMeta:   metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"},
			ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, GlobalDefault: general,
		}
	}
	done := schedulertest.Crew("g", "", 1, 1)[0]
	done.Name, done.UID, done.Status.Phase = "done", "done", corev1.PodSucceeded
	oracle := offline(t, schedulertest.PodGroup("h", 1), schedulertest.PodGroup("g", 1), class("high", 100, false), class("usual", 7, true), schedulertest.Crew("g", "", 1, 1)[0], done)
	if diff := cmp.Diff([]types.NamespacedName{{Namespace: "default", Name: "g"}, {Namespace: "default", Name: "h"}}, oracle.Groups()); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	pg, pods := oracle.Group(types.NamespacedName{Namespace: "default", Name: "g"})
	if pg == nil || len(pods) != 2 {
		t.Errorf("got %v and %d pods, want one that waits and one that has succeeded", pg, len(pods))
	}
	if pg, pods := oracle.Group(types.NamespacedName{Namespace: "default", Name: "x"}); pg != nil || len(pods) > 0 {
		t.Errorf("got %v and %v, want nothing", pg, pods)
	}
	got := map[string]int32{}
	for _, name := range []string{"", "high", "none"} {
		if value, ok := oracle.Priority(name); ok {
			got[name] = value
		}
	}
	if want := map[string]int32{"": 7, "high": 100}; !maps.Equal(want, got) {
		t.Errorf("priorities are %v, want %v", got, want)
	}
}

func TestOffline(t *testing.T) {
	object := func(kind string, fields map[string]any) unstructured.Unstructured {
		o := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "x"}}
		maps.Copy(o, fields)

		return unstructured.Unstructured{Object: o}
	}
	if _, err := dump.Offline([]unstructured.Unstructured{object("ConfigMap", nil), object("Secret", map[string]any{"data": 1})}); err != nil {
		t.Errorf("what has nothing to do with scheduling is passed over, got %v", err)
	}
	if dump.Knows(corev1.SchemeGroupVersion.WithKind("Secret")) || !dump.Knows(corev1.SchemeGroupVersion.WithKind("Node")) {
		t.Error("nodes are known, and secrets are not")
	}
	for want, o := range map[string]unstructured.Unstructured{
		"Node x cannot be read: quantities must match": object("Node", map[string]any{"status": map[string]any{"allocatable": map[string]any{"cpu": "many"}}}),
		"Pod a/ cannot be read: metadata.name is":      object("Pod", map[string]any{"metadata": map[string]any{"namespace": "a"}}),
	} {
		if _, err := dump.Offline([]unstructured.Unstructured{o}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s…", err, want)
		}
	}
}

// A cluster that cannot be read ends the question instead of keeping it waiting.
func TestOpenUnreadable(t *testing.T) {
	config, err := dump.Offline(nil)
	if err != nil {
		t.Fatal(err)
	}
	config.Transport, config.Host = nil, "http://127.0.0.1:1"
	if _, err := Open(t.Context(), config, settings.DefaultOptions(), ""); err == nil || !strings.Contains(err.Error(), "no answer from http://127.0.0.1:1") {
		t.Errorf("got %v, want no answer", err)
	}
}
