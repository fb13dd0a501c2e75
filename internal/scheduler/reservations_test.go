package scheduler

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// nominations is a PodNominator that has what a test puts there.
type nominations map[string][]fwk.PodInfo

func (nominations) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}
func (nominations) DeleteNominatedPodIfExists(*corev1.Pod)                        {}
func (nominations) UpdateNominatedPod(klog.Logger, *corev1.Pod, fwk.PodInfo)      {}
func (n nominations) NominatedPodsForNode(node string) []fwk.PodInfo              { return slices.Clone(n[node]) }

func aPod(name string, priority int32) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{Priority: &priority},
	}
}

func gangKey(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "a", Name: name}
}

// seen returns names and priorities of the pods that filters see on a node.
func seen(r *reservations, node string) map[string]int32 {
	pods := map[string]int32{}
	for _, info := range r.NominatedPodsForNode(node) {
		pods[info.GetPod().Name] = corev1helpers.PodPriority(info.GetPod())
	}

	return pods
}

func TestReservations(t *testing.T) {
	queue := nominations{"n1": {podInfo(aPod("plain", 7)), podInfo(aPod("g-0", 0))}}
	r := newReservations(queue)
	pods := []*corev1.Pod{aPod("g-0", 0), aPod("g-1", 0)}
	r.set(newReservation(gangKey("g"), pods, []string{"n1", "n2"}, 50))
	r.set(newReservation(gangKey("h"), []*corev1.Pod{aPod("h-0", 9)}, []string{"n1"}, 9))

	if diff := cmp.Diff(map[string]int32{"plain": 7, "g-0": 50, "h-0": 9}, seen(r, "n1")); diff != "" {
		t.Errorf("Reserved places have the priority of the gang, and a pod is there once (-want +got):\n%s", diff)
	}
	if *pods[0].Spec.Priority != 0 {
		t.Error("The pod itself was changed.")
	}
	done := r.try(gangKey("g"))
	if diff := cmp.Diff(map[string]int32{"plain": 7, "h-0": 9}, seen(r, "n1")); diff != "" {
		t.Errorf("A gang that is tried does not see its own places (-want +got):\n%s", diff)
	}
	if r.node("g-1") != "n2" {
		t.Errorf("Pod g-1 is tried first on node %q.", r.node("g-1"))
	}
	done()
	if diff := cmp.Diff(map[string]int32{"g-1": 50}, seen(r, "n2")); diff != "" {
		t.Errorf("After the try everything is as before (-want +got):\n%s", diff)
	}
	if r.release(gangKey("g")) == nil || r.release(gangKey("g")) != nil {
		t.Error("A reservation is released once.")
	}
	if diff := cmp.Diff(map[string]int32{"plain": 7, "g-0": 0, "h-0": 9}, seen(r, "n1")); diff != "" {
		t.Errorf("Without a reservation the queue's nomination counts (-want +got):\n%s", diff)
	}
	r.release(gangKey("h"))
	if r.any() || len(seen(r, "n2")) > 0 {
		t.Error("Room is kept for nobody.")
	}
}

// The queue may have nominations of a gang that has no reservation yet, after a restart.
// They must not count twice when the gang is tried.
func TestOwnNominations(t *testing.T) {
	named := func(name, group string) fwk.PodInfo {
		pod := aPod(name, 7)
		pod.Annotations = map[string]string{decide.GroupAnnotation: group}

		return podInfo(pod)
	}
	r := newReservations(nominations{"n": {podInfo(aPod("plain", 7)), named("g-0", "g"), named("g-1", "g"), named("h-0", "h")}})
	done := r.try(gangKey("g"))
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
	r := newReservations(nominations{})
	var wg sync.WaitGroup
	for i := range 8 {
		key := gangKey(string(rune('a' + i)))
		wg.Go(func() {
			for range 200 {
				r.set(newReservation(key, []*corev1.Pod{aPod(key.Name, 1)}, []string{"n"}, 1))
				if _, ok := seen(r, "n")[key.Name]; !ok {
					t.Error("A reservation was lost.")
				}
				r.release(key)
			}
		})
	}
	wg.Wait()
	if r.any() {
		t.Error("Room is kept for nobody.")
	}
}
