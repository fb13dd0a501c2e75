package scheduler

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/arbor-control/arbor/internal/decide/preemption"
)

// A victim without a grace period is gone as soon as it is deleted, and the informer still
// has it as it ran. Until the informer knows, the pod does not count as a member of its gang,
// however the preemption ends, and it is not evicted again.
func TestEvictedAtOnce(t *testing.T) {
	cases := map[string]struct {
		reason string
		answer int // of the API server to the deletion
	}{
		"Deleted": {"The pod was deleted at once.", http.StatusOK},
		"Gone":    {"Another client was faster.", http.StatusNotFound},
		"Another": {"Its controller has created a pod of that name again.", http.StatusConflict},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			deletes := 0
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if r.Method != http.MethodDelete {
					_, _ = w.Write([]byte(`{"kind":"Pod","apiVersion":"v1"}`))

					return
				}
				deletes++
				w.WriteHeader(tc.answer)
				_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1"}`))
			}))
			defer api.Close()
			client, err := clientset.NewForConfig(&rest.Config{Host: api.URL})
			if err != nil {
				t.Fatal(err)
			}
			low := members("low", 1, 10)
			s := newTestScheduler(t, append(append(waitingPods(1), aGroup("high", 1), aGroup("low", 1), node(0, 8)), low...)...)
			s.groups.client = client
			key, victim := gangNamed("high"), asPods(low)[0]
			of := &plan{group: "high", generation: 1, priority: 50, victims: asPods(low)}
			if err := s.claim(of); err != nil {
				t.Fatal(err)
			}
			if err := s.preemptor.evict(t.Context(), key, of); err != nil {
				t.Fatal(err)
			}
			one := &preempting{plan: of, state: preemption.State{Phase: preemption.Evicted, Since: time.Now()}}
			if _, f := s.preemptor.facts(key, one); f.Victims != 1 || f.Running != 0 {
				t.Errorf("%s\nThe facts are %+v.", tc.reason, f)
			}
			if err := s.preemptor.evict(t.Context(), key, of); err != nil || deletes != 1 {
				t.Errorf("%s\nThe victim was deleted %d times: %v", tc.reason, deletes, err)
			}
			s.preemptor.release(t.Context(), key, one, preemption.Facts{Applies: true, Now: time.Now()})
			if pods := s.groups.members(gangNamed("low")); len(pods) > 0 || !s.groups.isLeaving(victim.UID) {
				t.Errorf("%s\nA pod that no longer exists counts as a member of its gang.", tc.reason)
			}
			if err := s.groups.pods.GetStore().Delete(victim); err != nil {
				t.Fatal(err)
			}
			s.groups.isOwnChange(victim, nil)
			if s.groups.isLeaving(victim.UID) || s.groups.wasDeleted(victim.UID) {
				t.Errorf("%s\nThe pod is remembered.", tc.reason)
			}
		})
	}
}

// The event of the deletion is handled before the answer of the API server is.
func TestEvictedBeforeTheAnswer(t *testing.T) {
	low := asPods(members("low", 1, 10))
	s := newTestScheduler(t, low[0], node(0, 8))
	s.groups.mark(low[0])
	if err := s.groups.pods.GetStore().Delete(low[0]); err != nil {
		t.Fatal(err)
	}
	s.groups.isOwnChange(low[0], nil)
	s.groups.deletedPod(low[0])
	if s.groups.isLeaving("low-0") || s.groups.wasDeleted("low-0") {
		t.Error("The pod is remembered, and no event will end that.")
	}
}

// The scheduler's cache is updated by another handler of the same watch. As long as it has
// the victim, the gang is not tried: the attempt would fail.
func TestFreedOnceTheCacheKnows(t *testing.T) {
	low := asPods(members("low", 1, 10))
	s := newTestScheduler(t, append(waitingPods(1), low[0], aGroup("high", 1), node(0, 8))...)
	done, err := s.trial.open(t.Context(), s.groups.placed)
	if err != nil {
		t.Fatal(err)
	}
	done()
	if err := s.groups.pods.GetStore().Delete(low[0]); err != nil {
		t.Fatal(err)
	}
	one := &preempting{
		plan:  &plan{group: "high", generation: 1, victims: low, pods: asPods(waitingPods(1)), nodes: []string{"node-0000"}},
		state: preemption.State{Phase: preemption.Evicted, Since: time.Now()},
	}
	step := func() preemption.Phase {
		_, f := s.preemptor.facts(gangNamed("high"), one)
		state, _, _ := one.state.Next(f)

		return state.Phase
	}
	if phase := step(); phase != preemption.Evicted {
		t.Errorf("The informer has no victim any more, and the cache has one: the phase is %v.", phase)
	}
	if err := s.trial.remove(t.Context(), low[0]); err != nil {
		t.Fatal(err)
	}
	if phase := step(); phase != preemption.Freed {
		t.Errorf("The victim is gone: the phase is %v.", phase)
	}
}

// Two gangs wait for the same terminating pod. Both are dealt with when it is gone, also if
// another one stops to wait for it.
func TestGoneWakesAllThatWait(t *testing.T) {
	low := asPods(members("low", 1, 10))
	s := newTestScheduler(t, low[0], node(0, 8))
	p := s.preemptor
	plans := map[string]*plan{}
	for _, name := range []string{"a", "b", "c"} {
		plans[name] = &plan{victims: []*corev1.Pod{low[0]}}
		p.resume(gangNamed(name), plans[name])
	}
	for range plans {
		key, _ := p.queue.Get()
		p.queue.Done(key)
	}
	p.release(t.Context(), gangNamed("c"), p.gangs[gangNamed("c")], preemption.Facts{})
	p.gone(low[0].UID)
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
