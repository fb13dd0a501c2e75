package binding

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/internal/scheduler/worker"
)

// safeSteps are the steps of a round in which a panic affects one member: it is an error of
// that step, and the round goes on with the others.
type safeSteps struct {
	roundSteps

	key types.NamespacedName
}

func (s safeSteps) permit(ctx context.Context, m int) error {
	return s.do(func() error { return s.roundSteps.permit(ctx, m) })
}

func (s safeSteps) prepare(ctx context.Context, m int) error {
	return s.do(func() error { return s.roundSteps.prepare(ctx, m) })
}

func (s safeSteps) mark(m int) error { return s.do(func() error { return s.roundSteps.mark(m) }) }

func (s safeSteps) bind(ctx context.Context, m int) error {
	return s.do(func() error { return s.roundSteps.bind(ctx, m) })
}

func (s safeSteps) settle(bound bool) {
	defer worker.Recovered(worker.Binding, s.key)
	s.roundSteps.settle(bound)
}

func (s safeSteps) drop(m int, err error) {
	defer worker.Recovered(worker.Binding, s.key)
	s.roundSteps.drop(m, err)
}

func (s safeSteps) fail(members []int, why *roundFailure) {
	defer worker.Recovered(worker.Binding, s.key)
	s.roundSteps.fail(members, why)
}

// do turns a panic into an error.
func (s safeSteps) do(step func() error) (err error) {
	defer func() {
		if cause := recover(); worker.Caught(worker.Binding, s.key, cause) {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()

	return step()
}
