package preempt

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"

	"github.com/arbor-control/arbor/internal/decide/preemption"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/backoff"
	"github.com/arbor-control/arbor/internal/scheduler/eviction"
	"github.com/arbor-control/arbor/internal/scheduler/placement"
	"github.com/arbor-control/arbor/internal/scheduler/podgroups"
	"github.com/arbor-control/arbor/internal/scheduler/report"
	"github.com/arbor-control/arbor/internal/scheduler/reservation"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
	"github.com/arbor-control/arbor/internal/scheduler/testcluster"
)

// A testScheduler has everything that a preemptor needs but a queue, on objects that do not
// change unless the test changes the stores of the informers.
type testScheduler struct {
	kube         *kubescheduler.Scheduler
	options      *settings.Options
	groups       *podgroups.Index
	trial        *placement.Trial
	reservations *reservation.Reservations
	reporter     *report.Reporter
	backOffs     *backoff.BackOffs
	preemptor    *Preemptor
	events       *schedulertest.Notebook
}

func newTestScheduler(t *testing.T, objects ...runtime.Object) *testScheduler {
	t.Helper()
	c, options := testcluster.Open(t, objects...), settings.DefaultOptions()
	s := &testScheduler{
		kube: &kubescheduler.Scheduler{Cache: c.Trial.Cache}, options: &options, groups: c.Groups, trial: c.Trial,
		reservations: reservation.New(schedulertest.Nominations{}), events: &schedulertest.Notebook{},
	}
	wake := func(types.NamespacedName) {}
	answers := func(pod *corev1.Pod) bool { return s.kube.Profiles.HandlesSchedulerName(pod.Spec.SchedulerName) }
	s.backOffs = backoff.New(wake, s.groups.Exists)
	s.reporter = report.New(s.groups, s.events, answers, func(types.NamespacedName) (*decide.Refusal, bool) { return nil, false })
	s.preemptor = New(Deps{
		Kube: s.kube, Options: s.options, Groups: s.groups, Trial: s.trial, Reservations: s.reservations, Reporter: s.reporter,
		Evictor: eviction.New(s.kube, s.groups, s.events), BackOffs: s.backOffs, Unprepared: backoff.NewUnprepared(s.groups.Exists),
		Budgets: c.Factory.Policy().V1().PodDisruptionBudgets().Lister(), Answers: answers, Wake: wake,
	})
	t.Cleanup(s.preemptor.ShutDown)

	return s
}

// highGang reads the gang "high" of a test.
func highGang(t *testing.T, s *testScheduler) *decide.Gang {
	t.Helper()
	g, why := s.groups.Read(schedulertest.Key("high"))
	if why != nil {
		t.Fatal(why.Message)
	}

	return g
}

// The back-off of a gang depends on whether its room is freed.
func TestFreed(t *testing.T) {
	cases := map[string]struct {
		reason string
		phase  preemption.Phase
		want   bool
	}{
		"Plain":   {"Nothing is reserved.", preemption.Idle, false},
		"Evicted": {"Victims may have hours to terminate, and the last one ends the back-off.", preemption.Evicted, false},
		"Freed":   {"The last victim is gone.", preemption.Freed, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newTestScheduler(t, append(schedulertest.WaitingPods(1), schedulertest.Group("high", 1))...)
			key := schedulertest.Key("high")
			s.preemptor.gangs[key] = &preempting{state: preemption.State{Phase: tc.phase}}
			if got := s.preemptor.Freed(key); got != tc.want {
				t.Errorf("%s\nFreed is %t.", tc.reason, got)
			}
		})
	}
}
