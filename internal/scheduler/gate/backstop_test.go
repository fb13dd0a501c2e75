package gate

import (
	"context"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/gangmetrics"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
	"github.com/arbor-control/arbor/internal/scheduler/testcluster"
	"github.com/arbor-control/arbor/internal/scheduler/worker"
)

// The backstop wakes a gang whose gate is closed for a reason that is over, and counts it:
// not at once, because an event may be on its way.
func TestLostWakeUps(t *testing.T) {
	gates := New(testcluster.Open(t, append(schedulertest.WaitingPods(1), schedulertest.Group("high", 1), schedulertest.Group("short", 2))...).Groups, func(types.NamespacedName) {})
	old := &decide.Refusal{Reason: v2alpha2.ReasonTooFewPods}
	complete, short := schedulertest.Key("high"), schedulertest.Key("short")
	gates.set(complete, old, 0)
	gates.set(short, old, 0)
	count := func() float64 {
		n, err := testutil.GetCounterMetricValue(gangmetrics.LostWakeUps)
		if err != nil {
			t.Fatal(err)
		}

		return n
	}
	before, limit := count(), flowcontrol.NewFakeAlwaysRateLimiter()
	suspects := gates.lostWakeUps(t.Context(), limit, nil)
	if len(suspects) != 1 || suspects[complete] != old || count() != before {
		t.Fatalf("The first time, suspects are %v.", suspects)
	}
	renewed := &decide.Refusal{Reason: v2alpha2.ReasonTooFewPods}
	gates.set(complete, renewed, 0)
	if suspects = gates.lostWakeUps(t.Context(), limit, suspects); suspects[complete] != renewed || count() != before {
		t.Fatalf("After an event, suspects are %v.", suspects)
	}
	if suspects = gates.lostWakeUps(t.Context(), limit, suspects); len(suspects) != 0 || count() != before+1 {
		t.Errorf("The second time, suspects are %v, and %v were counted.", suspects, count()-before)
	}
	if gates.Get(complete).Refusal != nil || gates.Get(short).Refusal == nil {
		t.Error("Only the gate of the complete gang is open.")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	gates.Backstop(ended) // it returns
}

// BenchmarkGate creates the pods of a gang. The time of one event does not grow with the
// size of the gang.
func BenchmarkGate(b *testing.B) {
	for _, n := range []int{64, 512, 4096} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			groups := testcluster.Open(b, schedulertest.Group("g", int32(n))).Groups
			gates := New(groups, nil)
			for b.Loop() {
				gates.Forget(schedulertest.Key("g"))
				for i := range n {
					if err := groups.Pods.GetIndexer().Add(schedulertest.Member("g", i, 1)); err != nil {
						b.Fatal(err)
					}
					gates.RegateAfter(schedulertest.Key("g"), true)
				}
				b.StopTimer()
				if err := groups.Pods.GetIndexer().Replace(nil, ""); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/event")
		})
	}
}

// A panic in the queue's plugin or in the backstop does not end the process. A plugin without
// parts panics wherever it is used.
func TestGatePanicsAreContained(t *testing.T) {
	pod := schedulertest.Member("g", 0, 1)
	q := &framework.QueuedPodInfo{PodInfo: &framework.PodInfo{Pod: pod}}
	cases := map[string]struct {
		worker string
		do     func(t *testing.T)
	}{
		"PreEnqueue": {worker.Gate, func(t *testing.T) {
			t.Helper()
			if status := (&plugin{}).PreEnqueue(t.Context(), pod); status.IsSuccess() {
				t.Error("The pod enters the queue.")
			}
		}},
		"Less": {worker.Gate, func(*testing.T) { (&plugin{}).Less(q, q) }},
		"Backstop": {worker.Backstop, func(t *testing.T) {
			t.Helper()
			gates := New(nil, nil)
			gates.set(schedulertest.Key("g"), &decide.Refusal{}, 0)
			gates.lostWakeUps(t.Context(), flowcontrol.NewFakeAlwaysRateLimiter(), nil)
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if n := schedulertest.Counted(t, tc.worker, func() { tc.do(t) }); n != 1 {
				t.Errorf("%d panics were counted.", n)
			}
		})
	}
}
