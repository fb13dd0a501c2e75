package scheduling_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

// T1: two gangs, each larger than half of the cluster. One runs, the other waits
// with empty hands.
func TestTwoGangs(t *testing.T) {
	l := newLab(t, 4, 8)
	l.group("one", simple(20))
	l.group("two", simple(20))
	var pods []*corev1.Pod
	for i := range 20 {
		for _, group := range []string{"one", "two"} {
			pods = append(pods, l.pod(group, "", fmt.Sprintf("%s-%02d", group, i), 1))
		}
	}
	l.create(pods...)

	winner, loser := "one", "two"
	cluster.Eventually(t, "one of them has won", func() error {
		for _, group := range []string{"one", "two"} {
			if l.bound(group) == 20 {
				winner = group

				return nil
			}
		}

		return fmt.Errorf("%d and %d have a node", l.bound("one"), l.bound("two"))
	})
	if winner == "two" {
		loser = "one"
	}
	l.runs(winner, 20)
	// How many nodes is a figure, too: one may be heard of after the first message.
	l.waits(loser, l.ns+"/"+loser, "of min 20 pods", "Insufficient nvidia.com/gpu")
	l.says(winner, metav1.ConditionTrue)
	l.says(loser, metav1.ConditionFalse, "of min 20 pods", "Insufficient nvidia.com/gpu")
	l.none(loser)
	l.holdsNothing()
	l.takesAll(12)
	l.none(loser)

	l.end(winner)
	l.runs(loser, 20)
	l.says(loser, metav1.ConditionTrue)
}

// T2: a subgroup that fits is not placed without one that does not.
func TestSubGroupWithoutRoom(t *testing.T) {
	l := newLab(t, 4, 8)
	l.group("g", tree(leaf("a", 10), leaf("b", 2)))
	l.pods("g", "a", 10, 1)
	l.pods("g", "b", 2, 9)

	told := l.waits("g", `subgroup "b"`, "of min 2 pods", "Insufficient nvidia.com/gpu")
	if told.Reason != corev1.PodReasonUnschedulable {
		t.Errorf("the reason is %s; autoscalers listen to %s only", told.Reason, corev1.PodReasonUnschedulable)
	}
	l.none("g")
	l.holdsNothing()
	l.takesAll(32)
	l.none("g")
}

// T3: every minimum comes before surplus pods, and those that remain get the message that their
// gang runs.
func TestMinimumsFirst(t *testing.T) {
	l := newLab(t, 4, 8)
	l.pods("g", "a", 30, 1)
	l.pods("g", "b", 8, 1)
	l.group("g", tree(leaf("a", 8), leaf("b", 8)))

	l.runs("g", 8, "b")
	l.runs("g", 24, "a")
	l.waits("g", "minimum")
}

// T4: a gang that is too large runs as soon as there is one node more.
func TestNodeAdded(t *testing.T) {
	l := newLab(t, 4, 8)
	l.gang("g", 40)
	l.waits("g", "of min 40 pods")
	l.none("g")
	l.addNodes(1, 8)
	l.runs("g", 40)
}

// T5: two of three replicas are enough. The third, for which there is half of the
// room, does not get the half.
func TestReplicas(t *testing.T) {
	l := newLab(t, 2, 5)
	spec := v2alpha2.PodGroupSpec{MinSubGroup: num(2)}
	for _, r := range []string{"r0", "r1", "r2"} {
		spec.SubGroups = append(spec.SubGroups, v2alpha2.SubGroup{Name: r}, leaf(r+"-leader", 1, r), leaf(r+"-workers", 3, r))
	}
	for _, r := range []string{"r0", "r1", "r2"} {
		l.pods("g", r+"-leader", 1, 1)
		l.pods("g", r+"-workers", 3, 1)
	}
	l.group("g", spec)

	l.runs("g", 8)
	l.waits("g")
	for _, r := range []string{"r0", "r1", "r2"} {
		leaders, workers := l.bound("g", r+"-leader"), l.bound("g", r+"-workers")
		if whole, nothing := leaders == 1 && workers == 3, leaders+workers == 0; !whole && !nothing {
			t.Errorf("replica %s has %d leaders and %d workers", r, leaders, workers)
		}
	}
	l.takesAll(2)

	// With room for it, it comes too, whole.
	l.addNodes(1, 4)
	l.runs("g", 12)
}

// T6: a member keeps other pods away from its node before it is there.
func TestAntiAffinity(t *testing.T) {
	l := newLab(t, 1, 8)
	l.group("g", tree(leaf("shy", 1), leaf("loud", 1)))
	l.pods("g", "shy", 1, 1, apart("loud"))
	l.pods("g", "loud", 1, 1)
	l.waits("g", "anti-affinity")
	l.none("g")

	l.addNodes(1, 8)
	l.runs("g", 2)
	if got := perNode(l.places("g")); !slices.Equal(got, []int{1, 1}) {
		t.Errorf("nodes have %v of them", got)
	}
}

// The same, when the one with the term comes last.
func TestAntiAffinityOfTheLast(t *testing.T) {
	l := newLab(t, 1, 8)
	l.group("g", tree(leaf("loud", 1), leaf("shy", 1)))
	l.pods("g", "loud", 1, 1)
	l.pods("g", "shy", 1, 1, apart("loud"))
	l.waits("g", "anti-affinity")
	l.none("g")
}

// apart does not want to share a node with a part of a group.
func apart(part string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: near(partLabel, part)}}
	}
}

func near(label, value string) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{
		TopologyKey:   corev1.LabelHostname,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: value}},
	}}
}

// T7: a port is there once per node.
func TestHostPorts(t *testing.T) {
	l := newLab(t, 4, 8)
	port := func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	}
	l.gang("five", 5, port)
	l.waits("five", "of min 5 pods", "didn't have free ports")
	l.none("five")
	l.end("five")

	l.gang("four", 4, port)
	l.runs("four", 4)
	if got := perNode(l.places("four")); !slices.Equal(got, []int{1, 1, 1, 1}) {
		t.Errorf("nodes have %v of them", got)
	}
}

// T8: members spread over nodes with regard to each other.
func TestSpread(t *testing.T) {
	l := newLab(t, 1, 4)
	l.addNodes(1, 1)
	spread := func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{groupLabel: p.Labels[groupLabel]}},
		}}
	}
	l.gang("four", 4, spread)
	l.waits("four", "of min 4 pods", "topology spread")
	l.none("four")
	l.end("four")

	l.gang("three", 3, spread)
	l.runs("three", 3)
	if got := perNode(l.places("three")); !slices.Equal(got, []int{2, 1}) {
		t.Errorf("nodes have %v of them", got)
	}
}

// T8c: members that want to be together are, or nowhere.
func TestAffinity(t *testing.T) {
	l := newLab(t, 4, 8)
	together := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: near(groupLabel, p.Labels[groupLabel])}}
	}
	l.gang("nine", 9, together)
	l.waits("nine", "of min 9 pods", "affinity")
	l.none("nine")
	l.end("nine")

	l.gang("eight", 8, together)
	l.runs("eight", 8)
	if got := perNode(l.places("eight")); !slices.Equal(got, []int{8}) {
		t.Errorf("nodes have %v of them", got)
	}
}

// T9: pods wait for their PodGroup, and for each other. Autoscalers add no nodes for them during
// that time.
func TestPodsBeforeGroup(t *testing.T) {
	l := newLab(t, 1, 8)
	l.pods("g", "", 3, 1)
	if told := l.waits("g", l.ns+"/g", "does not exist"); told.Reason == corev1.PodReasonUnschedulable {
		t.Errorf("an autoscaler would buy a node: %+v", told)
	}
	l.group("g", simple(4))
	l.says("g", metav1.ConditionFalse, "3 of min 4 pods")
	if told := l.waits("g", "3 of min 4 pods"); told.Reason == corev1.PodReasonUnschedulable {
		t.Errorf("an autoscaler would buy a node: %+v", told)
	}
	l.none("g")
	l.create(l.pod("g", "", "last", 1))
	l.runs("g", 4)
}

// Pods that were written for KAI run unchanged.
func TestPodsOfKAI(t *testing.T) {
	l := newLab(t, 1, 4)
	l.name = "kai-scheduler"
	l.group("g", simple(4))
	l.pods("g", "", 3, 1)
	l.waits("g", "3 of min 4 pods")
	l.none("g")
	l.create(l.pod("g", "", "last", 1))
	l.runs("g", 4)
}
