package scheduler

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
)

// activations is a queue that records which pods are activated.
type activations struct {
	internalqueue.SchedulingQueue

	pods sets.Set[string]
}

func (a *activations) Activate(_ klog.Logger, pods map[string]*corev1.Pod) {
	for name := range pods {
		a.pods.Insert(name)
	}
}

// Pods that are to be evicted do not count as members, so a gang that needs them is held at
// the gate. When they stay after all, its pods that wait are woken.
func TestWokenByPodsThatStay(t *testing.T) {
	waiting := member("low", 9, 1)
	low := members("low", 2, 10)
	s := newTestScheduler(t, append(low, waiting, aGroup("low", 2), node(0, 4))...)
	queue := &activations{pods: sets.New[string]()}
	s.kube.SchedulingQueue, s.kube.Profiles, s.groups.stays = queue, s.trial.profiles, s.onStay
	key := gangNamed("low")
	if !s.regate(key) {
		t.Fatal("The gang is complete, and its gate is closed.")
	}
	if err := s.claim(&plan{priority: 50, victims: asPods(low)}); err != nil {
		t.Fatal(err)
	}
	if s.regate(key) {
		t.Fatal("Pods that are to be evicted count.")
	}
	for _, pod := range asPods(low) {
		s.groups.unmark(pod)
	}
	if is := s.gates.get(key); is.refusal != nil {
		t.Errorf("The gate stays closed: %s", is.refusal.Message)
	}
	if diff := cmp.Diff([]string{"default/low-9"}, sets.List(queue.pods)); diff != "" {
		t.Errorf("The pods that are woken differ (-want +got):\n%s", diff)
	}
}
