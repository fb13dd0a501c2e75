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
	cases := map[string]struct {
		reason string
		spec   func(*v2alpha2.PodGroupSpec, *lab)
		event  func(*lab, *v2alpha2.PodGroup)
	}{
		"Preemptible": {
			"A group may be preempted from now on.",
			func(s *v2alpha2.PodGroupSpec, _ *lab) { s.Preemptibility = v2alpha2.NonPreemptible },
			func(l *lab, pg *v2alpha2.PodGroup) {
				change(l, pg, func(pg *v2alpha2.PodGroup) { pg.Spec.Preemptibility = v2alpha2.Preemptible })
			},
		},
		"LessImportant": {
			"A group that was as important is not any more.",
			func(s *v2alpha2.PodGroupSpec, l *lab) { s.PriorityClassName = l.ns + "-high" },
			func(l *lab, pg *v2alpha2.PodGroup) {
				change(l, pg, func(pg *v2alpha2.PodGroup) { pg.Spec.PriorityClassName = l.ns + "-low" })
			},
		},
		"Deleted": {
			"Without their PodGroup, its pods are plain pods.",
			func(s *v2alpha2.PodGroupSpec, _ *lab) { s.Preemptibility = v2alpha2.NonPreemptible },
			func(l *lab, pg *v2alpha2.PodGroup) { l.must(l.c.Delete(l.Context(), pg)) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1, 4)
			low, high := l.classes()
			spec := v2alpha2.PodGroupSpec{MinMember: num(4)}
			tc.spec(&spec, l)
			fixed := l.group("fixed", spec)
			l.pods("fixed", "", 4, 1, low)
			l.runs("fixed", 4)
			l.gang("high", 4, high)
			l.waits("high", "of min 4 pods")
			tc.event(l, fixed)
			l.bindsSoon("high", 4)
		})
	}
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
