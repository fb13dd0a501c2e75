package preempt

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/scheduler/podgroups"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
)

// recorded puts a record onto a PodGroup.
func recorded(t *testing.T, pg *v2alpha2.PodGroup, r podgroups.ReservationRecord) {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	pg.Annotations = map[string]string{v2alpha2.ReservationAnnotation: string(text)}
}

// recovering has a scheduler that has just started, with its cache filled.
func recovering(t *testing.T, objects ...runtime.Object) (*testScheduler, *schedulertest.Notebook) {
	t.Helper()
	s := newTestScheduler(t, objects...)
	done, err := s.trial.Open(t.Context(), s.groups.Placed)
	if err != nil {
		t.Fatal(err)
	}
	done()
	s.kube.Profiles, s.preemptor.Snapshot = s.trial.Profiles, s.trial.Snapshot
	for _, fw := range s.kube.Profiles {
		fw.SetPodNominator(s.reservations)
	}

	return s, s.events
}

// A record is an annotation that users can write. Whatever it says, no more room is reserved
// than the gang needs, no pod is evicted that the gang does not need, and what this scheduler
// cannot have written is dropped with an event.
func TestRecoverReservations(t *testing.T) {
	plain := func(n int, priority int32) []runtime.Object {
		return schedulertest.Members("low", n, priority, func(pod *corev1.Pod) { pod.Annotations = nil })
	}
	at := func(node string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Status.NominatedNodeName = node }
	}
	gone := func(pod *corev1.Pod) {
		pod.DeletionTimestamp, pod.Finalizers = new(metav1.Now()), []string{"example.com/x"}
	}
	evicted := func(pod *corev1.Pod) {
		if pod.Name == "low-0" {
			gone(pod)
			pod.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
				Message: settings.Name + ": preempted by PodGroup default/high of priority 50",
			}}
		}
	}
	elsewhere := func(pod *corev1.Pod) {
		if pod.Name != "low-0" {
			schedulertest.BoundAt(1)(pod)
		}
	}
	low := []types.UID{"low-0", "low-1", "low-2", "low-3"}
	cases := map[string]struct {
		reason  string
		objects []runtime.Object
		minimum int32
		asks    []int // GPUs of each pod of the gang
		place   func(*corev1.Pod)
		group   func(*v2alpha2.PodGroup)
		record  func(*podgroups.ReservationRecord)
		places  int
		victims []string
		dropped string
	}{
		"Honest": {
			"The reservation goes on.",
			plain(4, 10), 1,
			[]int{2},
			at("node-0000"), nil, func(r *podgroups.ReservationRecord) { r.Victims = low[2:] }, 1,
			[]string{"low-2", "low-3"},
			"",
		},
		"TooManyVictims": {
			"Two of them are enough.",
			plain(4, 10), 1,
			[]int{2},
			at("node-0000"), nil, func(r *podgroups.ReservationRecord) { r.Victims = slices.Concat(low, low) }, 1,
			[]string{"low-2", "low-3"},
			"",
		},
		"NoVictimNeeded": {
			"The gang fits as it is.",
			plain(2, 10), 1,
			[]int{2},
			at("node-0000"), nil, func(r *podgroups.ReservationRecord) { r.Victims = low }, 1, nil, "",
		},
		"MoreNominated": {
			"Room is reserved for the minimum.",
			plain(4, 10), 1,
			[]int{1, 1, 1},
			at("node-0000"), nil, func(r *podgroups.ReservationRecord) { r.Victims = low }, 1,
			[]string{"low-3"},
			"",
		},
		"LateDeadline": {
			"The deadline is not later than one that is decided now.",
			plain(4, 10), 1,
			[]int{4},
			at("node-0000"), nil, func(r *podgroups.ReservationRecord) { r.Victims, r.Deadline = low, time.Now().Add(1000*time.Hour) }, 1,
			[]string{"low-0", "low-1", "low-2", "low-3"},
			"",
		},
		"Terminating": {
			"Pods that terminate at the places are waited for, whether they are recorded or not.",
			append(plain(3, 10), schedulertest.Members("old", 1, 10, gone)...), 1,
			[]int{1},
			at("node-0000"), nil, func(*podgroups.ReservationRecord) {}, 1,
			[]string{"old-0"},
			"",
		},
		"Unfinished": {
			"The eviction of a gang had begun: what is left of it is of no use.",
			append(schedulertest.Members("low", 4, 10, evicted, elsewhere), schedulertest.Group("low", 4)), 1,
			[]int{4},
			at("node-0000"), nil,
			func(r *podgroups.ReservationRecord) { r.Victims = low }, 1,
			[]string{"low-0", "low-1", "low-2", "low-3"},
			"",
		},
		"NotEvictedHere": {
			"A pod of a gang terminates for another reason, and the rest is not in the way.",
			append(schedulertest.Members("low", 4, 10, elsewhere, func(pod *corev1.Pod) {
				if pod.Name == "low-0" {
					gone(pod)
				}
			}), schedulertest.Group("low", 4)), 1,
			[]int{4},
			at("node-0000"), nil,
			func(r *podgroups.ReservationRecord) { r.Victims = low }, 1,
			[]string{"low-0"},
			"",
		},
		"Important": {
			"Pods that are as important are not evicted.",
			plain(4, 50), 1,
			[]int{2},
			at("node-0000"), nil, func(r *podgroups.ReservationRecord) { r.Victims = low }, 0, nil, "does not pass on the node",
		},
		"BreaksAGang": {
			"A part of a gang is not evicted.",
			append(schedulertest.Members("low", 4, 10), schedulertest.Group("low", 4)), 1,
			[]int{2},
			at("node-0000"), nil,
			func(r *podgroups.ReservationRecord) { r.Victims = low[:2] }, 0, nil, "would be broken",
		},
		"NoSuchNode": {
			"The node was deleted.",
			plain(4, 10), 1,
			[]int{2},
			at("node-0009"), nil, func(r *podgroups.ReservationRecord) { r.Victims = low }, 0, nil, "node node-0009 does not exist",
		},
		"NotNominated": {
			"A record without places reserves nothing.",
			plain(4, 10), 1,
			[]int{2},
			nil, nil, func(r *podgroups.ReservationRecord) { r.Victims = low }, 0, nil, "not all of its pods are nominated",
		},
		"Placed": {
			"The process ended after the gang was bound, and before it removed the record. That is no reason for a Warning.",
			plain(2, 10), 1,
			[]int{2},
			schedulertest.BoundAt(0), nil, func(r *podgroups.ReservationRecord) { r.Victims = low[2:] }, 0, nil, "",
		},
		"PlacedAndForged": {
			"Nothing that a record says matters to a gang that is placed.",
			plain(2, 10), 1,
			[]int{2},
			schedulertest.BoundAt(0), nil, func(r *podgroups.ReservationRecord) { r.Victims, r.Reason, r.Deadline = low, "x", time.Time{} }, 0, nil, "",
		},
		"PlacedInPart": {
			"The process ended while it bound the gang: the room of the other pod stays reserved.",
			plain(2, 10), 2,
			[]int{1, 1},
			func(pod *corev1.Pod) {
				if at("node-0000")(pod); pod.Name == "high-0" {
					schedulertest.BoundAt(0)(pod)
				}
			}, nil, func(r *podgroups.ReservationRecord) { r.Victims = low[2:] }, 1, nil, "",
		},
		"OtherGeneration": {
			"It was made for another spec.",
			plain(4, 10), 1,
			[]int{2},
			at("node-0000"), nil, func(r *podgroups.ReservationRecord) { r.Generation = 7 }, 0, nil, "generation 7",
		},
		"OtherReason": {
			"This scheduler writes no such record.",
			plain(4, 10), 1,
			[]int{2},
			at("node-0000"), nil, func(r *podgroups.ReservationRecord) { r.Reason = "x" }, 0, nil, `its reason is "x"`,
		},
		"Delayed": {
			"The gang may not preempt yet, so it cannot have begun to.",
			plain(4, 10), 1,
			[]int{2},
			at("node-0000"), func(pg *v2alpha2.PodGroup) {
				pg.CreationTimestamp = metav1.Now()
				pg.Spec.PreemptionDelay = &v2alpha2.Duration{Duration: time.Hour}
			}, func(r *podgroups.ReservationRecord) { r.Victims = low }, 0, nil, "may not preempt yet",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pg := schedulertest.Group("high", tc.minimum)
			objects := append(slices.Clone(tc.objects), schedulertest.Node(0, 4), schedulertest.Node(1, 4), pg)
			for i, gpus := range tc.asks {
				pod := schedulertest.Member("high", i, gpus)
				schedulertest.Prio(50)(pod)
				if tc.place != nil {
					tc.place(pod)
				}
				objects = append(objects, pod)
			}
			if tc.group != nil {
				tc.group(pg)
			}
			r := podgroups.ReservationRecord{Generation: 1, Reason: podgroups.RecordReason, Deadline: time.Now().Add(time.Minute)}
			tc.record(&r)
			recorded(t, pg, r)
			s, events := recovering(t, objects...)
			s.preemptor.RecoverReservations(t.Context())
			if reserved := tc.places > 0; (s.preemptor.cleanups.Len() > 0) == reserved {
				t.Errorf("%s\nThe record is to be removed: %t.", tc.reason, s.preemptor.cleanups.Len() > 0)
			}

			var got []string
			places, key := 0, schedulertest.Key("high")
			if reserved := s.reservations.Of(key); reserved != nil {
				places = len(reserved.Places)
			}
			if one := s.preemptor.gangs[key]; one != nil {
				for _, pod := range one.plan.victims {
					got = append(got, pod.Name)
				}
				slices.Sort(got)
				if latest := time.Now().Add(claimMargin + time.Minute); one.plan.deadline.After(latest) {
					t.Errorf("%s\nThe deadline is %s.", tc.reason, one.plan.deadline)
				}
			}
			if diff := cmp.Diff(tc.victims, got); diff != "" || places != tc.places {
				t.Errorf("%s\n%d places are reserved, want %d; the victims differ (-want +got):\n%s%s", tc.reason, places, tc.places, diff, events.Events)
			}
			if text := strings.Join(events.Events, "\n"); (text == "") != (tc.dropped == "") || !strings.Contains(text, tc.dropped) {
				t.Errorf("%s\nThe events are %q, want one with %q.", tc.reason, text, tc.dropped)
			}
		})
	}
}
