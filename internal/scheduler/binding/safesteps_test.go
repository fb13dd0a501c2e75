package binding

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
	"github.com/arbor-control/arbor/internal/scheduler/worker"
)

// brokenSteps panic at one step.
type brokenSteps struct {
	*steps

	at string
}

func (b brokenSteps) prepare(ctx context.Context, m int) error {
	if b.at == "prepare" && m == 0 {
		panic("index out of range")
	}

	return b.steps.prepare(ctx, m)
}

func (b brokenSteps) bind(ctx context.Context, m int) error {
	if b.at == "bind" && m == 0 {
		panic("index out of range")
	}

	return b.steps.bind(ctx, m)
}

func (b brokenSteps) settle(bound bool) {
	if b.at == "settle" {
		panic("index out of range")
	}
	b.steps.settle(bound)
}

// A panic while a pod is bound is an error of that pod. The round ends.
func TestRoundPanics(t *testing.T) {
	for at, want := range map[string]string{
		"prepare": "fail [0 1] because of 0: panic: index out of range",
		"bind":    "drop 0: panic: index out of range",
		"settle":  "bind 1",
	} {
		t.Run(at, func(t *testing.T) {
			script := &steps{takes: []time.Duration{0, 0}}
			s := safeSteps{brokenSteps{script, at}, schedulertest.Key("g")}
			script.round = newRound(t.Context(), s, 2, 2, [][]int{{0}, {1}}, time.Minute, func() {})
			if n := schedulertest.Counted(t, worker.Binding, script.round.run); n != 1 {
				t.Errorf("%d panics were counted.", n)
			}
			if got := strings.Join(script.events, "; "); !strings.Contains(got, want) {
				t.Errorf("It happens %q, which lacks %q.", got, want)
			}
		})
	}
}
