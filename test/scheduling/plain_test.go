package scheduling_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

// noVictims is what kube-scheduler reports about a node on which it may preempt
// no pod.
const noVictims = "No preemption victims found for incoming pod"

// plain creates one pod without a PodGroup that requests GPUs.
func (l *lab) plain(name string, gpus int, change ...func(*corev1.Pod)) *corev1.Pod {
	l.Helper()
	pod := l.pod("", "", name, gpus, change...)
	pod.Labels[groupLabel] = name
	l.create(pod)

	return pod
}

// node pins pods to one of the nodes of the lab.
func (l *lab) node(i int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: fmt.Sprintf("%s-node-%d", l.ns, i)}
	}
}

// deleted waits until exactly n pods of a group are being deleted, and returns
// them. They must linger.
func (l *lab) deleted(group string, n int) []corev1.Pod {
	l.Helper()
	var victims []corev1.Pod
	cluster.Eventually(l, fmt.Sprintf("%d pods of %s are deleted", n, group), func() error {
		list := &corev1.PodList{}
		if err := l.c.List(l.Context(), list, client.InNamespace(l.ns), client.MatchingLabels{groupLabel: group}); err != nil {
			return err
		}
		victims = slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp == nil })
		if len(victims) != n {
			return fmt.Errorf("%d of %d are", len(victims), len(list.Items))
		}

		return nil
	})

	return victims
}

// preempted requires that plain pods preempted these, and removes their
// finalizers.
func (l *lab) preempted(victims []corev1.Pod) {
	l.Helper()
	for i := range victims {
		c := condition(&victims[i], corev1.DisruptionTarget)
		if c == nil || c.Reason != corev1.PodReasonPreemptionByScheduler {
			l.Fatalf("pod %s has conditions %v", victims[i].Name, victims[i].Status.Conditions)
		}
		change(l, &victims[i], func(p *corev1.Pod) { p.Finalizers = nil })
	}
}

// A plain pod preempts no member of a non-preemptible gang, however important it
// is.
func TestPlainNonPreemptible(t *testing.T) {
	l := newLab(t, 1, 4)
	low := l.class("low", 10, corev1.PreemptLowerPriority)
	urgent := l.class("urgent", 1000, corev1.PreemptLowerPriority)
	l.group("fixed", v2alpha2.PodGroupSpec{MinMember: num(4), Preemptibility: v2alpha2.NonPreemptible})
	l.pods("fixed", "", 4, 1, low)
	l.runs("fixed", 4)
	l.plain("urgent", 1, urgent)
	l.waits("urgent", noVictims)
	l.runs("fixed", 4)
}

// A gang at its minimum is preempted as a whole, its pods on other nodes too.
func TestPlainTakesGang(t *testing.T) {
	l := newLab(t, 2, 2)
	low, high := l.classes()
	l.group("low", simple(4))
	l.pods("low", "", 4, 1, low, lingering)
	l.runs("low", 4)
	l.plain("high", 1, high)
	l.preempted(l.deleted("low", 4))
	l.runs("high", 1)
}

// Above the minimum, a gang loses one pod at a time.
func TestPlainTakesSurplus(t *testing.T) {
	l := newLab(t, 1, 4)
	low, high := l.classes()
	l.group("low", simple(2))
	l.pods("low", "", 4, 1, low)
	l.runs("low", 4)
	for i := range 2 {
		name := fmt.Sprintf("high-%d", i)
		l.plain(name, 1, high)
		l.runs(name, 1)
		l.runs("low", 3-i)
	}
}

// The PriorityClass of the group protects its pods, which have a lower one.
func TestPlainGroupPriority(t *testing.T) {
	l := newLab(t, 1, 2)
	low, _ := l.classes()
	mid := l.class("mid", 500, corev1.PreemptLowerPriority)
	l.class("group", 600, corev1.PreemptLowerPriority)
	urgent := l.class("urgent", 1000, corev1.PreemptLowerPriority)
	l.group("g", v2alpha2.PodGroupSpec{MinMember: num(2), PriorityClassName: l.ns + "-group", Preemptibility: v2alpha2.Preemptible})
	l.pods("g", "", 2, 1, low, lingering)
	l.runs("g", 2)
	waits := l.plain("mid", 1, mid)
	l.waits("mid", noVictims)
	l.runs("g", 2)
	l.must(l.c.Delete(t.Context(), waits))

	l.plain("urgent", 1, urgent)
	l.preempted(l.deleted("g", 2))
	l.runs("urgent", 1)
}

// Between a plain pod and a gang of the same priority, the plain pod is the
// victim: on the same node, and on another one.
func TestPlainPrefersPlain(t *testing.T) {
	l := newLab(t, 2, 4)
	low, high := l.classes()
	l.plain("near", 1, low, l.node(0))
	l.plain("far", 2, low, l.node(1))
	l.runs("near", 1)
	l.runs("far", 1)
	l.gang("g", 5, low)
	l.runs("g", 5)

	l.plain("first", 1, high, l.node(0))
	l.runs("first", 1)
	l.runs("near", 0)
	l.plain("second", 1, high)
	l.runs("second", 1)
	l.runs("far", 0)
	l.runs("g", 5)
}

// Without PodGroups, preemption is that of kube-scheduler: the least important
// pod is the victim, and no other.
func TestPlainOnly(t *testing.T) {
	l := newLab(t, 2, 2)
	low, high := l.classes()
	mid := l.class("mid", 20, corev1.PreemptLowerPriority)
	l.pods("", "", 3, 1, mid)
	l.plain("low", 1, low)
	l.runs("", 3)
	l.runs("low", 1)
	l.plain("high", 1, high)
	l.runs("high", 1)
	l.runs("low", 0)
	l.runs("", 3)
}
