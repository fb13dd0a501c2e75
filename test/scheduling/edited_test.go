package scheduling_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

// A gang that waits is tried again when another group may be preempted from now on.
func TestWokenByAGroupThatMayBePreempted(t *testing.T) {
	l := newLab(t, 1, 4)
	low, high := l.classes()
	fixed := l.group("fixed", v2alpha2.PodGroupSpec{MinMember: num(4), Preemptibility: v2alpha2.NonPreemptible})
	l.pods("fixed", "", 4, 1, low)
	l.runs("fixed", 4)
	l.gang("high", 4, high)
	l.waits("high", "of min 4 pods")
	change(l, fixed, func(pg *v2alpha2.PodGroup) { pg.Spec.Preemptibility = v2alpha2.Preemptible })
	l.bindsSoon("high", 4)
}

// A gang that waits for a volume gives up its places when its PodGroup is deleted.
func TestGroupDeletedDuringRound(t *testing.T) {
	l := newLab(t, 1, 8).unprovisioned().own()
	l.stuck(8)
	l.must(l.c.Delete(t.Context(), &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: "g"}}))
	cluster.Eventually(t, "the pods wait for their group", func() error {
		for _, pod := range l.members("g") {
			c := condition(&pod, corev1.PodScheduled)
			if c == nil || c.Reason != "PodGroupNotFound" {
				return fmt.Errorf("pod %s has %v", pod.Name, c)
			}
		}

		return nil
	})
	l.takesAll(8)
	l.none("g")
}
