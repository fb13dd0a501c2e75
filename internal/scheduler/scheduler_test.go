package scheduler

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"

	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/backoff"
	"github.com/arbor-control/arbor/internal/scheduler/binding"
	"github.com/arbor-control/arbor/internal/scheduler/gate"
	"github.com/arbor-control/arbor/internal/scheduler/reservation"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
	"github.com/arbor-control/arbor/internal/scheduler/testcluster"
)

// newTestScheduler has everything but a queue, on objects that do not change unless the test
// changes the stores of the informers.
func newTestScheduler(t *testing.T, objects ...runtime.Object) *Scheduler {
	t.Helper()
	o := testcluster.Open(t, objects...)
	options := settings.DefaultOptions()
	s := &Scheduler{
		kube: &kubescheduler.Scheduler{Cache: o.Trial.Cache}, groups: o.Groups, trial: o.Trial, rules: o.Rules, options: &options,
		reservations: reservation.New(schedulertest.Nominations{}),
	}
	s.gates = gate.New(s.groups, s.wake)
	s.backOffs, s.rounds, s.early = backoff.New(s.wake, s.groups.Exists), binding.NewRounds(s.wake), backoff.NewEarlyWakes(s.wake)
	s.unprepared = backoff.NewUnprepared(s.groups.Exists)
	s.assemble(&schedulertest.Notebook{}, o.Factory.Policy().V1().PodDisruptionBudgets().Lister())
	t.Cleanup(s.preemptor.ShutDown)

	return s
}

// highGang reads the gang "high" of a test.
func highGang(t *testing.T, s *Scheduler) *decide.Gang {
	t.Helper()
	g, why := s.groups.Read(schedulertest.Key("high"))
	if why != nil {
		t.Fatal(why.Message)
	}

	return g
}
