package scheduler

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// counted returns how many panics a worker has recovered from while do ran.
func counted(t *testing.T, worker string, do func()) int {
	t.Helper()
	value := func() float64 {
		n, err := testutil.GetCounterMetricValue(panics.WithLabelValues(worker))
		if err != nil {
			t.Fatal(err)
		}

		return n
	}
	before := value()
	do()

	return int(value() - before)
}

// A panic in the queue's plugin, in a handler of events or in a timer does not end the
// process. A scheduler without parts panics wherever it is used.
func TestPanicsAreContained(t *testing.T) {
	pod := member("g", 0, 1)
	q := &framework.QueuedPodInfo{PodInfo: &framework.PodInfo{Pod: pod}}
	cases := map[string]struct {
		worker string
		do     func(t *testing.T, s *Scheduler)
	}{
		"PreEnqueue": {workerGate, func(t *testing.T, s *Scheduler) {
			t.Helper()
			if status := (&plugin{}).PreEnqueue(t.Context(), pod); status.IsSuccess() {
				t.Error("The pod enters the queue.")
			}
		}},
		"Less": {workerGate, func(_ *testing.T, s *Scheduler) { (&plugin{}).Less(q, q) }},
		"Timer": {workerEvents, func(_ *testing.T, s *Scheduler) {
			s.wake(gangNamed("g"))
		}},
		"Event": {workerEvents, func(t *testing.T, s *Scheduler) {
			t.Helper()
			s.contained(s.onPod)(nil, cache.DeletedFinalStateUnknown{Key: "default/g-0", Obj: pod})
		}},
		"Backstop": {workerBackstop, func(t *testing.T, s *Scheduler) {
			t.Helper()
			s.gates = newGates(s.groups, s.wake)
			s.gates.set(gangNamed("g"), &decide.Refusal{}, 0)
			s.gates.lostWakeUps(t.Context(), flowcontrol.NewFakeAlwaysRateLimiter(), nil)
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if n := counted(t, tc.worker, func() { tc.do(t, &Scheduler{}) }); n != 1 {
				t.Errorf("%d panics were counted.", n)
			}
		})
	}
}

// brokenSteps panic at one step.
type brokenSteps struct {
	*steps

	at string
}

func (b brokenSteps) prepare(ctx context.Context, m int) error {
	if b.at == "prepare" && m == 0 {
		panic("index out of range")
	}

	return b.steps.prepare(ctx, m)
}

func (b brokenSteps) bind(ctx context.Context, m int) error {
	if b.at == "bind" && m == 0 {
		panic("index out of range")
	}

	return b.steps.bind(ctx, m)
}

func (b brokenSteps) settle(bound bool) {
	if b.at == "settle" {
		panic("index out of range")
	}
	b.steps.settle(bound)
}

// A panic while a pod is bound is an error of that pod. The round ends.
func TestRoundPanics(t *testing.T) {
	for at, want := range map[string]string{
		"prepare": "fail [0 1] because of 0: panic: index out of range",
		"bind":    "drop 0: panic: index out of range",
		"settle":  "bind 1",
	} {
		t.Run(at, func(t *testing.T) {
			script := &steps{takes: []time.Duration{0, 0}}
			s := safeSteps{brokenSteps{script, at}, gangNamed("g")}
			script.round = newRound(t.Context(), s, 2, 2, [][]int{{0}, {1}}, time.Minute, func() {})
			if n := counted(t, workerBinding, script.round.run); n != 1 {
				t.Errorf("%d panics were counted.", n)
			}
			if got := strings.Join(script.events, "; "); !strings.Contains(got, want) {
				t.Errorf("It happens %q, which lacks %q.", got, want)
			}
		})
	}
}

// A search that panics while it begins does not keep the others from beginning.
func TestTrialOpenPanics(t *testing.T) {
	o := offline(t, node(0, 1), member("g", 0, 1))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("There is no panic.")
			}
		}()
		_, _ = o.trial.open(t.Context(), func(*corev1.Pod) *corev1.Pod { panic("index out of range") })
	}()
	done, err := o.trial.open(t.Context(), func(pod *corev1.Pod) *corev1.Pod { return pod })
	if err != nil {
		t.Fatal(err)
	}
	done()
}

// The backstop wakes a gang whose gate is closed for a reason that is over, and counts it:
// not at once, because an event may be on its way.
func TestLostWakeUps(t *testing.T) {
	s := newTestScheduler(t, append(waitingPods(1), aGroup("high", 1), aGroup("short", 2))...)
	old := &decide.Refusal{Reason: v2alpha2.ReasonTooFewPods}
	complete, short := gangNamed("high"), gangNamed("short")
	s.gates.set(complete, old, 0)
	s.gates.set(short, old, 0)
	count := func() float64 {
		n, err := testutil.GetCounterMetricValue(lostWakeUps)
		if err != nil {
			t.Fatal(err)
		}

		return n
	}
	before, limit := count(), flowcontrol.NewFakeAlwaysRateLimiter()
	suspects := s.gates.lostWakeUps(t.Context(), limit, nil)
	if len(suspects) != 1 || suspects[complete] != old || count() != before {
		t.Fatalf("The first time, suspects are %v.", suspects)
	}
	renewed := &decide.Refusal{Reason: v2alpha2.ReasonTooFewPods}
	s.gates.set(complete, renewed, 0)
	if suspects = s.gates.lostWakeUps(t.Context(), limit, suspects); suspects[complete] != renewed || count() != before {
		t.Fatalf("After an event, suspects are %v.", suspects)
	}
	if suspects = s.gates.lostWakeUps(t.Context(), limit, suspects); len(suspects) != 0 || count() != before+1 {
		t.Errorf("The second time, suspects are %v, and %v were counted.", suspects, count()-before)
	}
	if s.gates.get(complete).refusal != nil || s.gates.get(short).refusal == nil {
		t.Error("Only the gate of the complete gang is open.")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s.gates.backstop(ended) // it returns
}

// The most important gang is dealt with first, then the one that waits the longest, and each
// of them once.
func TestPriorityQueue(t *testing.T) {
	priorities := map[string]int32{"a": 10, "b": 50, "c": 10, "d": 50}
	q := newPriorityQueue(func(key types.NamespacedName) int32 { return priorities[key.Name] })
	defer q.ShutDown()
	for _, name := range []string{"a", "b", "c", "a", "d", "b"} {
		q.Add(gangNamed(name))
	}
	got := ""
	for q.Len() > 0 {
		key, _ := q.Get()
		got += key.Name
		q.Done(key)
	}
	if got != "bdac" {
		t.Errorf("The order is %s.", got)
	}
}

// Gangs of one priority take turns between namespaces.
func TestPriorityQueueNamespaces(t *testing.T) {
	priorities := map[string]int32{"z9": 50}
	q := newPriorityQueue(func(key types.NamespacedName) int32 { return priorities[key.Name] })
	defer q.ShutDown()
	add := func(names ...string) {
		for _, name := range names {
			q.Add(types.NamespacedName{Namespace: name[:1], Name: name})
		}
	}
	var got []string
	get := func(n int) {
		for range n {
			key, _ := q.Get()
			got = append(got, key.Name)
			q.Done(key)
		}
	}
	add("a1", "a2", "a3", "a4", "a5", "b1", "b2")
	get(3)
	add("c1", "b3", "z9", "c2") // a namespace that comes later has not saved up turns
	get(q.Len())
	if diff := cmp.Diff([]string{"a1", "b1", "a2", "z9", "b2", "c1", "a3", "b3", "c2", "a4", "a5"}, got); diff != "" {
		t.Errorf("The order differs (-want +got):\n%s", diff)
	}
	add("a6", "b4")
	if get(2); got[len(got)-2] != "a6" {
		t.Errorf("Turns of gangs that are gone are remembered: %v", got)
	}
}

// A place that a cycle only tries is not seen by others. One that is being bound is.
func TestTentativePlaces(t *testing.T) {
	s := newTestScheduler(t, append(waitingPods(1), aGroup("high", 1), node(0, 8))...)
	pod := s.groups.members(gangNamed("high"))[0]
	tried := pod.DeepCopy()
	tried.Spec.NodeName = node(0, 8).Name
	if err := s.trial.cache.AssumePod(klog.FromContext(t.Context()), tried); err != nil {
		t.Fatal(err)
	}
	if is := s.groups.members(gangNamed("high"))[0]; is.Spec.NodeName != "" || s.groups.usingRoom(tried) != nil {
		t.Errorf("A pod that is tried on a node is seen on %q.", is.Spec.NodeName)
	}
	s.groups.commit(pod.UID, tried.Spec.NodeName)
	if is := s.groups.members(gangNamed("high"))[0]; is.Spec.NodeName != tried.Spec.NodeName || s.groups.usingRoom(tried) == nil {
		t.Errorf("A pod that is being bound is seen on %q.", is.Spec.NodeName)
	}
	// The preemption evicts what usingRoom returns.
	if s.groups.usingRoom(s.groups.usingRoom(tried)) == nil {
		t.Error("A pod that is being bound is taken for one that has given up its place.")
	}
}
