package scheduler

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/scheduler/gangmetrics"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
)

// A gang that takes longer than a cycle may take is told so once, and backs off for so long
// that it does not take the scheduler's time. An edit does not change that.
func TestCycleLimit(t *testing.T) {
	s := newTestScheduler(t, append(schedulertest.WaitingPods(1), schedulertest.Group("high", 1))...)
	key := schedulertest.Key("high")
	turn := &turn{key: key, gang: highGang(t, s), began: time.Now()}
	var lengths []time.Duration
	for range 5 {
		if result := s.tookTooLong(t.Context(), turn); result != gangmetrics.ResultError {
			t.Errorf("The result is %s.", result)
		}
		lengths = append(lengths, s.backOffs.Length(key))
		s.backOffs.Forgive(key)
		if !s.backOffs.Asked(key) {
			t.Error("An edit ends the back-off.")
		}
	}
	if diff := cmp.Diff([]time.Duration{1, 2, 4, 8, 10}, schedulertest.Scaled(lengths, time.Minute)); diff != "" {
		t.Errorf("The back-off, in minutes (-want +got):\n%s", diff)
	}
	o := s.reporter.Outcome(key)
	if o == nil || o.Error == nil || o.Error.Reason != v2alpha2.ReasonSchedulerError || !strings.Contains(o.Error.Message, "longer than 10s: make it smaller") {
		t.Errorf("Reported is %+v.", o)
	}
}

// An extender that does not answer is what the group reports, and other pods have most of
// the scheduler's time.
func TestCouldNotTry(t *testing.T) {
	s := newTestScheduler(t, append(schedulertest.WaitingPods(1), schedulertest.Group("high", 1))...)
	key := schedulertest.Key("high")
	turn := &turn{key: key, gang: highGang(t, s), began: time.Now().Add(-5 * time.Second)}
	err := fmt.Errorf("an extender does not answer: %w", &url.Error{Op: "Post", URL: "http://x", Err: context.DeadlineExceeded})
	s.couldNotTry(t.Context(), turn, err)
	if o := s.reporter.Outcome(key); o == nil || o.Error == nil || !strings.Contains(o.Error.Message, "extender") {
		t.Errorf("Reported is %+v.", o)
	}
	if got := s.backOffs.Length(key); got < 20*time.Second { // four times as long as it took
		t.Errorf("It backs off for %s.", got)
	}
	if s.backOffs.Forgive(key); s.backOffs.Asked(key) {
		t.Error("An edit does not end the back-off.")
	}
}
