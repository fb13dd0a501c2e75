package plainpreemption

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/scheduler/placement"
	"github.com/arbor-control/arbor/internal/scheduler/podgroups"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
	"github.com/arbor-control/arbor/internal/scheduler/testcluster"
)

// A stage is a cluster in memory with both preemption plugins, one set of objects
// after the other.
type stage struct {
	t      testing.TB
	trial  *placement.Trial
	fw     framework.Framework
	groups *podgroups.Index
	ours   *plainPreemption
	kube   *defaultpreemption.DefaultPreemption
	shown  act
}

// An act is what a stage shows.
type act struct {
	nodes  []*corev1.Node
	groups []*v2alpha2.PodGroup
	pods   []*corev1.Pod
	pdbs   []*policyv1.PodDisruptionBudget
	// leaving are the names of pods that another preemption evicts.
	leaving   []string
	extenders []fwk.Extender
}

// stageClasses are the PriorityClasses of every stage.
var stageClasses = map[string]int32{"low": 10, "mid": 50, "high": 90}

func newStage(t testing.TB) *stage {
	t.Helper()
	oracle := testcluster.Open(t)
	s := &stage{t: t, trial: oracle.Trial, fw: oracle.Trial.Profiles[settings.Name], groups: oracle.Groups}
	for name, value := range stageClasses {
		s.must(oracle.Factory.Scheduling().V1().PriorityClasses().Informer().GetStore().Add(
			&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}))
	}
	s.build(s.fw)

	return s
}

// build makes the plugins on a handle.
func (s *stage) build(handle fwk.Handle) {
	s.t.Helper()
	args := &config.DefaultPreemptionArgs{MinCandidateNodesPercentage: 10, MinCandidateNodesAbsolute: 100}
	var err error
	s.ours, err = makePlainPreemption(s.t.Context(), s.groups, args, handle)
	s.must(err)
	s.kube, err = defaultpreemption.New(s.t.Context(), args, handle, feature.Features{})
	s.must(err)
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// show replaces all objects.
func (s *stage) show(a act) {
	s.t.Helper()
	logger := klog.FromContext(s.t.Context())
	running := func(pods []*corev1.Pod) []*corev1.Pod {
		return slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool {
			return pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded
		})
	}
	for _, pod := range running(s.shown.pods) {
		s.must(s.trial.Remove(s.t.Context(), pod))
	}
	for _, node := range s.shown.nodes {
		s.must(s.trial.Cache.RemoveNode(logger, node))
	}
	for _, node := range a.nodes {
		s.trial.Cache.AddNode(logger, node)
	}
	for _, pod := range running(a.pods) {
		s.must(s.trial.Add(s.t.Context(), pod))
	}
	s.shown = a
	s.must(s.trial.Cache.UpdateSnapshot(logger, s.trial.Snapshot))
	s.must(s.groups.PodGroups.GetStore().Replace(storeItems(a.groups), ""))
	s.must(s.groups.Pods.GetStore().Replace(storeItems(a.pods), ""))
	for _, pod := range s.groups.Leaving() {
		s.groups.ForgetLeaving(pod)
	}
	for _, name := range a.leaving {
		s.groups.MarkLeaving(types.UID(name))
	}
	s.build(extendedHandle{s.fw, a.extenders})
}

func storeItems[T any](all []T) []any {
	var items []any
	for _, item := range all {
		items = append(items, item)
	}

	return items
}

// A choice is what preemption selects on one node.
type choice struct {
	Victims    []string
	Violations int
	Code       fwk.Code
}

// victimSelector is what both plugins have.
type victimSelector interface {
	SelectVictimsOnNode(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo, pdbs []*policyv1.PodDisruptionBudget) ([]*corev1.Pod, int, *fwk.Status)
}

// choices are what a plugin selects on every node.
func (s *stage) choices(plugin victimSelector, pod *corev1.Pod, pdbs []*policyv1.PodDisruptionBudget) map[string]choice {
	s.t.Helper()
	state := framework.NewCycleState()
	if _, status, _ := s.fw.RunPreFilterPlugins(s.t.Context(), state, pod); !status.IsSuccess() {
		s.t.Fatal(status.AsError())
	}
	nodes, err := s.trial.Snapshot.NodeInfos().List()
	s.must(err)
	all := map[string]choice{}
	for _, node := range nodes {
		victims, violations, status := plugin.SelectVictimsOnNode(s.t.Context(), state.Clone(), pod, node.Snapshot(), pdbs)
		c := choice{Violations: violations, Code: status.Code()}
		for _, v := range victims {
			c.Victims = append(c.Victims, v.Name)
		}
		slices.Sort(c.Victims)
		all[node.Node().Name] = c
	}

	return all
}

// extendedHandle is a handle with extenders.
type extendedHandle struct {
	framework.Framework

	extenders []fwk.Extender
}

func (h extendedHandle) Extenders() []fwk.Extender { return h.extenders }

// preemptExtender is an extender with a preempt verb.
type preemptExtender struct{ fwk.Extender }

func (preemptExtender) SupportsPreemption() bool      { return true }
func (preemptExtender) IsInterested(*corev1.Pod) bool { return true }

// plainPod is a pod without a PodGroup.
func plainPod(name string, gpus int, priority int32, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := schedulertest.Member(name, 0, gpus)
	pod.Name, pod.UID, pod.Annotations = name, types.UID(name), nil
	pod.Spec.Priority = &priority
	for _, c := range change {
		c(pod)
	}

	return pod
}

// aged gives pods distinct ages: the first is the oldest.
func aged(pods ...[]*corev1.Pod) []*corev1.Pod {
	all := slices.Concat(pods...)
	for i, pod := range all {
		when := metav1.NewTime(time.Unix(1_000_000+int64(i), 0))
		pod.CreationTimestamp = when
		if pod.Status.StartTime == nil {
			pod.Status.StartTime = &when
		}
	}

	return all
}

func groupWith(pg *v2alpha2.PodGroup, change ...func(*v2alpha2.PodGroup)) *v2alpha2.PodGroup {
	for _, c := range change {
		c(pg)
	}

	return pg
}

func groupClass(name string) func(*v2alpha2.PodGroup) {
	return func(pg *v2alpha2.PodGroup) { pg.Spec.PriorityClassName = name }
}

func groupPreemptibility(p v2alpha2.Preemptibility) func(*v2alpha2.PodGroup) {
	return func(pg *v2alpha2.PodGroup) { pg.Spec.Preemptibility = p }
}

func ofApp(app string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		if pod.Labels == nil {
			pod.Labels = map[string]string{}
		}
		pod.Labels["app"] = app
	}
}

func isTerminating(pod *corev1.Pod) {
	pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(2_000_000, 0)}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler}}
}

func budgetFor(key, value string, allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: key},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	}
}

// noVictims is the choice where nothing may be preempted.
func noVictims() choice { return choice{Code: fwk.UnschedulableAndUnresolvable} }

// victimsAre is a choice without violations.
func victimsAre(names ...string) choice { return choice{Victims: names} }

func TestPlainVictims(t *testing.T) {
	s := newStage(t)
	two := []*corev1.Node{schedulertest.Node(0, 4), schedulertest.Node(1, 4)}
	replicas := func() *v2alpha2.PodGroup {
		pg := schedulertest.PodGroup("g", -1, v2alpha2.SubGroup{Name: "a", MinMember: new(int32(2))}, v2alpha2.SubGroup{Name: "b", MinMember: new(int32(2))})
		pg.Spec.MinSubGroup = new(int32(1))

		return pg
	}
	apart := func(pod *corev1.Pod) {
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}, TopologyKey: "zone"},
		}}}
	}
	zoned := func(nodes ...*corev1.Node) []*corev1.Node {
		for _, n := range nodes {
			n.Labels["zone"] = "z"
		}

		return nodes
	}
	cases := map[string]struct {
		reason string
		act    act
		pod    *corev1.Pod
		want   map[string]choice
	}{
		"NonPreemptible": {
			reason: "no member of a non-preemptible gang is a victim",
			act: act{
				nodes: two, groups: []*v2alpha2.PodGroup{groupWith(schedulertest.PodGroup("g", 2), groupPreemptibility(v2alpha2.NonPreemptible))},
				pods: aged(schedulertest.Crew("g", "", 8, 1, schedulertest.Prio(10), schedulertest.BindTo(0, 4), schedulertest.BindTo(1, 4))),
			},
			pod: plainPod("p", 1, 1000), want: map[string]choice{"node-0000": noVictims(), "node-0001": noVictims()},
		},
		"Threshold": {
			reason: "without preemptibility, a gang from priority 100 on is non-preemptible",
			act:    act{nodes: two[:1], groups: []*v2alpha2.PodGroup{schedulertest.PodGroup("g", 4)}, pods: aged(schedulertest.Crew("g", "", 4, 1, schedulertest.Prio(100), schedulertest.BoundAt(0)))},
			pod:    plainPod("p", 1, 1000), want: map[string]choice{"node-0000": noVictims()},
		},
		"Whole": {
			reason: "a gang at its minimum leaves whole, from wherever it is evicted",
			act: act{
				nodes: two, groups: []*v2alpha2.PodGroup{schedulertest.PodGroup("g", 5)},
				pods: aged(schedulertest.Crew("g", "", 5, 1, schedulertest.Prio(10), schedulertest.BindTo(0, 4), schedulertest.BindTo(1, 1))),
			},
			pod: plainPod("p", 4, 1000),
			want: map[string]choice{
				"node-0000": victimsAre("g-0", "g-1", "g-2", "g-3", "g-4"), "node-0001": victimsAre("g-0", "g-1", "g-2", "g-3", "g-4"),
			},
		},
		"Surplus": {
			reason: "a surplus pod leaves alone, the youngest first",
			act:    act{nodes: two[:1], groups: []*v2alpha2.PodGroup{schedulertest.PodGroup("g", 2)}, pods: aged(schedulertest.Crew("g", "", 4, 1, schedulertest.Prio(10), schedulertest.BoundAt(0)))},
			pod:    plainPod("p", 1, 1000), want: map[string]choice{"node-0000": victimsAre("g-3")},
		},
		"AllSurplus": {
			reason: "as many surplus pods leave as are needed",
			act:    act{nodes: two[:1], groups: []*v2alpha2.PodGroup{schedulertest.PodGroup("g", 2)}, pods: aged(schedulertest.Crew("g", "", 4, 1, schedulertest.Prio(10), schedulertest.BoundAt(0)))},
			pod:    plainPod("p", 2, 1000), want: map[string]choice{"node-0000": victimsAre("g-2", "g-3")},
		},
		"MoreThanSurplus": {
			reason: "no surplus pod stays without the gang",
			act: act{nodes: two[:1], groups: []*v2alpha2.PodGroup{schedulertest.PodGroup("g", 3)}, pods: aged(
				schedulertest.Crew("g", "", 4, 1, schedulertest.Prio(10), schedulertest.BoundAt(0)))},
			pod: plainPod("p", 2, 1000), want: map[string]choice{"node-0000": victimsAre("g-0", "g-1", "g-2", "g-3")},
		},
		"Subgroup": {
			reason: "a surplus subgroup leaves whole, and the other stays",
			act: act{nodes: two[:1], groups: []*v2alpha2.PodGroup{replicas()}, pods: aged(
				schedulertest.Crew("g", "a", 2, 1, schedulertest.Prio(10), schedulertest.BoundAt(0)), schedulertest.Crew("g", "b", 2, 1, schedulertest.Prio(10), schedulertest.BoundAt(0)))},
			pod: plainPod("p", 1, 1000), want: map[string]choice{"node-0000": victimsAre("g-b-00", "g-b-01")},
		},
		"DriverAndWorkers": {
			reason: "a member that the gang needs does not drag the surplus along if that is enough",
			act: act{
				nodes: two[:1], groups: []*v2alpha2.PodGroup{schedulertest.PodGroup("g", -1, v2alpha2.SubGroup{Name: "driver", MinMember: new(int32(1))}, v2alpha2.SubGroup{Name: "worker", MinMember: new(int32(2))})},
				pods: aged(schedulertest.Crew("g", "worker", 3, 1, schedulertest.Prio(10), schedulertest.BoundAt(0)), schedulertest.Crew("g", "driver", 1, 1, schedulertest.Prio(10), schedulertest.BoundAt(0))),
			},
			pod: plainPod("p", 1, 1000), want: map[string]choice{"node-0000": victimsAre("g-worker-02")},
		},
		"PlainFirst": {
			reason: "of the same priority, a plain pod leaves before a gang, however old it is",
			act: act{nodes: two[:1], groups: []*v2alpha2.PodGroup{schedulertest.PodGroup("g", 2)}, pods: aged(
				[]*corev1.Pod{plainPod("old", 1, 10, schedulertest.BoundAt(0))}, schedulertest.Crew("g", "", 3, 1, schedulertest.Prio(10), schedulertest.BoundAt(0))[:2], []*corev1.Pod{plainPod("new", 1, 11, schedulertest.BoundAt(0))})},
			pod: plainPod("p", 1, 1000), want: map[string]choice{"node-0000": victimsAre("old")},
		},
		"GroupAbove": {
			reason: "the group's priority protects its pods",
			act:    act{nodes: two[:1], groups: []*v2alpha2.PodGroup{groupWith(schedulertest.PodGroup("g", 4), groupClass("high"))}, pods: aged(schedulertest.Crew("g", "", 4, 1, schedulertest.Prio(10), schedulertest.BoundAt(0)))},
			pod:    plainPod("p", 1, 80), want: map[string]choice{"node-0000": noVictims()},
		},
		"GroupBelow": {
			reason: "and exposes them",
			act:    act{nodes: two[:1], groups: []*v2alpha2.PodGroup{groupWith(schedulertest.PodGroup("g", 4), groupClass("low"))}, pods: aged(schedulertest.Crew("g", "", 4, 1, schedulertest.Prio(90), schedulertest.BoundAt(0)))},
			pod:    plainPod("p", 1, 80), want: map[string]choice{"node-0000": victimsAre("g-0", "g-1", "g-2", "g-3")},
		},
		"Terminating": {
			reason: "a member that terminates costs the gang nothing",
			act: act{nodes: two[:1], groups: []*v2alpha2.PodGroup{groupWith(schedulertest.PodGroup("g", 3), groupPreemptibility(v2alpha2.NonPreemptible))}, pods: aged(
				schedulertest.Crew("g", "", 3, 1, schedulertest.Prio(10), schedulertest.BoundAt(0)), schedulertest.Crew("g", "", 4, 1, schedulertest.Prio(10), schedulertest.BoundAt(0), isTerminating)[3:])},
			pod: plainPod("p", 1, 1000), want: map[string]choice{"node-0000": victimsAre("g-3")},
		},
		"Leaving": {
			reason: "neither does one that another preemption evicts",
			act: act{
				nodes: two[:1], groups: []*v2alpha2.PodGroup{schedulertest.PodGroup("g", 3)}, pods: aged(schedulertest.Crew("g", "", 4, 1, schedulertest.Prio(10), schedulertest.BoundAt(0))),
				leaving: []string{"g-0"},
			},
			pod: plainPod("p", 1, 1000), want: map[string]choice{"node-0000": victimsAre("g-0")},
		},
		"LeavingFirst": {
			reason: "so it is preferred to a surplus pod, however young that is",
			act: act{
				nodes: two[:1], groups: []*v2alpha2.PodGroup{schedulertest.PodGroup("g", 2)}, pods: aged(schedulertest.Crew("g", "", 4, 1, schedulertest.Prio(10), schedulertest.BoundAt(0))),
				leaving: []string{"g-0"},
			},
			pod: plainPod("p", 1, 1000), want: map[string]choice{"node-0000": victimsAre("g-0")},
		},
		"NoGroup": {
			reason: "pods whose PodGroup does not exist are plain",
			act:    act{nodes: two[:1], pods: aged(schedulertest.Crew("g", "", 4, 1, schedulertest.Prio(10), schedulertest.BoundAt(0)))},
			pod:    plainPod("p", 1, 1000), want: map[string]choice{"node-0000": victimsAre("g-3")},
		},
		"Unreadable": {
			reason: "a gang that has no place for one of its pods leaves whole",
			act: act{nodes: two[:1], groups: []*v2alpha2.PodGroup{schedulertest.PodGroup("g", 1)}, pods: aged(
				schedulertest.Crew("g", "", 3, 1, schedulertest.Prio(10), schedulertest.BoundAt(0)), schedulertest.Crew("g", "x", 1, 1, schedulertest.Prio(10), schedulertest.BoundAt(0)), schedulertest.Crew("g", "", 5, 1, schedulertest.Prio(10))[4:])},
			pod: plainPod("p", 1, 1000), want: map[string]choice{"node-0000": victimsAre("g-0", "g-1", "g-2", "g-x-00")},
		},
		"Succeeded": {
			reason: "a member that has succeeded counts, and is no victim",
			act: act{nodes: two[:1], groups: []*v2alpha2.PodGroup{schedulertest.PodGroup("g", 4)}, pods: aged(
				schedulertest.Crew("g", "", 3, 1, schedulertest.Prio(10), schedulertest.BoundAt(0)),
				schedulertest.Crew("g", "", 4, 1, schedulertest.Prio(10), schedulertest.BoundAt(0), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })[3:],
				[]*corev1.Pod{plainPod("other", 1, 2000, schedulertest.BoundAt(0))})},
			pod: plainPod("p", 1, 1000), want: map[string]choice{"node-0000": victimsAre("g-0", "g-1", "g-2")},
		},
		"Budget": {
			reason: "a unit that violates a budget stays if another can leave, and all of its pods count if not",
			act: act{
				nodes: two, groups: []*v2alpha2.PodGroup{schedulertest.PodGroup("g", 2), schedulertest.PodGroup("h", 4)},
				pods: aged(schedulertest.Crew("g", "", 2, 1, schedulertest.Prio(10), schedulertest.BoundAt(0), ofApp("g")), []*corev1.Pod{plainPod("a", 1, 20, schedulertest.BoundAt(0)), plainPod("b", 1, 20, schedulertest.BoundAt(0))},
					schedulertest.Crew("h", "", 4, 1, schedulertest.Prio(10), schedulertest.BoundAt(1), ofApp("g"))),
				pdbs: []*policyv1.PodDisruptionBudget{budgetFor("app", "g", 1)},
			},
			pod: plainPod("p", 2, 1000), want: map[string]choice{"node-0000": victimsAre("a", "b"), "node-0001": {Victims: []string{"h-0", "h-1", "h-2", "h-3"}, Violations: 3}},
		},
		"BudgetOfSurplus": {
			reason: "a surplus pod with a budget is considered again once the gang stays",
			act: act{
				nodes: two[:1], groups: []*v2alpha2.PodGroup{schedulertest.PodGroup("g", 2)}, pods: aged(
					schedulertest.Crew("g", "", 2, 1, schedulertest.Prio(10), schedulertest.BoundAt(0)), schedulertest.Crew("g", "", 3, 1, schedulertest.Prio(10), schedulertest.BoundAt(0), ofApp("g"))[2:],
					[]*corev1.Pod{plainPod("a", 1, 5, schedulertest.BoundAt(0))}),
				pdbs: []*policyv1.PodDisruptionBudget{budgetFor("app", "g", 0)},
			},
			pod: plainPod("p", 1, 1000), want: map[string]choice{"node-0000": victimsAre("a")},
		},
		"OtherNodes": {
			reason: "the pods that leave other nodes leave their topology domains",
			act: act{nodes: zoned(schedulertest.Node(0, 4), schedulertest.Node(1, 4)), groups: []*v2alpha2.PodGroup{schedulertest.PodGroup("g", 2)}, pods: aged(
				schedulertest.Crew("g", "", 2, 1, schedulertest.Prio(10), ofApp("x"), schedulertest.BindTo(0, 1), schedulertest.BindTo(1, 1)))},
			pod: plainPod("p", 1, 1000, apart), want: map[string]choice{"node-0000": victimsAre("g-0", "g-1"), "node-0001": victimsAre("g-0", "g-1")},
		},
		"Extender": {
			reason: "an extender is not asked about victims on other nodes: only the surplus is a candidate",
			act: act{
				nodes: two, groups: []*v2alpha2.PodGroup{schedulertest.PodGroup("g", 5), schedulertest.PodGroup("h", 2)},
				pods:      aged(schedulertest.Crew("g", "", 6, 1, schedulertest.Prio(10), schedulertest.BindTo(0, 4), schedulertest.BindTo(1, 2)), schedulertest.Crew("h", "", 2, 1, schedulertest.Prio(20), schedulertest.BoundAt(1))),
				extenders: []fwk.Extender{preemptExtender{}},
			},
			pod: plainPod("p", 2, 1000), want: map[string]choice{"node-0000": {Code: fwk.Unschedulable}, "node-0001": victimsAre("h-0", "h-1")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s.t = t
			s.show(tc.act)
			if diff := gocmp.Diff(tc.want, s.choices(s.ours, tc.pod, tc.act.pdbs)); diff != "" {
				t.Errorf("%s\nSelectVictimsOnNode(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// bestNode is the node that the functions of a plugin prefer, by name if there are
// several.
func bestNode(functions []func(string) int64, nodes ...string) string {
	slices.SortFunc(nodes, func(a, b string) int {
		for _, f := range functions {
			if c := cmp.Compare(f(b), f(a)); c != 0 {
				return c
			}
		}

		return cmp.Compare(a, b)
	})

	return nodes[0]
}

func TestPlainScores(t *testing.T) {
	s := newStage(t)
	high := groupWith(schedulertest.PodGroup("high", 1), groupClass("high"))
	pods := aged(schedulertest.Crew("low", "", 3, 1, schedulertest.Prio(10), schedulertest.BoundAt(0)), schedulertest.Crew("high", "", 1, 1, schedulertest.Prio(1), schedulertest.BoundAt(1)), []*corev1.Pod{
		plainPod("a", 1, 10, schedulertest.BoundAt(2)), plainPod("b", 1, 10, schedulertest.BoundAt(2)), plainPod("c", 1, 80, schedulertest.BoundAt(2)),
	})
	s.show(act{groups: []*v2alpha2.PodGroup{schedulertest.PodGroup("low", 3), high}, pods: pods})
	of := func(violations int64, names ...string) *extenderv1.Victims {
		v := &extenderv1.Victims{NumPDBViolations: violations}
		for _, pod := range pods {
			if slices.Contains(names, pod.Name) {
				v.Pods = append(v.Pods, pod)
			}
		}

		return v
	}
	cases := map[string]struct {
		reason string
		x, y   *extenderv1.Victims
		want   string
	}{
		"Plain":      {reason: "one plain pod is a smaller loss than a gang", x: of(0, "low-0", "low-1", "low-2"), y: of(0, "a"), want: "y"},
		"Highest":    {reason: "the priority of the group counts, not that of the pod", x: of(0, "high-0"), y: of(0, "c"), want: "y"},
		"Violations": {reason: "violations come first", x: of(0, "high-0"), y: of(1, "a"), want: "x"},
		"Youngest":   {reason: "what started last leaves first", x: of(0, "low-0"), y: of(0, "b"), want: "y"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			functions := s.ours.OrderedScoreFuncs(t.Context(), map[string]*extenderv1.Victims{"x": tc.x, "y": tc.y})
			if got := bestNode(functions, "x", "y"); got != tc.want {
				t.Errorf("%s\ngot node %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
	if f := s.ours.OrderedScoreFuncs(t.Context(), map[string]*extenderv1.Victims{"x": of(0, "a"), "y": of(0, "b")}); f != nil {
		t.Error("without gangs, the functions are those of kube-scheduler")
	}
}

// A pod waits for the victims that it has, those of gangs included.
func TestPlainEligible(t *testing.T) {
	s := newStage(t)
	pods := aged(schedulertest.Crew("g", "", 2, 1, schedulertest.Prio(90), schedulertest.BoundAt(0), isTerminating), schedulertest.Crew("h", "", 1, 1, schedulertest.Prio(10), schedulertest.BoundAt(1)), schedulertest.Crew("k", "", 1, 1, schedulertest.Prio(10), schedulertest.BoundAt(2), isTerminating))
	s.show(act{
		nodes:  []*corev1.Node{schedulertest.Node(0, 4), schedulertest.Node(1, 4), schedulertest.Node(2, 4)},
		groups: []*v2alpha2.PodGroup{groupWith(schedulertest.PodGroup("g", 2), groupClass("low")), schedulertest.PodGroup("h", 1), schedulertest.PodGroup("k", 1)}, pods: pods,
	})
	for node, want := range map[string]bool{"": true, "node-0000": false, "node-0001": true, "node-0002": false, "gone": true} {
		pod := plainPod("p", 1, 50)
		pod.Status.NominatedNodeName = node
		got, why := s.ours.PodEligibleToPreemptOthers(t.Context(), pod, fwk.NewStatus(fwk.Unschedulable))
		if got != want {
			t.Errorf("nominated to %q: eligible is %v (%s), want %v", node, got, why, want)
		}
	}
}

// A member of a gang that reaches the plugin preempts nobody.
func TestPlainRefusesMembers(t *testing.T) {
	s := newStage(t)
	result, status := s.ours.PostFilter(t.Context(), framework.NewCycleState(), schedulertest.Member("g", 0, 1), framework.NewDefaultNodeToStatus())
	if result != nil || status.Code() != fwk.Unschedulable {
		t.Errorf("got %v, %v", result, status)
	}
}

// Preemption does not clear the nominations of gangs.
func TestPlainNominations(t *testing.T) {
	s := newStage(t)
	s.trial.SetNominated(func(string, *types.NamespacedName) []fwk.PodInfo {
		var infos []fwk.PodInfo
		for _, pod := range []*corev1.Pod{plainPod("p", 1, 1), schedulertest.Member("g", 0, 1)} {
			info, err := framework.NewPodInfo(pod)
			s.must(err)
			infos = append(infos, info)
		}

		return infos
	})
	got := plainNominations{s.fw}.NominatedPodsForNode("node-0000")
	if len(got) != 1 || got[0].GetPod().Name != "p" {
		t.Errorf("got %v, want p", got)
	}
}
