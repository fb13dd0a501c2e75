package scheduler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
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

// A PriorityClass that is created again with another value or policy, which the informer may
// show as an update, wakes the gangs that name it.
func TestWokenByAnotherPriorityClass(t *testing.T) {
	class := func(value int32, policy corev1.PreemptionPolicy) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Value: value, PreemptionPolicy: &policy}
	}
	was := class(10, corev1.PreemptNever)
	cases := map[string]struct {
		reason  string
		was, is any
		want    []string
	}{
		"Same":    {"Nothing has changed.", was, class(10, corev1.PreemptNever), nil},
		"Value":   {"The gang has another priority.", was, class(20, corev1.PreemptNever), []string{"default/high-0"}},
		"Policy":  {"The gang may preempt now.", was, class(10, corev1.PreemptLowerPriority), []string{"default/high-0"}},
		"Created": {"The gang has a priority.", nil, was, []string{"default/high-0"}},
		"Deleted": {"The condition PriorityClassFound changes.", was, nil, []string{"default/high-0"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			named := schedulertest.Group("high", 1, func(pg *v2alpha2.PodGroup) { pg.Spec.PriorityClassName = "own" })
			s := newTestScheduler(t, append(schedulertest.WaitingPods(1), schedulertest.Member("other", 0, 1), named, schedulertest.Group("other", 1))...)
			queue := &activations{pods: sets.New[string]()}
			s.kube.SchedulingQueue, s.kube.Profiles = queue, s.trial.Profiles
			s.onPriorityClass(tc.was, tc.is)
			if diff := cmp.Diff(tc.want, sets.List(queue.pods), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nThe pods that are woken differ (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A PriorityClass that is replaced does not exist for a moment. Gangs that run must not lose
// their priority in that moment, and one that must not preempt does not.
func TestPriorityOfDeletedClass(t *testing.T) {
	named := schedulertest.Group("high", 1, func(pg *v2alpha2.PodGroup) { pg.Spec.PriorityClassName = "own" })
	s := newTestScheduler(t, append(schedulertest.WaitingPods(1), named)...)
	s.kube.SchedulingQueue, s.kube.Profiles = &activations{pods: sets.New[string]()}, s.trial.Profiles
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Value: 80, PreemptionPolicy: new(corev1.PreemptNever)}
	named.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Minute))
	s.onPriorityClass(nil, class)
	s.onPriorityClass(class, nil)
	pods := s.groups.Members(schedulertest.Key("high"))
	if p, never := s.groups.Priority(named, pods), s.groups.Never(named); p != 80 || !never {
		t.Errorf("After its class was deleted, a gang has priority %d; it never preempts: %t.", p, never)
	}
	other := schedulertest.Group("high", 1, func(pg *v2alpha2.PodGroup) { pg.Spec.PriorityClassName = "other" })
	if p, want := s.groups.Priority(other, pods), *pods[0].Spec.Priority; p != want {
		t.Errorf("A gang whose class never existed has priority %d, its pod %d.", p, want)
	}
	later := named.DeepCopy()
	later.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Minute))
	if p, want := s.groups.Priority(later, pods), *pods[0].Spec.Priority; p != want {
		t.Errorf("A gang that was created after the deletion of its class has priority %d, its pod %d.", p, want)
	}
}

// Pods that are to be evicted do not count as members, so a gang that needs them is held at
// the gate. When they stay after all, its pods that wait are woken.
func TestWokenByPodsThatStay(t *testing.T) {
	waiting := schedulertest.Member("low", 9, 1)
	low := schedulertest.Members("low", 2, 10)
	s := newTestScheduler(t, append(low, waiting, schedulertest.Group("low", 2), schedulertest.Node(0, 4))...)
	queue := &activations{pods: sets.New[string]()}
	s.kube.SchedulingQueue, s.kube.Profiles, s.groups.OnStay = queue, s.trial.Profiles, s.onStay
	key := schedulertest.Key("low")
	if !s.gates.Regate(key) {
		t.Fatal("The gang is complete, and its gate is closed.")
	}
	for _, pod := range schedulertest.AsPods(low) {
		s.groups.Mark(pod)
	}
	if s.gates.Regate(key) {
		t.Fatal("Pods that are to be evicted count.")
	}
	for _, pod := range schedulertest.AsPods(low) {
		s.groups.Unmark(pod)
	}
	if is := s.gates.Get(key); is.Refusal != nil {
		t.Errorf("The gate stays closed: %s", is.Refusal.Message)
	}
	if diff := cmp.Diff([]string{"default/low-9"}, sets.List(queue.pods)); diff != "" {
		t.Errorf("The pods that are woken differ (-want +got):\n%s", diff)
	}
}
