package binding

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/internal/scheduler/placement"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
)

var (
	errPreempted = errors.New("preempted")
	errServer    = apierrors.NewInternalError(schedulertest.ErrBroken)
)

// steps is a script of a round. It records what happens, one line per event;
// members get ready at the same time in any order, see compare.
type steps struct {
	round *round
	// takes is how long each member's PreBind takes; forever if it is negative.
	takes []time.Duration
	// fails has errors of PreBind, refuses those of Bind, which are used up.
	fails   map[int]error
	refuses map[int][]error
	settled func()

	mu     sync.Mutex
	events []string
}

func (s *steps) recordf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, fmt.Sprintf(format, args...))
}

func (*steps) permit(context.Context, int) error { return nil }

func (s *steps) prepare(ctx context.Context, m int) error {
	var ready <-chan time.Time
	if m < len(s.takes) && s.takes[m] >= 0 {
		ready = time.After(s.takes[m])
	}
	select {
	case <-ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := s.fails[m]; err != nil {
		return err
	}
	s.recordf("ready %d", m)

	return nil
}

func (s *steps) mark(m int) error {
	if ctx := s.round.members[m].ctx; ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.recordf("mark %d", m)

	return nil
}

// bind takes a moment, so that members are bound in their order.
func (s *steps) bind(_ context.Context, m int) error {
	<-time.After(time.Duration(m) * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	if left := s.refuses[m]; len(left) > 0 {
		s.refuses[m] = left[1:]

		return left[0]
	}
	s.events = append(s.events, fmt.Sprintf("bind %d", m))

	return nil
}

func (s *steps) settle(bound bool) {
	s.recordf("settle %t", bound)
	if s.settled != nil {
		s.settled()
	}
}

func (s *steps) drop(m int, err error) { s.recordf("drop %d: %s", m, err) }

func (s *steps) fail(members []int, why *roundFailure) {
	s.recordf("fail %v because of %d: %s", members, why.member, why.err)
}

// sorted sorts events of one kind that follow each other, because members get
// ready at the same time.
func sorted(events []string) []string {
	kind := func(e string) string {
		var k string
		_, _ = fmt.Sscan(e, &k)

		return k
	}
	for i := 0; i < len(events); {
		j := i
		for j < len(events) && kind(events[j]) == kind(events[i]) {
			j++
		}
		slices.Sort(events[i:j])
		i = j
	}

	return events
}

func TestRound(t *testing.T) {
	apart := func(n int) [][]int {
		var chains [][]int
		for m := range n {
			chains = append(chains, []int{m})
		}

		return chains
	}
	const never = -1
	cases := map[string]struct {
		reason   string
		steps    *steps
		required int
		chains   [][]int
		// during is called half a second after the start.
		during func(*round)
		want   []string
		took   time.Duration
	}{
		"Barrier": {
			reason: "no member is bound or marked before the last required one is ready",
			steps:  &steps{takes: []time.Duration{0, 3 * time.Second}}, required: 2, chains: apart(2),
			want: []string{"ready 0", "ready 1", "mark 0", "mark 1", "bind 0", "bind 1", "settle true"}, took: 3 * time.Second,
		},
		"ExtrasLast": {
			reason: "extras that are ready are bound after the required members",
			steps:  &steps{takes: []time.Duration{time.Second, 0, 0}}, required: 1, chains: apart(3),
			want: []string{"ready 1", "ready 2", "ready 0", "mark 0", "bind 0", "settle true", "mark 1", "mark 2", "bind 1", "bind 2"}, took: time.Second,
		},
		"SlowExtra": {
			reason: "an extra that is not ready delays no other member, and is dropped in the end",
			steps:  &steps{takes: []time.Duration{0, never}}, required: 1, chains: apart(2),
			want: []string{"ready 0", "mark 0", "bind 0", "settle true", "drop 1: not ready after 10s (--bind-timeout): context deadline exceeded"}, took: 10 * time.Second,
		},
		"FailingExtra": {
			reason: "an extra that cannot be prepared is dropped alone",
			steps:  &steps{takes: []time.Duration{time.Second, 0}, fails: map[int]error{1: schedulertest.ErrBroken}}, required: 1, chains: apart(2),
			want: []string{"drop 1: broken", "ready 0", "mark 0", "bind 0", "settle true"}, took: time.Second,
		},
		"FailingRequired": {
			reason: "when a required member cannot be prepared, no member is bound",
			steps:  &steps{takes: []time.Duration{0, never, time.Second, 0}, fails: map[int]error{2: schedulertest.ErrBroken}}, required: 3, chains: apart(4),
			want: []string{"ready 0", "ready 3", "fail [0 1 2 3] because of 2: broken"}, took: time.Second,
		},
		"FailedAfterDrop": {
			reason: "a member that was dropped before is not given up twice",
			steps:  &steps{takes: []time.Duration{time.Second, 0}, fails: map[int]error{0: schedulertest.ErrBroken, 1: schedulertest.ErrBroken}}, required: 1, chains: apart(2),
			want: []string{"drop 1: broken", "fail [0] because of 0: broken"}, took: time.Second,
		},
		"Deadline": {
			reason: "a round that is overdue fails because of the member that is not ready",
			steps:  &steps{takes: []time.Duration{0, never, 0}}, required: 2, chains: apart(3),
			want: []string{"ready 0", "ready 2", "fail [0 1 2] because of 1: not ready after 10s (--bind-timeout): context deadline exceeded"}, took: 10 * time.Second,
		},
		"PreemptedAtBarrier": {
			reason: "a required member that is preempted while it waits for the others fails the round at once",
			steps:  &steps{takes: []time.Duration{0, never}}, required: 2, chains: apart(2),
			during: func(r *round) { r.members[0].cancel(errPreempted) },
			want:   []string{"ready 0", "fail [0 1] because of 0: preempted"}, took: 500 * time.Millisecond,
		},
		"ExtraPreemptedAtBarrier": {
			reason: "an extra that is preempted while it waits is dropped at once",
			steps:  &steps{takes: []time.Duration{time.Second, 0}}, required: 1, chains: apart(2),
			during: func(r *round) { r.members[1].cancel(errPreempted) },
			want:   []string{"ready 1", "drop 1: preempted", "ready 0", "mark 0", "bind 0", "settle true"}, took: time.Second,
		},
		"Chain": {
			reason: "members that share a claim are prepared one after the other",
			steps:  &steps{takes: []time.Duration{time.Second, 0, time.Second}}, required: 3, chains: [][]int{{0, 2}, {1}},
			want: []string{"ready 1", "ready 0", "ready 2", "mark 0", "mark 1", "mark 2", "bind 0", "bind 1", "bind 2", "settle true"}, took: 2 * time.Second,
		},
		"StuckChain": {
			reason: "the member that cannot be prepared is the reason, not one that waits for it",
			steps:  &steps{takes: []time.Duration{time.Second, never, 0}}, required: 3, chains: [][]int{{0, 1, 2}},
			want: []string{"ready 0", "fail [0 1 2] because of 1: not ready after 10s (--bind-timeout): context deadline exceeded"}, took: 10 * time.Second,
		},
		"BindRefused": {
			reason: "a member that cannot be bound is dropped, and the others are bound",
			steps:  &steps{takes: []time.Duration{time.Second, time.Second, 0}, refuses: map[int][]error{0: {schedulertest.ErrBroken}}}, required: 2, chains: apart(3),
			want: []string{"ready 2", "ready 0", "ready 1", "mark 0", "mark 1", "drop 0: broken", "bind 1", "settle false", "mark 2", "bind 2"}, took: time.Second,
		},
		"ExtrasOnly": {
			reason: "a gang that has its minimum is settled from the start",
			steps:  &steps{takes: []time.Duration{time.Second}}, chains: apart(1),
			want: []string{"settle true", "ready 0", "mark 0", "bind 0"}, took: time.Second,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := tc.steps
				s.round = newRound(t.Context(), s, len(s.takes), tc.required, tc.chains, 10*time.Second, func() {})
				if tc.during != nil {
					time.AfterFunc(500*time.Millisecond, func() { tc.during(s.round) })
				}
				s.round.run()
				if took := time.Since(s.round.began).Truncate(100 * time.Millisecond); took != tc.took {
					t.Errorf("%s\nrun() took %s, want %s", tc.reason, took, tc.took)
				}
				compare(t, tc.reason, tc.want, s.events)
			})
		})
	}
}

// compare compares events.
func compare(t *testing.T, reason string, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" {
		t.Errorf("%s\nrun(): -want, +got:\n%s", reason, diff)
	}
}

func TestRoundRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		always := slices.Repeat([]error{errServer}, 1000)
		s := &steps{takes: make([]time.Duration, 2), refuses: map[int][]error{0: {errServer, errServer}, 1: always}}
		s.round = newRound(t.Context(), s, 2, 2, [][]int{{0}, {1}}, 10*time.Second, func() {})
		s.round.run()
		if took := time.Since(s.round.began); took < retryFor-lastRetry || took > retryFor+lastRetry {
			t.Errorf("a binding that always fails was retried for %s, want about %s", took, retryFor)
		}
		want := []string{"ready 0", "ready 1", "mark 0", "mark 1", "bind 0", "drop 1: " + errServer.Error(), "settle false"}
		compare(t, "a binding is retried while the API server fails, and not forever", want, s.events)
	})
}

func TestRetriable(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	cases := map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"TooMany":     {reason: "the API server asks to slow down", err: apierrors.NewTooManyRequests("", 0), want: true},
		"Internal":    {reason: "the API server failed", err: errServer, want: true},
		"Unavailable": {reason: "the API server is not there yet", err: apierrors.NewServiceUnavailable(""), want: true},
		"Timeout":     {reason: "the API server gave up", err: apierrors.NewTimeoutError("", 0), want: true},
		"Status":      {reason: "errors are found in a status of the framework", err: failedWith(statusOf(fmt.Errorf("running Bind plugin: %w", errServer))), want: true},
		"Network":     {reason: "the connection broke", err: &url.Error{Op: http.MethodPost, Err: schedulertest.ErrBroken}, want: true},
		"Canceled":    {reason: "the scheduler stops", err: &url.Error{Op: http.MethodPost, Err: context.Canceled}},
		"NotFound":    {reason: "the pod is gone", err: apierrors.NewNotFound(pods, "a")},
		"Conflict":    {reason: "the pod has a node", err: apierrors.NewConflict(pods, "a", schedulertest.ErrBroken)},
		"Forbidden":   {reason: "admission rejects it", err: apierrors.NewForbidden(pods, "a", schedulertest.ErrBroken)},
		"Other":       {reason: "a plugin's own error may be permanent", err: schedulertest.ErrBroken},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := retriable(tc.err); got != tc.want {
				t.Errorf("%s\nretriable(%v) = %t, want %t", tc.reason, tc.err, got, tc.want)
			}
		})
	}
}

// TestRoundStatus follows the status of a gang of which one member is slow.
func TestRoundStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := types.NamespacedName{Namespace: "ns", Name: "g"}
		var woken, touched atomic.Int32
		all := NewRounds(func(types.NamespacedName) { woken.Add(1) })
		s := &steps{takes: []time.Duration{0, time.Minute, -1}, settled: func() { all.settled(key) }}
		b := &binding{}
		for _, name := range []string{"a", "b", "extra"} {
			b.held = append(b.held, placement.Holding{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}, Node: "n"})
		}
		b.round = newRound(t.Context(), s, 3, 2, [][]int{{0}, {1}, {2}}, 10*time.Minute, func() { touched.Add(1) })
		s.round = b.round
		all.add(key, b)
		go func() {
			b.round.run()
			all.remove(key, b)
		}()
		synctest.Wait()
		if _, slow := all.Status(key); slow || !all.Binding(key) {
			t.Errorf("at once: slow %t, binding %t, want false and true", slow, all.Binding(key))
		}
		all.WakeAfter(key)
		<-time.After(slowRound)
		synctest.Wait()
		why, slow := all.Status(key)
		want := `pod "b" waits for PreBind on node "n" since 2000-01-01T00:00:00Z; no pod of the minimum is bound before all of them are ready`
		if !slow || why.Reason != "Binding" || why.Message != want || touched.Load() != 1 || woken.Load() != 0 {
			t.Errorf("after a second: %v, touched %d times, woken %d times, want %q", why, touched.Load(), woken.Load(), want)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if _, slow := all.Status(key); slow || all.Binding(key) || woken.Load() != 1 {
			t.Errorf("when the minimum is bound: slow %t, binding %t, woken %d times, want false, false and 1", slow, all.Binding(key), woken.Load())
		}
		all.Deleted(key, "extra")
		synctest.Wait()
		if got := s.events[len(s.events)-1]; got != "drop 2: the pod was deleted: context canceled" || len(all.all) != 0 {
			t.Errorf("after the extra was deleted: %q, %d rounds are left", got, len(all.all))
		}
	})
}
