package reservation

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/podinfo"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
)

// seen returns names and priorities of the pods that filters see on a node.
func seen(r *Reservations, node string) map[string]int32 {
	pods := map[string]int32{}
	for _, info := range r.NominatedPodsForNode(node) {
		pods[info.GetPod().Name] = corev1helpers.PodPriority(info.GetPod())
	}

	return pods
}

func TestReservations(t *testing.T) {
	queue := schedulertest.Nominations{"n1": {podinfo.New(schedulertest.Pod("plain", 7)), podinfo.New(schedulertest.Pod("g-0", 0))}}
	r := New(queue)
	pods := []*corev1.Pod{schedulertest.Pod("g-0", 0), schedulertest.Pod("g-1", 0)}
	r.Set(NewReservation(schedulertest.KeyInA("g"), pods, []string{"n1", "n2"}, 50))
	r.Set(NewReservation(schedulertest.KeyInA("h"), []*corev1.Pod{schedulertest.Pod("h-0", 9)}, []string{"n1"}, 9))

	if diff := cmp.Diff(map[string]int32{"plain": 7, "g-0": 50, "h-0": 9}, seen(r, "n1")); diff != "" {
		t.Errorf("Reserved places have the priority of the gang, and a pod is there once (-want +got):\n%s", diff)
	}
	if *pods[0].Spec.Priority != 0 {
		t.Error("The pod itself was changed.")
	}
	done := r.Try(schedulertest.KeyInA("g"))
	if diff := cmp.Diff(map[string]int32{"plain": 7, "h-0": 9}, seen(r, "n1")); diff != "" {
		t.Errorf("A gang that is tried does not see its own places (-want +got):\n%s", diff)
	}
	if r.Node("g-1") != "n2" {
		t.Errorf("Pod g-1 is tried first on node %q.", r.Node("g-1"))
	}
	done()
	if diff := cmp.Diff(map[string]int32{"g-1": 50}, seen(r, "n2")); diff != "" {
		t.Errorf("After the try everything is as before (-want +got):\n%s", diff)
	}
	if r.Release(schedulertest.KeyInA("g")) == nil || r.Release(schedulertest.KeyInA("g")) != nil {
		t.Error("A reservation is released once.")
	}
	if diff := cmp.Diff(map[string]int32{"plain": 7, "g-0": 0, "h-0": 9}, seen(r, "n1")); diff != "" {
		t.Errorf("Without a reservation the queue's nomination counts (-want +got):\n%s", diff)
	}
	r.Release(schedulertest.KeyInA("h"))
	if r.Any() || len(seen(r, "n2")) > 0 {
		t.Error("Room is kept for nobody.")
	}
}

// The queue may have nominations of a gang that has no reservation yet, after a restart.
// They must not count twice when the gang is tried.
func TestOwnNominations(t *testing.T) {
	named := func(name, group string) fwk.PodInfo {
		pod := schedulertest.Pod(name, 7)
		pod.Annotations = map[string]string{decide.GroupAnnotation: group}

		return podinfo.New(pod)
	}
	r := New(schedulertest.Nominations{"n": {podinfo.New(schedulertest.Pod("plain", 7)), named("g-0", "g"), named("g-1", "g"), named("h-0", "h")}})
	done := r.Try(schedulertest.KeyInA("g"))
	if diff := cmp.Diff(map[string]int32{"plain": 7, "h-0": 7}, seen(r, "n")); diff != "" {
		t.Errorf("A gang that is tried does not see its own nominations (-want +got):\n%s", diff)
	}
	done()
	if diff := cmp.Diff(map[string]int32{"plain": 7, "g-0": 7, "g-1": 7, "h-0": 7}, seen(r, "n")); diff != "" {
		t.Errorf("To others they count (-want +got):\n%s", diff)
	}
}

// Filters read in many goroutines while others release.
func TestReservationsSideBySide(t *testing.T) {
	r := New(schedulertest.Nominations{})
	var wg sync.WaitGroup
	for i := range 8 {
		key := schedulertest.KeyInA(string(rune('a' + i)))
		wg.Go(func() {
			for range 200 {
				r.Set(NewReservation(key, []*corev1.Pod{schedulertest.Pod(key.Name, 1)}, []string{"n"}, 1))
				if _, ok := seen(r, "n")[key.Name]; !ok {
					t.Error("A reservation was lost.")
				}
				r.Release(key)
			}
		})
	}
	wg.Wait()
	if r.Any() {
		t.Error("Room is kept for nobody.")
	}
}
