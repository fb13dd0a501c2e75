package preempt

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	"k8s.io/apiserver/pkg/storage"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/preemption"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
)

// podAPI is an API server with one pod, whatever its name. It answers each deletion with the
// next of some errors, and deletes the pod when there are none left.
type podAPI struct {
	*testing.T

	mu      sync.Mutex
	pod     *corev1.Pod // nil if there is none
	answers []error
	deletes int
	stays   bool // the pod is there after its deletion, too
}

// client returns a client of it.
func (a *podAPI) client() clientset.Interface {
	server := httptest.NewServer(a)
	a.Cleanup(server.Close)
	client, err := clientset.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		a.Fatal(err)
	}

	return client
}

func (a *podAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var answer error
	switch {
	case r.Method == http.MethodDelete:
		a.deletes++
		if len(a.answers) > 0 {
			answer, a.answers = a.answers[0], a.answers[1:]
		} else if !a.stays {
			a.pod = nil
		}
	case a.pod == nil:
		answer = apierrors.NewNotFound(corev1.Resource("pods"), path.Base(r.URL.Path))
	}
	w.Header().Set("Content-Type", "application/json")
	var body any = &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}
	if status := apierrors.APIStatus(nil); errors.As(answer, &status) {
		failure := status.Status()
		failure.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		w.WriteHeader(int(failure.Code))
		body = &failure
	} else if r.Method != http.MethodDelete {
		pod := a.pod.DeepCopy()
		pod.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
		body = pod
	}
	if err := json.NewEncoder(w).Encode(body); err != nil {
		a.Error(err)
	}
}

// preconditionFailed is what the API server answers if another pod has the name.
func preconditionFailed(pod string) error {
	return apierrors.NewConflict(corev1.Resource("pods"), pod, storage.NewInvalidObjError("/pods/default/"+pod,
		"Precondition failed: UID in precondition: "+pod+", UID in object meta: other"))
}

// deniedWith is what the API server answers if an admission webhook rejects a request with a
// code and a reason of its own.
func deniedWith(code int32, reason metav1.StatusReason) error {
	return webhookerrors.ToStatusErr("guard.example.com", &metav1.Status{Code: code, Reason: reason, Message: "the pod is being saved"})
}

// A victim without a grace period is gone as soon as it is deleted, and the informer still
// has it as it ran. Until the informer knows, the pod does not count as a member of its gang,
// however the preemption ends, and it is not evicted again.
func TestEvictedAtOnce(t *testing.T) {
	other := func(pod *corev1.Pod) *corev1.Pod {
		pod.UID = "other"

		return pod
	}
	terminates := func(pod *corev1.Pod) *corev1.Pod {
		pod.DeletionTimestamp, pod.Finalizers = new(metav1.Now()), []string{"example.com/x"}

		return pod
	}
	cases := map[string]struct {
		reason string
		is     func(*corev1.Pod) *corev1.Pod // what the API server has; nil for the victim
		answer []error                       // to the deletion
	}{
		"Deleted":     {"The pod was deleted at once.", nil, nil},
		"Gone":        {"Another client was faster.", func(*corev1.Pod) *corev1.Pod { return nil }, []error{apierrors.NewNotFound(corev1.Resource("pods"), "low-0")}},
		"Another":     {"Its controller has created a pod of that name again.", other, []error{preconditionFailed("low-0")}},
		"Terminating": {"A webhook rejects the deletion because another client has deleted the pod.", terminates, []error{deniedWith(http.StatusConflict, metav1.StatusReasonConflict)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			low := schedulertest.Members("low", 1, 10)
			s := newTestScheduler(t, append(append(schedulertest.WaitingPods(1), schedulertest.Group("high", 1), schedulertest.Group("low", 1), schedulertest.Node(0, 8)), low...)...)
			key, victim := schedulertest.Key("high"), schedulertest.AsPods(low)[0]
			api := &podAPI{T: t, pod: victim.DeepCopy(), answers: tc.answer}
			if tc.is != nil {
				api.pod = tc.is(api.pod)
			}
			s.groups.Client = api.client()
			of := &plan{group: "high", generation: 1, priority: 50, victims: schedulertest.AsPods(low)}
			if err := s.preemptor.claim(of); err != nil {
				t.Fatal(err)
			}
			if err := s.preemptor.evict(t.Context(), key, of); err != nil {
				t.Fatal(err)
			}
			one := &preempting{plan: of, state: preemption.State{Phase: preemption.Evicted, Since: time.Now()}}
			if _, f := s.preemptor.facts(key, one); f.Victims != 1 || f.Running != 0 {
				t.Errorf("%s\nThe facts are %+v.", tc.reason, f)
			}
			if err := s.preemptor.evict(t.Context(), key, of); err != nil || api.deletes != 1 {
				t.Errorf("%s\nThe victim was deleted %d times: %v", tc.reason, api.deletes, err)
			}
			s.preemptor.release(t.Context(), key, one, preemption.Facts{Applies: true, Now: time.Now()})
			if pods := s.groups.Members(schedulertest.Key("low")); len(pods) > 0 || !s.groups.IsLeaving(victim.UID) {
				t.Errorf("%s\nA pod that no longer exists counts as a member of its gang.", tc.reason)
			}
			if err := s.groups.Pods.GetStore().Delete(victim); err != nil {
				t.Fatal(err)
			}
			s.groups.IsOwnChange(victim, nil)
			if s.groups.IsLeaving(victim.UID) || s.groups.WasDeleted(victim.UID) {
				t.Errorf("%s\nThe pod is remembered.", tc.reason)
			}
		})
	}
}

// An admission webhook rejects the deletion of a victim with an answer that looks like that
// to a pod which no longer exists. The pod runs, so the deletion is retried like any other
// that failed.
func TestEvictionDeniedByAWebhook(t *testing.T) {
	cases := map[string]struct {
		reason string
		answer error
	}{
		"Conflict": {"409 may mean that another pod has the name.", deniedWith(http.StatusConflict, metav1.StatusReasonConflict)},
		"NotFound": {"404 may mean that there is no such pod.", deniedWith(http.StatusNotFound, metav1.StatusReasonNotFound)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			low := schedulertest.Members("low", 1, 10)
			s := newTestScheduler(t, append(append(schedulertest.WaitingPods(1), schedulertest.Group("high", 1), schedulertest.Group("low", 1), schedulertest.Node(0, 8)), low...)...)
			key, victim := schedulertest.Key("high"), schedulertest.AsPods(low)[0]
			api := &podAPI{T: t, pod: victim.DeepCopy(), answers: []error{tc.answer}}
			s.groups.Client = api.client()
			of := &plan{group: "high", generation: 1, priority: 50, victims: schedulertest.AsPods(low)}
			if err := s.preemptor.claim(of); err != nil {
				t.Fatal(err)
			}
			one := &preempting{plan: of, state: preemption.State{Phase: preemption.Nominated, Since: time.Now()}}
			evict := func() bool {
				return s.preemptor.act(t.Context(), key, highGang(t, s), one, preemption.Evict, preemption.Facts{Now: time.Now(), Applies: true})
			}
			if evict() || one.state.Phase != preemption.Nominated || one.state.Errors != 1 || one.state.Retry.IsZero() {
				t.Errorf("%s\nAfter a deletion that was rejected, the state is %+v.", tc.reason, one.state)
			}
			if p := s.reporter.Progress(key); p == nil || p.Reason != v2alpha2.ReasonPreemptionBlocked || !strings.Contains(p.Message, "the pod is being saved") {
				t.Errorf("%s\nThe group reports %+v.", tc.reason, p)
			}
			if s.groups.WasDeleted(victim.UID) {
				t.Errorf("%s\nA pod that runs counts as deleted.", tc.reason)
			}
			if !evict() || api.deletes != 2 || one.state.Phase != preemption.Evicted || !s.groups.WasDeleted(victim.UID) {
				t.Errorf("%s\nAfter %d deletions the state is %+v.", tc.reason, api.deletes, one.state)
			}
		})
	}
}

// One of two victims is deleted at first. Whatever happens then, the PodGroup has one event,
// which counts the pods that were evicted.
func TestPreemptedInTwoSteps(t *testing.T) {
	const event = "Normal Preempting: %d less important pods are evicted to make room for 1 pods"
	key := schedulertest.Key("high")
	evict := func(t *testing.T, s *testScheduler, of *plan) {
		t.Helper()
		if err := s.preemptor.evict(t.Context(), key, of); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct {
		reason string
		then   func(t *testing.T, s *testScheduler, of *plan)
		want   string
	}{
		"Retried": {"The other one is deleted when that is retried.", evict, fmt.Sprintf(event, 2)},
		"Again": {
			"A victim that uses its room again is evicted again.", func(t *testing.T, s *testScheduler, of *plan) {
				t.Helper()
				evict(t, s, of)
				s.groups.IsOwnChange(of.victims[0], nil)
				evict(t, s, of)
			}, fmt.Sprintf(event, 2),
		},
		"Ended": {
			"The other one ends by itself.", func(t *testing.T, s *testScheduler, of *plan) {
				t.Helper()
				for _, pod := range of.victims {
					if err := s.groups.Pods.GetStore().Delete(pod); err != nil {
						t.Fatal(err)
					}
				}
				evict(t, s, of)
			}, fmt.Sprintf(event, 1),
		},
		"GivenUp": {
			"The other one cannot be evicted.", func(t *testing.T, s *testScheduler, of *plan) {
				t.Helper()
				one := &preempting{plan: of, state: preemption.State{Phase: preemption.Nominated}}
				s.preemptor.release(t.Context(), key, one, preemption.Facts{Applies: true, Now: time.Now()})
			}, fmt.Sprintf(event, 1),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			low := schedulertest.Members("low", 2, 10)
			s := newTestScheduler(t, append(append(schedulertest.WaitingPods(1), schedulertest.Group("high", 1), schedulertest.Group("low", 1), schedulertest.Node(0, 8)), low...)...)
			events := s.events
			api := &podAPI{T: t, pod: schedulertest.AsPods(low)[0].DeepCopy(), answers: []error{apierrors.NewInternalError(schedulertest.ErrBroken)}, stays: true}
			s.groups.Client = api.client()
			of := &plan{group: "high", generation: 1, priority: 50, pods: schedulertest.AsPods(schedulertest.WaitingPods(1)), victims: schedulertest.AsPods(low)}
			if err := s.preemptor.claim(of); err != nil {
				t.Fatal(err)
			}
			if err := s.preemptor.evict(t.Context(), key, of); err == nil {
				t.Fatal("No deletion failed: the test tests nothing.")
			}
			tc.then(t, s, of)
			got := slices.DeleteFunc(events.Events, func(event string) bool { return strings.Contains(event, "Evicted") })
			if diff := cmp.Diff([]string{tc.want}, got); diff != "" {
				t.Errorf("%s\nThe events differ (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// The event of the deletion is handled before the answer of the API server is.
func TestEvictedBeforeTheAnswer(t *testing.T) {
	low := schedulertest.AsPods(schedulertest.Members("low", 1, 10))
	s := newTestScheduler(t, low[0], schedulertest.Node(0, 8))
	s.groups.Mark(low[0])
	if err := s.groups.Pods.GetStore().Delete(low[0]); err != nil {
		t.Fatal(err)
	}
	s.groups.IsOwnChange(low[0], nil)
	s.groups.DeletedPod(low[0])
	if s.groups.IsLeaving("low-0") || s.groups.WasDeleted("low-0") {
		t.Error("The pod is remembered, and no event will end that.")
	}
}

// The scheduler's cache is updated by another handler of the same watch. As long as it has
// the victim, the gang is not tried: the attempt would fail.
func TestFreedOnceTheCacheKnows(t *testing.T) {
	low := schedulertest.AsPods(schedulertest.Members("low", 1, 10))
	s := newTestScheduler(t, append(schedulertest.WaitingPods(1), low[0], schedulertest.Group("high", 1), schedulertest.Node(0, 8))...)
	done, err := s.trial.Open(t.Context(), s.groups.Placed)
	if err != nil {
		t.Fatal(err)
	}
	done()
	if err := s.groups.Pods.GetStore().Delete(low[0]); err != nil {
		t.Fatal(err)
	}
	one := &preempting{
		plan:  &plan{group: "high", generation: 1, victims: low, pods: schedulertest.AsPods(schedulertest.WaitingPods(1)), nodes: []string{"node-0000"}},
		state: preemption.State{Phase: preemption.Evicted, Since: time.Now()},
	}
	step := func() preemption.Phase {
		_, f := s.preemptor.facts(schedulertest.Key("high"), one)
		state, _, _ := one.state.Next(f)

		return state.Phase
	}
	if phase := step(); phase != preemption.Evicted {
		t.Errorf("The informer has no victim any more, and the cache has one: the phase is %v.", phase)
	}
	if err := s.trial.Remove(t.Context(), low[0]); err != nil {
		t.Fatal(err)
	}
	if phase := step(); phase != preemption.Freed {
		t.Errorf("The victim is gone: the phase is %v.", phase)
	}
}

// Two gangs wait for the same terminating pod. Both are dealt with when it is gone, also if
// another one stops to wait for it.
func TestGoneWakesAllThatWait(t *testing.T) {
	low := schedulertest.AsPods(schedulertest.Members("low", 1, 10))
	s := newTestScheduler(t, low[0], schedulertest.Node(0, 8))
	p := s.preemptor
	plans := map[string]*plan{}
	for _, name := range []string{"a", "b", "c"} {
		plans[name] = &plan{victims: []*corev1.Pod{low[0]}}
		p.resume(schedulertest.Key(name), plans[name])
	}
	for range plans {
		key, _ := p.queue.Get()
		p.queue.Done(key)
	}
	p.release(t.Context(), schedulertest.Key("c"), p.gangs[schedulertest.Key("c")], preemption.Facts{})
	p.Gone(low[0].UID)
	woken := map[string]bool{}
	for p.queue.Len() > 0 {
		key, _ := p.queue.Get()
		p.queue.Done(key)
		woken[key.Name] = true
	}
	if !woken["a"] || !woken["b"] || woken["c"] || len(p.victims) > 0 {
		t.Errorf("Woken are %v; still awaited are %v.", woken, p.victims)
	}
}
