package preempt

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/victims"
	"github.com/arbor-control/arbor/internal/decide/preemption"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/report"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
)

// A gang is judged by the priority that it had before the first of its pods was evicted.
func TestMayEvict(t *testing.T) {
	cases := map[string]struct {
		reason     string
		priorities []int32
		evicted    []int // pods that leave together
		below      int32
		gone       bool // they are gone already, except the first
		want       bool
	}{
		"Negative": {"A gang without pods has priority 0.", []int32{-10, -10}, []int{0, 1}, 0, false, true},
		"Surplus":  {"The rest is more important than the preemptor.", []int32{50, 50, 10}, []int{2}, 20, false, true},
		"Gone":     {"The pod with the lowest priority was the first to be deleted.", []int32{50, 10}, []int{0, 1}, 20, true, true},
		"Equal":    {"Only a lower priority is evicted.", []int32{20, 50}, []int{0}, 20, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{schedulertest.Node(0, 8), schedulertest.Group("low", 1)}
			pods := schedulertest.AsPods(schedulertest.Members("low", len(tc.priorities), 0))
			for i, pod := range pods {
				schedulertest.Prio(tc.priorities[i])(pod)
				objects = append(objects, pod)
			}
			s := newTestScheduler(t, objects...)
			var together []*corev1.Pod
			for n, i := range tc.evicted {
				together = append(together, pods[i])
				s.groups.Mark(pods[i])
				if tc.gone && n > 0 {
					if err := s.groups.Pods.GetStore().Delete(pods[i]); err != nil {
						t.Fatal(err)
					}
				}
			}
			if got := s.preemptor.mayEvict(together[0], tc.below, together); got != tc.want {
				t.Errorf("%s\nmayEvict is %t.", tc.reason, got)
			}
		})
	}
}

// What follows from a search: one that gave no answer is repeated after a back-off, even if
// nothing has the gang tried again until then.
func TestConclude(t *testing.T) {
	timeout := &url.Error{Op: "Post", URL: "http://extender", Err: context.DeadlineExceeded}
	many := &plan{pods: make([]*corev1.Pod, 1), victims: schedulertest.AsPods(schedulertest.Members("low", 3, 10))}
	few := &plan{pods: make([]*corev1.Pod, 2), victims: schedulertest.AsPods(schedulertest.Members("low", 3, 10))}
	cases := map[string]struct {
		reason   string
		searched searched
		reports  string // the reason, and a part of the message; "" for nothing
		phase    preemption.Phase
		unplaced bool
	}{
		"TooLong": {
			"The next search has more time.",
			searched{err: context.DeadlineExceeded, exceeded: true},
			v2alpha2.ReasonPreemptionSearchTooLong + ": the search for pods to preempt took longer than 5s", preemption.BackedOff, true,
		},
		"Error": {
			"An error is not the end.",
			searched{err: schedulertest.ErrBroken},
			v2alpha2.ReasonPreemptionBlocked + ": the search for pods to preempt failed: broken", preemption.BackedOff, true,
		},
		"Extender": {
			"A request that timed out does not mean that the search took too long.",
			searched{err: fmt.Errorf("extender x: %w", timeout)},
			v2alpha2.ReasonPreemptionBlocked + ": the search for pods to preempt failed: extender x", preemption.BackedOff, true,
		},
		"TooMany": {
			"The ratio is a limit.",
			searched{found: many, result: victims.Result{Outcome: victims.Found}},
			v2alpha2.ReasonPreemptionBlocked + ": 3 pods would have to be evicted to place 1, more than --max-eviction-ratio=2", preemption.BackedOff, true,
		},
		"Unproven": {
			"What could not be shown may be different later.",
			searched{result: victims.Result{Outcome: victims.Unproven, Reason: "spread"}},
			v2alpha2.ReasonPreemptionUnproven + ": pods could be preempted, but it is not certain that the group fits then: spread", preemption.BackedOff, true,
		},
		"Impossible": {
			"Only a change of the cluster can help, which has the gang tried.",
			searched{result: victims.Result{Outcome: victims.Impossible}},
			"", preemption.Idle, false,
		},
		"TooLittle": {
			"No pod may be preempted, so there is nothing to explain.",
			searched{result: victims.Result{Outcome: victims.Insufficient, Reason: "sums"}},
			"", preemption.Idle, false,
		},
		"Insufficient": {
			"The group says that preemption does not help.",
			searched{result: victims.Result{Outcome: victims.Insufficient, Reason: "sums"}, candidates: 1},
			v2alpha2.ReasonUnschedulable + ": preemption cannot help: sums", preemption.Idle, false,
		},
		"Blocked": {
			"The pods that do not terminate are named however often they block the gang.",
			searched{result: victims.Result{Outcome: victims.Insufficient, Reason: "sums"}, candidates: 1, blockers: []string{"a/c", "a/b"}},
			v2alpha2.ReasonPreemptionBlocked + ": pods a/b, a/c are in the way and do not terminate", preemption.Idle, false,
		},
		"Fits": {"The gang is tried again.", searched{result: victims.Result{Outcome: victims.Fits}}, "", preemption.Idle, false},
		"Found": {
			"The plan is verified next.", searched{found: few, result: victims.Result{Outcome: victims.Found}}, "", preemption.Planned, false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newTestScheduler(t, append(schedulertest.WaitingPods(1), schedulertest.Group("high", 1))...)
			s.options.MaxEvictionRatio = 2
			key, g, one := schedulertest.Key("high"), highGang(t, s), &preempting{}
			s.reporter.Note(key, g.Group.UID, g.Group.Generation, &report.Progress{Reason: v2alpha2.ReasonPreemptionBlocked, Message: "old"})
			s.backOffs.Rejected(key, time.Hour, false)
			s.preemptor.conclude(t.Context(), key, g, one, tc.searched)
			fits := tc.searched.result.Outcome == victims.Fits
			if backsOff := s.backOffs.Length(key) > 0; backsOff == (fits || one.plan != nil) {
				t.Errorf("%s\nA gang that is to be tried now, and no other, does not back off: it is %t.", tc.reason, backsOff)
			}
			got := ""
			if p := s.reporter.Progress(key); p != nil {
				got = p.Reason + ": " + p.Message
			}
			if !strings.HasPrefix(got, tc.reports) || (tc.reports == "") != (got == "") {
				t.Errorf("%s\nThe report is %q, want %q.", tc.reason, got, tc.reports)
			}
			if one.state.Phase != tc.phase || one.unplaced != tc.unplaced {
				t.Errorf("%s\nThe phase is %v, want %v; unplaced is %t.", tc.reason, one.state.Phase, tc.phase, one.unplaced)
			}
		})
	}
}

// A gang that takes too long to be tried keeps its back-off, even if a search has found that it
// fits.
func TestConcludeSlow(t *testing.T) {
	s := newTestScheduler(t, append(schedulertest.WaitingPods(1), schedulertest.Group("high", 1))...)
	key := schedulertest.Key("high")
	s.backOffs.Exceeded(key)
	s.preemptor.conclude(t.Context(), key, highGang(t, s), &preempting{}, searched{result: victims.Result{Outcome: victims.Fits}})
	if s.backOffs.Length(key) == 0 {
		t.Error("The back-off ended.")
	}
}

// How a reservation ends is reported, and nothing is left of it.
func TestRelease(t *testing.T) {
	cases := map[string]struct {
		reason  string
		phase   preemption.Phase
		facts   preemption.Facts
		reports string
		again   bool // the search is repeated
	}{
		"Expired": {
			"The gang was not placed in time.", preemption.Freed,
			preemption.Facts{Applies: true},
			v2alpha2.ReasonReservationExpired + ": the group was not placed within 30s after its 2 victims were gone", true,
		},
		"Stuck": {
			"A victim does not terminate.", preemption.Evicted,
			preemption.Facts{Applies: true, Victims: 2, Using: []string{"a/x", "a/c", "a/b"}, Stuck: []string{"a/c", "a/b"}},
			v2alpha2.ReasonPreemptionBlocked + ": pods a/b, a/c are in the way and do not terminate; the group gives up its reserved room and backs off", true,
		},
		"Deadline": {
			"The time of the reservation is over.", preemption.Evicted,
			preemption.Facts{Applies: true, Victims: 1, Using: []string{"a/x"}},
			v2alpha2.ReasonPreemptionBlocked + ": pod a/x is in the way and does not terminate", true,
		},
		"Superseded": {"What was reported is about another plan.", preemption.Evicted, preemption.Facts{}, "", true},
		"Outdated":   {"The plan was never verified.", preemption.Planned, preemption.Facts{Applies: true}, "", true},
		"Placed":     {"The gang runs.", preemption.Freed, preemption.Facts{Applies: true, Placed: true}, "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			low := schedulertest.Members("low", 2, 10)
			s := newTestScheduler(t, append(low, schedulertest.Group("high", 1), schedulertest.Node(0, 8))...)
			key := schedulertest.Key("high")
			of := &plan{group: "high", generation: 1, priority: 50, victims: schedulertest.AsPods(low)}
			if err := s.preemptor.claim(of); err != nil {
				t.Fatal(err)
			}
			if err := s.groups.Pods.GetStore().Delete(of.victims[0]); err != nil { // its event was earlier
				t.Fatal(err)
			}
			s.reporter.Note(key, "high", 1, &report.Progress{Reason: v2alpha2.ReasonPreempting, Message: "old"})
			one := &preempting{plan: of, state: preemption.State{Phase: tc.phase}}
			tc.facts.Now = time.Now()
			s.preemptor.release(t.Context(), key, one, tc.facts)
			got := ""
			if p := s.reporter.Progress(key); p != nil {
				got = p.Reason + ": " + p.Message
			}
			if !strings.HasPrefix(got, tc.reports) || (tc.reports == "") != (got == "") {
				t.Errorf("%s\nThe report is %q, want %q.", tc.reason, got, tc.reports)
			}
			if one.unplaced != tc.again || one.plan != nil {
				t.Errorf("%s\nUnplaced is %t, want %t; the plan is %v.", tc.reason, one.unplaced, tc.again, one.plan)
			}
			for _, uid := range s.groups.Leaving() {
				t.Errorf("Pod %v counts as leaving.", uid)
			}
		})
	}
}

// A pod that no longer exists is not remembered as leaving: no event would end that.
func TestClaimGone(t *testing.T) {
	low := schedulertest.Members("low", 2, 10)
	s := newTestScheduler(t, schedulertest.Node(0, 8), low[0])
	if err := s.preemptor.claim(&plan{priority: 50, victims: schedulertest.AsPods(low)}); err != nil {
		t.Fatal(err)
	}
	var marked []types.UID
	for _, pod := range schedulertest.AsPods(low) {
		if s.groups.IsLeaving(pod.UID) {
			marked = append(marked, pod.UID)
		}
	}
	if diff := cmp.Diff([]types.UID{"low-0"}, marked); diff != "" {
		t.Errorf("Marked as leaving (-want +got):\n%s", diff)
	}
}

// An edit of the PodGroup ends the back-off and the delay of its preemption.
func TestEditEndsWaiting(t *testing.T) {
	later := time.Now().Add(time.Hour)
	cases := map[string]preemption.State{
		"BackOff": {Phase: preemption.BackedOff, Until: later, Failures: 9},
		"Delay":   preemption.State{}.Delay(later),
	}
	for name, state := range cases {
		t.Run(name, func(t *testing.T) {
			pg := schedulertest.Group("high", 1)
			s := newTestScheduler(t, append(schedulertest.WaitingPods(1), pg)...)
			one := &preempting{state: state, unplaced: true, about: decide.Spec(pg)}
			_, f := s.preemptor.facts(schedulertest.Key("high"), one)
			if _, action, _ := one.state.Next(f); action != preemption.Wait {
				t.Fatalf("Before the edit, the action is %v.", action)
			}
			edited := schedulertest.Group("high", 1, func(pg *v2alpha2.PodGroup) { pg.Generation = 2 })
			if err := s.groups.PodGroups.GetStore().Update(edited); err != nil {
				t.Fatal(err)
			}
			_, f = s.preemptor.facts(schedulertest.Key("high"), one)
			if _, action, _ := one.state.Next(f); action != preemption.Search {
				t.Errorf("After the edit, the action is %v.", action)
			}
		})
	}
}

// Nothing is left of a gang that was deleted.
func TestPreemptorForgets(t *testing.T) {
	pg := schedulertest.Group("high", 1)
	low := schedulertest.Members("low", 1, 10)
	s := newTestScheduler(t, append(append(schedulertest.WaitingPods(1), pg), low...)...)
	key := schedulertest.Key("high")
	s.preemptor.resume(key, &plan{group: "high", generation: 1, victims: schedulertest.AsPods(low), claimed: true})
	if err := s.groups.PodGroups.GetStore().Delete(pg); err != nil {
		t.Fatal(err)
	}
	s.preemptor.advance(t.Context(), key)
	if len(s.preemptor.gangs) > 0 || len(s.preemptor.victims) > 0 {
		t.Errorf("Remembered are %v and %v.", s.preemptor.gangs, s.preemptor.victims)
	}
}

// A gang that has to wait for the search of another one does not keep a worker, and is dealt
// with again when it is its turn.
func TestSearchesTakeTurns(t *testing.T) {
	s := newTestScheduler(t, append(append(schedulertest.WaitingPods(1), schedulertest.Group("high", 1), schedulertest.Node(0, 4)), schedulertest.Members("low", 1, 60)...)...)
	p, key, other := s.preemptor, schedulertest.Key("high"), types.NamespacedName{Namespace: "other", Name: "slow"}
	p.gangs[key] = &preempting{unplaced: true}
	if !p.turns.Begin(other, 50, false) {
		t.Fatal("The first search has to wait.")
	}
	p.advance(t.Context(), key)
	if one := p.gangs[key]; one == nil || !one.unplaced || p.queue.Len() > 0 {
		t.Fatalf("During the search of another gang, the gang is %+v, and %d are to be dealt with.", one, p.queue.Len())
	}
	p.endTurn(other, time.Minute)
	if p.queue.Len() != 1 {
		t.Fatalf("After it, %d gangs are to be dealt with.", p.queue.Len())
	}
	next, _ := p.queue.Get()
	p.advance(t.Context(), next)
	if one := p.gangs[key]; next != key || one.unplaced {
		t.Errorf("%s was dealt with; the gang is %+v.", next, one)
	}
	if !p.turns.Begin(other, 0, false) {
		t.Error("The turn did not end.")
	}
}

// A gang that was edited after its victims were evicted has to wait for a search of another
// gang before its plan can be verified. Its reservation ends at the deadline all the same.
func TestDeadlineWhileWaitingForATurn(t *testing.T) {
	s := newTestScheduler(t, append(schedulertest.WaitingPods(1), schedulertest.Group("high", 1), schedulertest.Node(0, 4))...)
	p, key := s.preemptor, schedulertest.Key("high")
	p.turns.Begin(types.NamespacedName{Namespace: "other", Name: "slow"}, 50, false)
	one := &preempting{
		plan:  &plan{group: "high", generation: 7, pods: schedulertest.AsPods(schedulertest.WaitingPods(1)), nodes: []string{"node-0000"}, deadline: time.Now().Add(100 * time.Millisecond)},
		state: preemption.State{Phase: preemption.Evicted, Since: time.Now()},
	}
	p.gangs[key] = one
	p.advance(t.Context(), key)
	if one.plan == nil {
		t.Fatal("The reservation ended before its deadline.")
	}
	woken := make(chan struct{})
	go func() {
		defer close(woken)
		next, _ := p.queue.Get()
		p.advance(t.Context(), next)
	}()
	select {
	case <-woken:
	case <-time.After(10 * time.Second):
		t.Fatal("The gang is not dealt with at its deadline.")
	}
	if one.plan != nil || one.state.Phase != preemption.BackedOff {
		t.Errorf("After the deadline, the gang is %+v.", one)
	}
}

func TestExceeded(t *testing.T) {
	over, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	<-over.Done()
	request := &url.Error{Op: "Post", URL: "http://extender", Err: context.DeadlineExceeded}
	cases := map[string]struct {
		reason string
		ctx    context.Context //nolint:containedctx // a test
		err    error
		want   bool
	}{
		"None":         {"Nothing failed.", over, nil, false},
		"Over":         {"The time is over.", over, context.DeadlineExceeded, true},
		"OverInside":   {"A plugin reports that in its own words.", over, schedulertest.ErrBroken, true},
		"Extender":     {"A request of an extender timed out, and the time is not over.", t.Context(), request, false},
		"SlowExtender": {"The extender is the reason, not the size of the gang.", over, fmt.Errorf("x: %w", request), false},
		"Other":        {"Any other error.", t.Context(), errors.New("x"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Exceeded(tc.ctx, tc.err); got != tc.want {
				t.Errorf("%s\nexceeded is %t.", tc.reason, got)
			}
		})
	}
}
