package scheduling_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

// A PodGroup that is deleted holds back those that wait, whatever room comes,
// and takes nothing from those that run. Another of that name is another group.
func TestGroupDeleted(t *testing.T) {
	l := newLab(t, 1, 4)
	running := l.group("runs", simple(2))
	l.pods("runs", "", 2, 1)
	l.runs("runs", 2)
	waiting := l.group("waits", simple(4))
	l.pods("waits", "", 4, 1)
	l.waits("waits", "of min 4 pods")

	l.must(l.c.Delete(t.Context(), running))
	l.must(l.c.Delete(t.Context(), waiting))
	l.waits("waits", l.ns+"/waits", "does not exist")
	l.addNodes(1, 4)
	l.takesAll(6)
	l.none("waits")
	l.runs("runs", 2)

	l.addNodes(1, 4)
	l.none("waits")
	l.group("waits", simple(4))
	l.runs("waits", 4)
}

// A smaller minimum is as good as more room, and a larger one evicts no pod that is bound.
func TestMinimumChanged(t *testing.T) {
	l := newLab(t, 1, 4)
	pg := l.group("g", simple(6))
	l.pods("g", "", 6, 1)
	l.waits("g", "of min 6 pods")
	l.none("g")
	change(l, pg, func(pg *v2alpha2.PodGroup) { pg.Spec.MinMember = num(4) })
	l.runs("g", 4)

	change(l, pg, func(pg *v2alpha2.PodGroup) { pg.Spec.MinMember = num(6) })
	l.waits("g", "missing to min 6")
	l.runs("g", 4)
}

// A subgroup that is renamed while its pods wait leaves them without one: they are not placed as
// something else, and the message has the missing name.
func TestSubGroupRenamed(t *testing.T) {
	l := newLab(t, 1, 4)
	pg := l.group("g", tree(leaf("leader", 1), leaf("workers", 4)))
	l.pods("g", "leader", 1, 1)
	workers := l.pods("g", "workers", 4, 1)
	l.waits("g", `subgroup "workers"`, "of min 4 pods")
	change(l, pg, func(pg *v2alpha2.PodGroup) { pg.Spec.SubGroups[1].Name = "helpers" })
	// Before there is room, the scheduler has to know.
	l.waits("g", `"workers"`, "does not have")
	l.addNodes(1, 4)
	l.takesAll(4)
	l.none("g")

	l.addNodes(1, 4)
	for _, pod := range workers {
		change(l, pod, func(p *corev1.Pod) { p.Labels[subGroupLabel] = "helpers" })
	}
	l.runs("g", 5)
}

// Groups of one name in two namespaces have nothing in common.
func TestSameName(t *testing.T) {
	l := newLab(t, 1, 8)
	other := newLab(t, 1, 8)
	for _, in := range []*lab{l, other} {
		in.group("g", simple(4))
		in.pods("g", "", 3, 1)
	}
	l.waits("g", "3 of min 4 pods")
	other.waits("g", "3 of min 4 pods")
	l.none("g")
	other.none("g")

	l.create(l.pod("g", "", "last", 1))
	l.runs("g", 4)
	other.none("g")
}

// What cannot be a gang is not placed as a smaller one.
func TestNeverAWeakerGang(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   v2alpha2.PodGroupSpec
		pods   map[string]int
		says   []string
	}{
		"UnknownSubGroup": {
			"A pod with a typo must not be forgotten.",
			tree(leaf("workers", 2)),
			map[string]int{"workers": 2, "wrokers": 1},
			[]string{`"wrokers"`},
		},
		"NoSubGroup": {
			"A pod belongs to a subgroup where there are some.",
			tree(leaf("workers", 2)),
			map[string]int{"workers": 2, "": 1},
			[]string{subGroupLabel},
		},
		"NotALeaf": {
			"No pod belongs to a subgroup that has subgroups below it.",
			tree(v2alpha2.SubGroup{Name: "top"}, leaf("workers", 2, "top")),
			map[string]int{"workers": 2, "top": 1},
			[]string{`"top"`},
		},
		"Cycle": {
			"A tree without a top is none.",
			tree(leaf("a", 1, "b"), leaf("b", 1, "a")),
			map[string]int{"a": 1, "b": 1},
			[]string{"its own ancestor"},
		},
		"TooManyChildren": {
			"More subgroups than there are can never be satisfied.",
			v2alpha2.PodGroupSpec{MinSubGroup: num(3), SubGroups: []v2alpha2.SubGroup{leaf("a", 1), leaf("b", 1)}},
			map[string]int{"a": 1, "b": 1},
			[]string{"2 subgroups of min 3"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1, 8)
			for part, n := range tc.pods {
				l.pods("g", part, n, 1)
			}
			// It has to know all of them before the group: what it has not heard of may be
			// what is wrong.
			l.waits("g", "does not exist")
			l.group("g", tc.spec)
			l.waits("g", tc.says...)
			l.takesAll(1) // the scheduler has had its turn
			l.none("g")
		})
	}
}

// Pods that have succeeded count, so one that was lost can be replaced when the
// others are through.
func TestSucceeded(t *testing.T) {
	l := newLab(t, 1, 4)
	// Nothing is evicted between two of them.
	l.group("g", v2alpha2.PodGroupSpec{MinMember: num(4), StalenessGracePeriod: patience(-time.Second)})
	pods := l.pods("g", "", 4, 1)
	l.runs("g", 4)
	for _, pod := range pods[:3] {
		l.phase(pod, corev1.PodSucceeded)
	}
	l.must(l.c.Delete(t.Context(), pods[3]))
	l.create(l.pod("g", "", "again", 1))
	cluster.Eventually(t, "the new one runs", func() error {
		if _, ok := l.places("g")["again"]; !ok {
			return fmt.Errorf("%s", l.said("g"))
		}

		return nil
	})
}

// Failed pods do not count.
func TestFailed(t *testing.T) {
	l := newLab(t, 1, 4)
	// The gang is below its minimum after the first of them, and nothing is evicted.
	l.group("g", v2alpha2.PodGroupSpec{MinMember: num(4), StalenessGracePeriod: patience(-time.Second)})
	pods := l.pods("g", "", 4, 1)
	l.runs("g", 4)
	for _, pod := range pods {
		l.phase(pod, corev1.PodFailed)
	}
	l.create(l.pod("g", "", "again", 1))
	cluster.Eventually(t, "the new one gets the message that it is alone", func() error {
		for _, pod := range l.members("g") {
			if c := condition(&pod, corev1.PodScheduled); pod.Name == "again" && c != nil && c.Status == corev1.ConditionFalse {
				return nil
			}
		}

		return fmt.Errorf("%s", l.said("g"))
	})
	l.takesAll(4)
	if _, ok := l.places("g")["again"]; ok {
		t.Error("one pod of a gang of four is placed, three of which have failed")
	}
}

// phase ends a pod, as its kubelet would.
func (l *lab) phase(pod *corev1.Pod, phase corev1.PodPhase) {
	l.Helper()
	cluster.Eventually(l, "the pod ends", func() error {
		if err := l.c.Get(l.Context(), key(pod), pod); err != nil {
			return err
		}
		pod.Status.Phase = phase

		return l.c.Status().Update(l.Context(), pod)
	})
}

// A member with a scheduling gate is waited for if the minimum needs it, and not
// if it does not.
func TestGates(t *testing.T) {
	l := newLab(t, 1, 8)
	gated := func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}} }
	l.group("needs", tree(leaf("gated", 1), leaf("free", 1)))
	later := l.pods("needs", "gated", 1, 1, gated)[0]
	l.pods("needs", "free", 1, 1)
	l.takesAll(1)
	l.none("needs")
	change(l, later, func(p *corev1.Pod) { p.Spec.SchedulingGates = nil })
	l.runs("needs", 2)

	// The group comes last: a pod that it wakes must not be one of the gated.
	l.pods("elastic", "gated", 8, 0, gated)
	l.pods("elastic", "free", 1, 0)
	l.group("elastic", tree(leaf("gated", 0), leaf("free", 1)))
	l.runs("elastic", 1)
}

// With KAI's reading, minMember of the group and of subgroups with children
// means nothing.
func TestKAIsReading(t *testing.T) {
	l := newLab(t, 1, 8)
	spec := v2alpha2.PodGroupSpec{MinMember: num(6), SubGroups: []v2alpha2.SubGroup{
		{Name: "top", MinMember: num(5)}, leaf("a", 2, "top"), leaf("b", 1, "top"),
	}}
	l.group("arbor", spec)
	l.pods("arbor", "a", 2, 1)
	l.pods("arbor", "b", 1, 1)
	l.waits("arbor", "3 of min")
	l.none("arbor")

	l.own("--minimums=kai")
	l.group("kai", spec)
	l.pods("kai", "a", 2, 1)
	l.pods("kai", "b", 1, 1)
	l.runs("kai", 3)
	l.none("arbor")
}

// Pods that ask for another scheduler are that one's: nothing is placed, reported or evicted,
// though the PodGroup is there.
func TestPodsOfOthers(t *testing.T) {
	l := newLab(t, 1, 8)
	ours := l.name
	l.name = "somebody-else"
	l.group("theirs", v2alpha2.PodGroupSpec{MinMember: num(3), StalenessGracePeriod: &v2alpha2.Duration{Duration: 1}})
	l.pods("theirs", "", 2, 1)
	l.create(l.pod("theirs", "", "placed", 1, func(p *corev1.Pod) { p.Spec.NodeName = l.ns + "-node-0" }))
	l.pods("nowhere", "", 1, 1)

	// Ours comes after, and is broken too: when it is evicted, theirs would have
	// been.
	l.name = ours
	l.group("ours", v2alpha2.PodGroupSpec{MinMember: num(2), StalenessGracePeriod: &v2alpha2.Duration{Duration: 1}})
	pods := l.pods("ours", "", 2, 1)
	l.runs("ours", 2)
	l.must(l.c.Delete(t.Context(), pods[0]))
	cluster.Eventually(t, "ours is evicted", func() error {
		if n := l.bound("ours"); n > 0 {
			return fmt.Errorf("%d are left", n)
		}

		return nil
	})
	if n := l.bound("theirs"); n != 1 {
		t.Errorf("%d of their pods have a place; one did", n)
	}
	for _, group := range []string{"theirs", "nowhere"} {
		for _, pod := range l.members(group) {
			if c := condition(&pod, corev1.PodScheduled); pod.Spec.NodeName == "" && c != nil {
				t.Errorf("their pod %s has the message %q", pod.Name, c.Message)
			}
		}
	}
}
