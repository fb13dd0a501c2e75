package scheduling_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
)

// A gang is ranked as a victim by the priority that it had before its pods were evicted.
func TestVictimsPriority(t *testing.T) {
	cases := map[string]struct {
		reason      string
		minimum     int
		pods        []int32 // priorities of the gang that runs
		preemptor   int32
		size, evict int
	}{
		"Negative": {"What is left of a gang without pods has priority 0, as the preemptor has.", 3, []int32{-10, -10, -10}, 0, 3, 3},
		"Surplus":  {"What is left of the gang is more important than the preemptor.", 2, []int32{50, 50, 10}, 20, 1, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1, len(tc.pods))
			uses := map[int32]func(*corev1.Pod){0: func(*corev1.Pod) {}}
			use := func(priority int32) func(*corev1.Pod) {
				if uses[priority] == nil {
					uses[priority] = l.class(strings.ReplaceAll(fmt.Sprintf("p%d", priority), "-", "minus"), priority, corev1.PreemptLowerPriority)
				}

				return uses[priority]
			}
			k := l.keep(nil)
			l.group("low", simple(tc.minimum))
			for i, priority := range tc.pods {
				l.create(l.pod("low", "", fmt.Sprintf("low-%d", i), 1, use(priority)))
			}
			l.runs("low", len(tc.pods))
			l.gang("high", tc.size, use(tc.preemptor))
			k.evictsFor(tc.evict, map[string]int{"high": tc.size})
		})
	}
}

// recorded returns the generation that the record of a reservation is about, 0 if there is
// none, and that of the PodGroup.
func (l *lab) recorded(group string) (record, generation int64) {
	l.Helper()
	pg := &v2alpha2.PodGroup{}
	l.must(l.c.Get(l.Context(), client.ObjectKey{Namespace: l.ns, Name: group}, pg))
	var r struct {
		Generation int64     `json:"generation"`
		Deadline   time.Time `json:"deadline"`
	}
	if text := pg.Annotations[v2alpha2.ReservationAnnotation]; text != "" {
		l.must(json.Unmarshal([]byte(text), &r))
	}
	if r.Generation != 0 && !r.Deadline.After(time.Now()) {
		l.Errorf("the deadline of the reservation is %s", r.Deadline)
	}

	return r.Generation, pg.Generation
}

// While victims terminate, the PodGroup is edited, or one of its pods is created again. The
// room that is free already stays reserved: no other pod is evicted.
func TestReservationSurvivesChanges(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(l *lab, k *keeper)
	}{
		"GracePeriod": {"The field has nothing to do with room.", func(l *lab, _ *keeper) {
			change(l, &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: "high"}}, func(pg *v2alpha2.PodGroup) {
				pg.Spec.StalenessGracePeriod = patience(time.Hour)
			})
		}},
		"Subgroup": {"An optional subgroup needs no room.", func(l *lab, _ *keeper) {
			change(l, &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: "high"}}, func(pg *v2alpha2.PodGroup) {
				pg.Spec.MinSubGroup = num(1)
				pg.Spec.MinMember = nil
				pg.Spec.SubGroups = []v2alpha2.SubGroup{leaf("default", 2), leaf("later", 1)}
			})
		}},
		"MemberRecreated": {"The next pod of that name takes the place of the one that was deleted.", func(l *lab, k *keeper) {
			k.delete(l.pod("high", "", "high-00", 8))
			l.create(l.pod("high", "", "high-00", 8, func(p *corev1.Pod) { p.Spec.PriorityClassName = l.ns + "-high" }))
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 2, 8).own()
			low, high := l.classes()
			k := l.keep(nil)
			patient := func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(600)) }
			l.replicaSet(16, low, lingering, patient)
			l.runs("", 16)
			l.group("high", simple(2))
			l.pods("high", "", 2, 8, high)
			k.evicts(16)
			k.ends(l.ns + "-node-0")

			tc.change(l, k)
			l.within(soon, "the reservation is renewed", func() error {
				if err := k.count(16); err != nil {
					return err
				}
				record, generation := l.recorded("high")
				if record != generation {
					return fmt.Errorf("it is about generation %d, and the group has %d", record, generation)
				}
				if n := len(l.nominations("high")); n != 2 {
					return fmt.Errorf("%d pods are nominated", n)
				}

				return nil
			})
			l.hadItsTurn()
			if n := l.bound(""); n > 0 {
				t.Errorf("%d pods of lower priority took the reserved room", n)
			}
			if n := l.scheduler.Sum(t, `arbor_gang_reservations_ended_total{result="superseded"}`); n > 0 {
				t.Errorf("the reservation was released, and another one was made")
			}
			k.ends(l.ns + "-node-1")
			k.evictsFor(16, map[string]int{"high": 2})
		})
	}
}

// ends has the pods end that were evicted from a node, and waits until they are gone and
// their replacements exist.
func (k *keeper) ends(node string) {
	k.Helper()
	for _, s := range k.evicted() {
		if s.pod.Spec.NodeName == node {
			k.free(k.Context(), s.pod)
		}
	}
	k.within(soon, "the pods of "+node+" are gone", func() error {
		for _, s := range k.evicted() {
			if s.pod.Spec.NodeName == node && !s.gone {
				return fmt.Errorf("pod %s is there", s.pod.Name)
			}
		}
		if n := len(k.members("")); n < 16 {
			return fmt.Errorf("%d pods exist", n)
		}

		return nil
	})
}

// An edit that does not change which pods are needed does not end the preparation of the
// pods. One that does, does.
func TestEditDuringRound(t *testing.T) {
	l := newLab(t, 1, 8).unprovisioned().own()
	l.stuck(3)
	pg := &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: "g"}}
	change(l, pg, func(pg *v2alpha2.PodGroup) { pg.Spec.StalenessGracePeriod = patience(time.Hour) })
	generation := pg.Generation
	l.shows("g", "reports about the new spec", func(status *v2alpha2.PodGroupStatus) bool {
		for _, c := range status.Conditions {
			if c.Type == v2alpha2.PodGroupScheduled && c.ObservedGeneration == generation && c.Reason == v2alpha2.ReasonBinding {
				return true
			}
		}

		return false
	})
	l.hadItsTurn()
	if n := l.scheduler.Sum(t, "arbor_gang_bind_failures_total"); n != 0 {
		t.Errorf("%v pods gave up their places", n)
	}
	l.none("g")
	change(l, pg, func(pg *v2alpha2.PodGroup) { pg.Spec.MinMember = num(2) })
	l.runs("g", 2)
}

// A gang does not wait for a preemptionDelay that it does not have any more.
func TestPreemptionDelayRemoved(t *testing.T) {
	l := newLab(t, 1, 4)
	low, high := l.classes()
	l.gang("low", 4, low)
	l.runs("low", 4)
	spec := simple(4)
	spec.PreemptionDelay = patience(time.Hour)
	pg := l.group("g", spec)
	l.pods("g", "", 4, 1, high)
	l.waits("g", "of min 4 pods")
	l.hadItsTurn()
	l.runs("low", 4)
	change(l, pg, func(pg *v2alpha2.PodGroup) { pg.Spec.PreemptionDelay = patience(0) })
	l.bindsSoon("g", 4)
}
