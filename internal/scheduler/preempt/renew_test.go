package preempt

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/preemption"
	"github.com/arbor-control/arbor/internal/scheduler/podgroups"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
)

// A plan whose victims were evicted is adapted to the gang as it is now, if its room is
// still what the gang needs.
func TestAdapt(t *testing.T) {
	generation := func(pg *v2alpha2.PodGroup) { pg.Generation = 2 }
	minimum := func(n int32) func(*v2alpha2.PodGroup) {
		return func(pg *v2alpha2.PodGroup) { pg.Spec.MinMember = &n }
	}
	again := func(pods []runtime.Object) []runtime.Object { // the first pod was created again
		pod := schedulertest.AsPods(pods)[0].DeepCopy()
		pod.UID += "-again"

		return append([]runtime.Object{pod}, pods[1:]...)
	}
	same := func(pods []runtime.Object) []runtime.Object { return pods }
	cases := map[string]struct {
		reason  string
		edit    []func(*v2alpha2.PodGroup)
		pods    int
		recast  func([]runtime.Object) []runtime.Object
		victims int32 // their priority
		want    []string
		fails   string
	}{
		"Unrelated":     {"The gang needs the same room.", []func(*v2alpha2.PodGroup){generation}, 2, same, 10, []string{"high-0", "high-1"}, ""},
		"FewerNeeded":   {"The room is more than enough.", []func(*v2alpha2.PodGroup){generation, minimum(1)}, 2, same, 10, []string{"high-0", "high-1"}, ""},
		"MoreNeeded":    {"The room is not enough.", []func(*v2alpha2.PodGroup){generation, minimum(3)}, 3, same, 10, nil, "not enough"},
		"CreatedAgain":  {"The new pod gets the place of the old one.", nil, 2, again, 10, []string{"high-0-again", "high-1"}, ""},
		"LessImportant": {"A victim that runs has a higher priority now.", []func(*v2alpha2.PodGroup){generation}, 2, same, 60, nil, "may not be evicted"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			planned := schedulertest.WaitingPods(tc.pods)
			low := schedulertest.Members("low", 8, tc.victims)
			objects := append([]runtime.Object{schedulertest.Group("high", 2, tc.edit...), schedulertest.Node(0, 8)}, tc.recast(planned)...)
			s := newTestScheduler(t, append(objects, low...)...)
			of := &plan{
				group: "high", generation: 1, priority: 50, victims: schedulertest.AsPods(low),
				pods: schedulertest.AsPods(planned)[:2], nodes: []string{schedulertest.Node(0, 8).Name, schedulertest.Node(0, 8).Name},
			}
			next, err := s.preemptor.adapt(t.Context(), schedulertest.Key("high"), highGang(t, s), of)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("%s\nThe error is %v.", tc.reason, err)
				}

				return
			}
			if err != nil {
				t.Fatalf("%s\nThe error is %v.", tc.reason, err)
			}
			var got []string
			for _, pod := range next.pods {
				got = append(got, string(pod.UID))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nPods with a place (-want +got):\n%s", tc.reason, diff)
			}
			if !next.covers(highGang(t, s)) || of.covers(highGang(t, s)) || !next.unrecorded {
				t.Errorf("%s\nThe plan is for generation %d, and unrecorded is %t.", tc.reason, next.generation, next.unrecorded)
			}
		})
	}
}

// The turn of a gang whose plan is renewed ends before anything is written to the API server,
// which may be slow, and the next gang is called. The gang is before others of its priority
// that want to search: its victims are terminating.
func TestRenewWritesWithoutATurn(t *testing.T) {
	planned, low := schedulertest.WaitingPods(2), schedulertest.Members("low", 8, 10)
	objects := append([]runtime.Object{schedulertest.Group("high", 2, func(pg *v2alpha2.PodGroup) { pg.Generation = 2 }), schedulertest.Node(0, 8)}, planned...)
	s := newTestScheduler(t, append(objects, low...)...)
	p, key := s.preemptor, schedulertest.Key("high")
	searches, waits := types.NamespacedName{Namespace: "a", Name: "searches"}, types.NamespacedName{Namespace: "b", Name: "waits"}
	type request struct {
		Kind   string
		Called int  // how many gangs are to be dealt with
		Late   bool // a gang of a lower priority may begin
	}
	var mu sync.Mutex
	var got []request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		kind := "Pod"
		if strings.Contains(r.URL.Path, "/podgroups/") {
			kind = "PodGroup"
		}
		got = append(got, request{kind, p.queue.Len(), p.beginTurnAt(types.NamespacedName{Name: "low"}, 0)})
		w.Header().Set("Content-Type", "application/json")
		if _, err := fmt.Fprintf(w, `{"kind": %q, "apiVersion": "v1"}`, kind); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	var err error
	if s.groups.Client, err = clientset.NewForConfig(&rest.Config{Host: server.URL}); err != nil {
		t.Fatal(err)
	}
	if s.groups.REST, err = podgroups.NewClient(&rest.Config{Host: server.URL}); err != nil {
		t.Fatal(err)
	}
	name := schedulertest.Node(0, 8).Name
	of := &plan{
		group: "high", generation: 1, priority: 50, victims: schedulertest.AsPods(low), pods: schedulertest.AsPods(planned), nodes: []string{name, name}, deadline: time.Now().Add(time.Hour),
	}
	p.gangs[key] = &preempting{plan: of, state: preemption.State{Phase: preemption.Evicted, Since: time.Now()}}
	if !p.beginTurnAt(searches, 50) || p.beginTurnAt(waits, 50) {
		t.Fatal("There is one turn at a time.")
	}
	p.advance(t.Context(), key)
	p.endTurn(searches, time.Second)
	if next, _ := p.queue.Get(); next != key {
		t.Fatalf("The first gang that is called is %s.", next)
	}
	p.advance(t.Context(), key)
	p.queue.Done(key)
	if diff := cmp.Diff([]request{{"PodGroup", 1, false}, {"Pod", 1, false}, {"Pod", 1, false}}, got); diff != "" {
		t.Errorf("Requests, and what was so at their time (-want +got):\n%s", diff)
	}
	if one := p.gangs[key]; one.plan == of || one.plan.generation != 2 || one.plan.unrecorded || one.state.Phase != preemption.Evicted {
		t.Errorf("The gang is %+v, with %+v.", one, one.plan)
	}
	if next, _ := p.queue.Get(); next != waits {
		t.Errorf("The next gang that is called is %s.", next)
	}
}

// beginTurnAt reports whether a gang may search that is no PodGroup.
func (p *Preemptor) beginTurnAt(key types.NamespacedName, priority int32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.turns.Begin(key, priority, false)
}

// A reservation has to end some time after its last victim, however slow that is.
func TestLatest(t *testing.T) {
	now := time.Now()
	grace := func(seconds int64) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &seconds}}
	}
	deleted := grace(30)
	deleted.DeletionTimestamp = new(metav1.NewTime(now.Add(time.Minute)))
	of := &plan{victims: []*corev1.Pod{grace(30), deleted}}
	if got := of.latest(now).Sub(now); got != time.Minute+claimMargin {
		t.Errorf("With a victim that has a minute left, it is %s.", got)
	}
	of.victims = append(of.victims, grace(3600))
	if got := of.latest(now).Sub(now); got != time.Hour+claimMargin {
		t.Errorf("With a victim that may take an hour, it is %s.", got)
	}
}

// A scheduler that is restarted after the deadline does not reserve the room again.
func TestRecoverAfterDeadline(t *testing.T) {
	s := newTestScheduler(t, append(schedulertest.WaitingPods(1), schedulertest.Group("high", 1))...)
	r := &podgroups.ReservationRecord{Generation: 1, Reason: podgroups.RecordReason, Deadline: time.Now().Add(-time.Second)}
	err := s.preemptor.recoverReservation(t.Context(), schedulertest.Key("high"), r, nil)
	if err == nil || !strings.Contains(err.Error(), "deadline") || s.reservations.Any() {
		t.Errorf("The error is %v.", err)
	}
}

// A victim with a long grace period is not stuck before that is over.
func TestVictimsOwnGracePeriod(t *testing.T) {
	cases := map[string]struct {
		reason string
		ends   time.Duration // from now
		stuck  []string
	}{
		"Long": {"It has an hour left.", time.Hour, nil},
		"Over": {"Its time is over.", -2 * overdue, []string{"default/low-0"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			low := schedulertest.Members("low", 1, 10, func(pod *corev1.Pod) {
				pod.DeletionTimestamp, pod.Finalizers = new(metav1.NewTime(time.Now().Add(tc.ends))), []string{"example.com/x"}
			})
			s := newTestScheduler(t, append(append(schedulertest.WaitingPods(1), schedulertest.Group("high", 1)), low...)...)
			one := &preempting{plan: &plan{group: "high", generation: 1, victims: schedulertest.AsPods(low)}}
			one.state.Since = time.Now().Add(-time.Hour)
			if _, f := s.preemptor.facts(schedulertest.Key("high"), one); !slices.Equal(f.Stuck, tc.stuck) || f.Victims != 1 || !slices.Equal(f.Using, []string{"default/low-0"}) {
				t.Errorf("%s\nThe facts are %+v.", tc.reason, f)
			}
		})
	}
}
