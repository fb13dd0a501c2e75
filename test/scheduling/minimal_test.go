package scheduling_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
)

// inference runs the gang of examples/gang-inference.yaml: a router, and three
// replicas of three pods with four GPUs each, of which two are needed. On five
// nodes with eight GPUs there is room for one more pod of that size.
func (l *lab) inference(change func(*corev1.Pod)) {
	l.Helper()
	decode := v2alpha2.SubGroup{Name: "decode", MinSubGroup: num(2)}
	l.group("inference", tree(leaf("router", 1), decode, leaf("replica-0", 3, "decode"), leaf("replica-1", 3, "decode"), leaf("replica-2", 3, "decode")))
	l.pods("inference", "router", 1, 0, change)
	for i := range 3 {
		l.pods("inference", fmt.Sprintf("replica-%d", i), 3, 4, change)
	}
	l.runs("inference", 10)
}

// Of a gang with a subgroup that it can do without, that subgroup is evicted as a
// whole, and nothing else.
func TestSurplusSubGroup(t *testing.T) {
	l := newLab(t, 5, 8)
	low, high := l.classes()
	k := l.keep(nil)
	l.inference(low)
	l.group("urgent", simple(2))
	l.pods("urgent", "", 2, 4, high)
	k.evictsFor(3, map[string]int{"urgent": 2})

	parts := map[string]int{}
	for _, s := range k.evicted() {
		parts[s.pod.Labels[partLabel]]++
	}
	if len(parts) != 1 || parts["router"] > 0 {
		t.Errorf("these pods were evicted, by subgroup: %v", parts)
	}
	l.runs("inference", 7)
}

// A replica that lost a pod is of no use: what is left of it is evicted before
// anything that is.
func TestBrokenSubGroupFirst(t *testing.T) {
	l := newLab(t, 5, 8)
	low, high := l.classes()
	k := l.keep(nil)
	l.inference(low)
	k.delete(&l.members("inference", "replica-1")[0])
	l.runs("inference", 2, "replica-1")

	// Two places of four GPUs are free.
	l.group("urgent", simple(3))
	l.pods("urgent", "", 3, 4, high)
	k.evictsFor(2, map[string]int{"urgent": 3})
	for _, s := range k.evicted() {
		if s.pod.Labels[partLabel] != "replica-1" {
			t.Errorf("pod %s was evicted, and replica-1 was broken", s.pod.Name)
		}
	}
}

// A broken optional subgroup does not make surplus pods of other subgroups part
// of a unit with the rest of the gang.
func TestSurplusPodOfAGangWithABrokenSubGroup(t *testing.T) {
	l := newLab(t, 2, 8)
	low, high := l.classes()
	k := l.keep(nil)
	spec := v2alpha2.PodGroupSpec{MinSubGroup: num(1), SubGroups: []v2alpha2.SubGroup{leaf("broken", 2), leaf("whole", 2)}}
	l.group("elastic", spec)
	broken := l.pods("elastic", "broken", 2, 1, low)
	l.pods("elastic", "whole", 14, 1, low)
	l.runs("elastic", 16)
	k.delete(broken[0])
	l.runs("elastic", 1, "broken")

	// One GPU is free: any two pods but the last two of "whole" are enough.
	l.gang("urgent", 3, high)
	k.evictsFor(2, map[string]int{"urgent": 3})
}

// placed has n one-GPU pods on each node of the lab, without asking a scheduler.
func (l *lab) placed(prefix string, n int, change ...func(*corev1.Pod)) {
	l.Helper()
	var all []*corev1.Pod
	for i := range l.made {
		for j := range n {
			pod := l.pod("", "", fmt.Sprintf("%s-%d-%03d", prefix, j, i), 1, change...)
			pod.Spec.NodeName = fmt.Sprintf("%s-node-%d", l.ns, i)
			all = append(all, pod)
		}
	}
	l.create(all...)
}

// Forty nodes are full of plain pods of one GPU, and the youngest pods are one on
// each node. A gang that needs whole nodes evicts the pods of so many nodes, and
// not the youngest ones of the cluster until some node happens to be empty.
func TestWholeNodes(t *testing.T) {
	l := newLab(t, 40, 8)
	low, high := l.classes()
	k := l.keep(nil)
	l.placed("old", 7, low)
	l.placed("young", 1, low)
	l.runs("", 320)
	l.group("urgent", simple(1))
	l.pods("urgent", "", 1, 8, high)
	k.evictsFor(8, map[string]int{"urgent": 1})

	l.group("large", simple(4))
	l.pods("large", "", 4, 8, high)
	k.evictsFor(40, map[string]int{"large": 4})
	perNode := map[string]int{}
	for _, s := range k.evicted() {
		perNode[s.pod.Spec.NodeName]++
	}
	for node, n := range perNode {
		if n != 8 {
			t.Errorf("%d pods of node %s were evicted", n, node)
		}
	}
}
