package plainpreemption

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
)

// draw makes a random cluster. If gangs is false, pods may name PodGroups, but
// these do not exist.
func draw(r *rand.Rand, gangs bool) (a act, preemptor *corev1.Pod) {
	for i := range 2 + r.IntN(4) {
		n := schedulertest.Node(i, 2+r.IntN(7))
		n.Labels["zone"] = string(rune('a' + r.IntN(2)))
		a.nodes = append(a.nodes, n)
	}
	apps := []string{"x", "y", "z"}
	for range r.IntN(3) {
		a.pdbs = append(a.pdbs, budgetFor("app", apps[r.IntN(3)], int32(r.IntN(3))))
	}
	if r.IntN(4) == 0 {
		a.pdbs = append(a.pdbs, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "all"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}})
	}
	names := []string{"g", "h", "k"}
	if gangs {
		for _, name := range names {
			a.groups = append(a.groups, drawGroup(r, name))
		}
	}
	var pods []*corev1.Pod
	ports := sets.New[string]() // nodes whose port is taken
	for i := range 4 + r.IntN(24) {
		pod := plainPod(fmt.Sprintf("pod-%02d", i), r.IntN(4), int32(r.IntN(6)*20), schedulertest.BoundAt(r.IntN(len(a.nodes))), ofApp(apps[r.IntN(3)]))
		decorate(r, pod)
		if len(pod.Spec.Containers[0].Ports) > 0 && ports.Has(pod.Spec.NodeName) {
			pod.Spec.Containers[0].Ports = nil
		}
		if len(pod.Spec.Containers[0].Ports) > 0 {
			ports.Insert(pod.Spec.NodeName)
		}
		if r.IntN(2) == 0 {
			pod.Annotations = map[string]string{decide.GroupAnnotation: names[r.IntN(3)]}
			pod.Labels[decide.SubGroupLabel] = []string{"a", "b"}[r.IntN(2)]
		}
		if r.IntN(12) == 0 && !gangs { // a spread constraint ignores it, but counts its removal
			isTerminating(pod)
		}
		pods = append(pods, pod)
	}
	a.pods = aged(pods)
	r.Shuffle(len(pods), func(i, j int) {
		pods[i].Status.StartTime, pods[j].Status.StartTime = pods[j].Status.StartTime, pods[i].Status.StartTime
	})
	preemptor = plainPod("preemptor", r.IntN(6), int32(r.IntN(8)*20), ofApp(apps[r.IntN(3)]))
	decorate(r, preemptor)

	return a, preemptor
}

// decorate adds what makes pods depend on each other.
func decorate(r *rand.Rand, pod *corev1.Pod) {
	same := &metav1.LabelSelector{MatchLabels: map[string]string{"app": pod.Labels["app"]}}
	key := []string{"zone", corev1.LabelHostname}[r.IntN(2)]
	switch r.IntN(6) {
	case 0:
		schedulertest.OnPort(pod)
	case 1:
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: same, TopologyKey: key}},
		}}
	case 2:
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: same}}
	case 3:
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *resource.NewQuantity(int64(r.IntN(64)), resource.DecimalSI)
	}
}

func drawGroup(r *rand.Rand, name string) *v2alpha2.PodGroup {
	pg := schedulertest.PodGroup(name, -1, v2alpha2.SubGroup{Name: "a", MinMember: new(int32(r.IntN(4)))}, v2alpha2.SubGroup{Name: "b", MinMember: new(int32(r.IntN(4)))})
	if r.IntN(2) == 0 {
		pg.Spec.MinSubGroup = new(int32(1))
	}
	if r.IntN(2) == 0 {
		pg.Spec.MinMember = new(int32(r.IntN(8)))
	}
	pg.Spec.Preemptibility = []v2alpha2.Preemptibility{"", v2alpha2.Preemptible, v2alpha2.NonPreemptible}[r.IntN(3)]
	pg.Spec.PriorityClassName = []string{"", "low", "mid", "high"}[r.IntN(4)]

	return pg
}

const randomWorlds = 400

// Without PodGroups, the victims of every node are those of DefaultPreemption.
func TestPlainEqualsDefault(t *testing.T) {
	s := newStage(t)
	selected, violating := 0, 0
	for seed := range uint64(randomWorlds) {
		a, pod := draw(rand.New(rand.NewPCG(seed, 1)), false)
		s.show(a)
		want, got := s.choices(s.kube, pod, a.pdbs), s.choices(s.ours, pod, a.pdbs)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: -DefaultPreemption +ours:\n%s", seed, diff)
		}
		for _, c := range got {
			selected += min(1, len(c.Victims))
			violating += min(1, c.Violations)
		}
	}
	if selected < randomWorlds/2 || violating < randomWorlds/20 {
		t.Errorf("victims were selected on %d nodes, with violations on %d: the worlds are too easy", selected, violating)
	}
}

// With PodGroups, the victims are allowed, break no gang, make room, and none of
// them could stay.
func TestPlainVictimsProperty(t *testing.T) {
	s := newStage(t)
	selected := 0
	for seed := range uint64(randomWorlds) {
		a, pod := draw(rand.New(rand.NewPCG(seed, 2)), true)
		s.show(a)
		for node, c := range s.choices(s.ours, pod, a.pdbs) {
			if len(c.Victims) == 0 {
				continue
			}
			selected++
			judge := &judge{stage: s, act: a, pod: pod, node: node, victims: c.Victims}
			if wrong := judge.wrong(); wrong != "" {
				t.Fatalf("seed %d, %s, victims %v: %s", seed, node, c.Victims, wrong)
			}
		}
	}
	if selected < randomWorlds/2 {
		t.Errorf("victims were selected on %d nodes: the worlds are too easy", selected)
	}
}

// A judge checks the victims of one node.
type judge struct {
	*stage

	act     act
	pod     *corev1.Pod
	node    string
	victims []string
}

func (j *judge) wrong() string {
	for _, pg := range j.act.groups {
		g, refusal := j.groups.Read(types.NamespacedName{Namespace: pg.Namespace, Name: pg.Name})
		if refusal != nil {
			j.t.Fatal(refusal)
		}
		priority := j.groups.Priority(pg, g.Pods)
		for _, pod := range g.Pods {
			if j.gone(pod) && (priority >= *j.pod.Spec.Priority || !decide.Preemptible(pg, priority)) {
				return fmt.Sprintf("%s may not be preempted: priority %d, %s", pod.Name, priority, pg.Spec.Preemptibility)
			}
		}
		if gang.Broken(g.Tree, g.Members, g.Rules, func(m int) bool { return j.gone(g.Pods[m]) }) {
			return "PodGroup " + pg.Name + " is broken"
		}
	}
	for _, pod := range j.act.pods {
		if _, ok := decide.GroupOf(pod); !ok && j.gone(pod) && *pod.Spec.Priority >= *j.pod.Spec.Priority {
			return fmt.Sprintf("%s has priority %d", pod.Name, *pod.Spec.Priority)
		}
	}
	if !j.fits("") {
		return "the pod does not fit"
	}

	return j.spared()
}

// spared returns a plain victim that need not be one.
func (j *judge) spared() string {
	for _, pod := range j.act.pods {
		_, isMember := decide.GroupOf(pod)
		if j.gone(pod) && !isMember && j.fits(pod.Name) {
			return pod.Name + " could stay"
		}
	}

	return ""
}

func (j *judge) gone(pod *corev1.Pod) bool { return slices.Contains(j.victims, pod.Name) }

// fits reports whether the pod fits the node without the victims, except one.
func (j *judge) fits(stays string) bool {
	a := j.act
	a.pods = slices.DeleteFunc(slices.Clone(a.pods), func(pod *corev1.Pod) bool { return j.gone(pod) && pod.Name != stays })
	j.show(a)
	defer j.show(j.act)
	state := framework.NewCycleState()
	if _, status, _ := j.fw.RunPreFilterPlugins(j.t.Context(), state, j.pod); !status.IsSuccess() {
		return false
	}
	info, err := j.trial.Snapshot.NodeInfos().Get(j.node)
	j.must(err)

	return j.fw.RunFilterPluginsWithNominatedPods(j.t.Context(), state, j.pod, info).Code() == fwk.Success
}
