package scheduler

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/internal/decide/preemption"
)

// A gang that takes longer than a cycle may take is told so once, and backs off for so long
// that it does not take the scheduler's time. An edit does not change that.
func TestCycleLimit(t *testing.T) {
	s := newTestScheduler(t, append(waitingPods(1), aGroup("high", 1))...)
	key := gangNamed("high")
	turn := &turn{key: key, gang: highGang(t, s), began: time.Now()}
	var lengths []time.Duration
	for range 5 {
		if result := s.tookTooLong(t.Context(), turn); result != resultError {
			t.Errorf("The result is %s.", result)
		}
		lengths = append(lengths, s.backOffs.gangs[key].length)
		s.backOffs.forgive(key)
		if !s.backOffs.asked(key) {
			t.Error("An edit ends the back-off.")
		}
	}
	if diff := cmp.Diff([]time.Duration{1, 2, 4, 8, 10}, scaled(lengths, time.Minute)); diff != "" {
		t.Errorf("The back-off, in minutes (-want +got):\n%s", diff)
	}
	o := s.reporter.last(key).outcome
	if o == nil || o.Error == nil || o.Error.Reason != v2alpha2.ReasonSchedulerError || !strings.Contains(o.Error.Message, "longer than 10s: make it smaller") {
		t.Errorf("Reported is %+v.", o)
	}
}

// scaled returns durations in a unit.
func scaled(all []time.Duration, unit time.Duration) []time.Duration {
	for i := range all {
		all[i] /= unit
	}

	return all
}

// An extender that does not answer is what the group reports, and other pods have most of
// the scheduler's time.
func TestCouldNotTry(t *testing.T) {
	s := newTestScheduler(t, append(waitingPods(1), aGroup("high", 1))...)
	key := gangNamed("high")
	turn := &turn{key: key, gang: highGang(t, s), began: time.Now().Add(-5 * time.Second)}
	err := fmt.Errorf("an extender does not answer: %w", &url.Error{Op: "Post", URL: "http://x", Err: context.DeadlineExceeded})
	s.couldNotTry(t.Context(), turn, err)
	if o := s.reporter.last(key).outcome; o == nil || o.Error == nil || !strings.Contains(o.Error.Message, "extender") {
		t.Errorf("Reported is %+v.", o)
	}
	if got := s.backOffs.gangs[key].length; got < 20*time.Second { // four times as long as it took
		t.Errorf("It backs off for %s.", got)
	}
	if s.backOffs.forgive(key); s.backOffs.asked(key) {
		t.Error("An edit does not end the back-off.")
	}
}

// A gang that does not fit has a longer back-off if it takes long to be tried, but not if the
// victims that it waited for are gone: its reservation would end before the gang is tried again.
func TestBackOffWhenItDoesNotFit(t *testing.T) {
	cases := map[string]struct {
		reason string
		phase  preemption.Phase
		want   time.Duration
	}{
		"Plain":   {"Other pods have most of the scheduler's time.", preemption.Idle, maxRejectedBackOff},
		"Evicted": {"Victims may have hours to terminate, and the last one ends the back-off.", preemption.Evicted, maxRejectedBackOff},
		"Freed":   {"Pods were evicted for it in vain if it is not placed soon.", preemption.Freed, firstBackOff},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newTestScheduler(t, append(waitingPods(1), aGroup("high", 1))...)
			key := gangNamed("high")
			s.preemptor.gangs[key] = &preempting{state: preemption.State{Phase: tc.phase}}
			tried := &turn{key: key, gang: highGang(t, s), began: time.Now().Add(-9 * time.Second), waiting: make([]*framework.QueuedPodInfo, 1)}
			s.doesNotFit(t.Context(), tried, &world{}, &gang.Decision{Nodes: []gang.Report{{Min: 1, Pods: 1, Blocker: -1}}})
			if got := s.backOffs.gangs[key].length; got != tc.want {
				t.Errorf("%s\nThe back-off is %s, want %s.", tc.reason, got, tc.want)
			}
		})
	}
}

// A gang whose places were held in vain for --bind-timeout backs off for minutes, unless it
// is edited or the pod that could not be prepared is deleted.
func TestDoomed(t *testing.T) {
	now := time.Now()
	b := newBackOffs(func(types.NamespacedName) {}, always)
	b.now = func() time.Time { return now }
	key := gangKey("g")
	var lengths []time.Duration
	for range 5 {
		began := now
		now = now.Add(10 * time.Minute) // --bind-timeout
		b.doomed(key, began, "slow")
		lengths = append(lengths, b.gangs[key].length)
		now = b.gangs[key].until
	}
	if diff := cmp.Diff([]time.Duration{1, 2, 4, 8, 10}, scaled(lengths, time.Minute)); diff != "" {
		t.Errorf("The back-off, in minutes (-want +got):\n%s", diff)
	}
	b.doomed(key, now, "slow")
	if b.deleted(key, "other"); !b.asked(key) {
		t.Error("The deletion of another pod ends the back-off.")
	}
	if b.deleted(key, "slow"); b.asked(key) {
		t.Error("The deletion of the pod does not end the back-off.")
	}
	b.doomed(key, now, "slow")
	if b.forgive(key); b.asked(key) {
		t.Error("An edit does not end the back-off.")
	}
}

// A gang of which not all members are in the queue is woken less and less often, until it was
// complete.
func TestEarlyWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		woken := make(chan time.Time)
		e := newEarlyWakes(func(types.NamespacedName) { woken <- time.Now() })
		var waits []time.Duration
		for i := range 9 {
			if i == 8 {
				e.forget(gangKey("g"))
			}
			began := time.Now()
			e.add(gangKey("g"))
			e.add(gangKey("g")) // it is to be woken already
			waits = append(waits, (<-woken).Sub(began))
		}
		if diff := cmp.Diff([]time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 1}, scaled(waits, time.Second)); diff != "" {
			t.Errorf("It is woken after seconds (-want +got):\n%s", diff)
		}
	})
}

// A scriptedExtender filters nodes, or fails.
type scriptedExtender struct {
	fwk.Extender

	err       error
	ignorable bool
	asked     int
}

func (*scriptedExtender) Name() string                  { return "scripted" }
func (*scriptedExtender) IsFilter() bool                { return true }
func (*scriptedExtender) IsInterested(*corev1.Pod) bool { return true }
func (*scriptedExtender) SupportsPreemption() bool      { return false }
func (e *scriptedExtender) IsIgnorable() bool           { return e.ignorable }
func (e *scriptedExtender) Filter(_ *corev1.Pod, nodes []fwk.NodeInfo) ([]fwk.NodeInfo, extenderv1.FailedNodesMap, extenderv1.FailedNodesMap, error) {
	e.asked++

	return nodes, nil, nil, e.err
}

func TestAskExtenders(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	cases := map[string]struct {
		reason   string
		ctx      context.Context //nolint:containedctx // a test
		extender scriptedExtender
		asked    int
		fails    bool
	}{
		"Answers":  {"It is asked for each shape.", t.Context(), scriptedExtender{}, 2, false},
		"Fails":    {"Which nodes will do is not known.", t.Context(), scriptedExtender{err: errBroken}, 1, true},
		"Ignored":  {"It may be slow to fail, so it is not asked again.", t.Context(), scriptedExtender{err: errBroken, ignorable: true}, 1, false},
		"TimeOver": {"No request is made once the budget is used up.", ended, scriptedExtender{}, 0, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := &dryRun{filters: []*filterState{{pod: aPod("a", 0)}, {pod: aPod("b", 0)}}}
			err := d.askExtenders(tc.ctx, []fwk.Extender{&tc.extender})
			if (err != nil) != tc.fails || tc.extender.asked != tc.asked {
				t.Errorf("%s\nIt was asked %d times, and the error is %v.", tc.reason, tc.extender.asked, err)
			}
		})
	}
}

// A gang that is about to be evicted keeps its grace period: if it stays after all, it is
// still stale.
func TestStaleClockSurvivesAClaim(t *testing.T) {
	const text = `{"default":{"min":4,"since":"2020-01-01T00:00:10Z"}}`
	pg := aGroup("low", 4, func(pg *v2alpha2.PodGroup) {
		pg.ResourceVersion = "7"
		pg.Annotations = map[string]string{v2alpha2.StalenessAnnotation: text}
		pg.Spec.StalenessGracePeriod = &v2alpha2.Duration{Duration: -time.Second} // no pod is evicted here
	})
	low := members("low", 3, 10, func(pod *corev1.Pod) { pod.Spec.SchedulerName = Name })
	s := newTestScheduler(t, append(low, pg, node(0, 8))...)
	s.kube.Profiles = s.trial.profiles
	key := gangNamed("low")
	clock := func() gang.Memory { return s.staleness.observed[key].memory["default"] }
	for i := range 3 {
		if i == 1 {
			if err := s.preemptor.claim(&plan{priority: 50, victims: asPods(low)}); err != nil {
				t.Fatal(err)
			}
		}
		if i == 2 {
			s.preemptor.unclaim(&plan{victims: asPods(low), claimed: true})
		}
		if err := s.staleness.observe(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if got := clock(); got.Since == 0 || got.SatisfiedMin != 4 {
			t.Errorf("In step %d, what is known is %+v.", i, got)
		}
	}
}
