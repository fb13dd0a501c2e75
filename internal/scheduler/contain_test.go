package scheduler

import (
	"testing"

	"k8s.io/client-go/tools/cache"

	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
	"github.com/arbor-control/arbor/internal/scheduler/worker"
)

// A panic in a handler of events or in a timer does not end the
// process. A scheduler without parts panics wherever it is used.
func TestPanicsAreContained(t *testing.T) {
	pod := schedulertest.Member("g", 0, 1)
	cases := map[string]struct {
		worker string
		do     func(t *testing.T, s *Scheduler)
	}{
		"Timer": {worker.Events, func(_ *testing.T, s *Scheduler) {
			s.wake(schedulertest.Key("g"))
		}},
		"Event": {worker.Events, func(t *testing.T, s *Scheduler) {
			t.Helper()
			s.contained(s.onPod)(nil, cache.DeletedFinalStateUnknown{Key: "default/g-0", Obj: pod})
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if n := schedulertest.Counted(t, tc.worker, func() { tc.do(t, &Scheduler{}) }); n != 1 {
				t.Errorf("%d panics were counted.", n)
			}
		})
	}
}
