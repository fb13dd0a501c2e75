package synthesis

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	deliveryrules "github.com/arbor-control/arbor/internal/decide/delivery"
	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/executor"
	"github.com/arbor-control/arbor/internal/krm"
)

// stopGrace is how long a process that is stopped may take to record that it gives up its synthesis,
// so that the next one need not wait for the timeout.
const stopGrace = 2 * time.Second

// Why a synthesis ended without a result.
var (
	// ErrSuperseded means that the synthesis was canceled or superseded.
	ErrSuperseded = errors.New("the synthesis is not wanted any more")

	errEnding = errors.New("the process that ran it was stopped")
)

// A Runner runs syntheses.
type Runner struct {
	Client client.Client
	// Reader reads from the API server.
	Reader client.Reader
	Mapper meta.RESTMapper
	// Manifests checks the manifests that programs write.
	Manifests *deliveryrules.Reader
	// Executor runs programs.
	Executor executor.Executor
	// Timeout of a program.
	Timeout time.Duration
	Now     func() time.Time
	// HistoryLimit is how many syntheses before the previous one are kept.
	HistoryLimit int
	// Rules are those between tenants. What they forbid is not read.
	Rules tenancy.Rules
}

// An Outcome is what became of a synthesis.
type Outcome struct {
	// Resources are how many manifests it made.
	Resources int
	// Err is nil if they were promoted, ErrSuperseded if the synthesis was superseded, and
	// otherwise why it failed.
	Err error
	// Message is the one that was written to the composition, and MessageErr why it could not be
	// written.
	Message    string
	MessageErr error
}

// Reason is why it failed, without the output of the program, for logs.
func (o Outcome) Reason() string {
	if errors.Is(o.Err, executor.ErrLost) {
		return o.Err.Error()
	}
	if _, ok := errors.AsType[*programError](o.Err); ok {
		return "the synthesizer failed; see the status of the composition"
	}

	return o.Err.Error()
}

// Run runs the synthesis in flight of a composition to its end. To cancel it, end ctx with
// ErrSuperseded as the cause.
func (r *Runner) Run(ctx context.Context, c *enov1.Composition, s *enov1.Synthesizer) Outcome {
	m, err := r.make(ctx, c, s)
	if err == nil {
		err = r.publish(ctx, c, m)
	}
	out := Outcome{Resources: len(m.manifests), Err: err}
	switch {
	case err == nil:
		return out
	case errors.Is(err, ErrSuperseded), errors.Is(context.Cause(ctx), ErrSuperseded):
		out.Err = ErrSuperseded

		return out
	case ctx.Err() != nil:
		out.Err = errEnding
	case errors.Is(err, executor.ErrLost):
		// Why the container of the executor ended is in the status of the pod. The manager
		// reads it there, and gives the synthesis up.
		return out
	}
	results := m.results
	if !failed(results) {
		results = append([]enov1.Result{{Message: krm.Shorten(out.Err.Error(), krm.MaxMessage), Severity: enov1.SeverityError}}, results...)
	}
	wrote, err := r.fail(ctx, c, results)
	if wrote {
		out.Message = results[0].Message
	}
	out.MessageErr = err

	return out
}

// GiveUp ends the synthesis in flight of a composition for a reason that its
// runner does not know, and reports whether it was still wanted.
func (r *Runner) GiveUp(ctx context.Context, c *enov1.Composition, why string) (bool, error) {
	return r.fail(ctx, c, []enov1.Result{{Message: krm.Shorten(why, krm.MaxMessage), Severity: enov1.SeverityError}})
}

// fail ends the synthesis, and writes why. The context may have ended.
func (r *Runner) fail(ctx context.Context, c *enov1.Composition, results []enov1.Result) (bool, error) {
	ctx, cancel := lingering(ctx, stopGrace)
	defer cancel()
	uuid := c.Status.InFlightSynthesis.UUID

	return r.update(ctx, c, func(live *enov1.Composition) (enov1.CompositionStatus, bool) {
		if live.DeletionTimestamp != nil {
			return live.Status, false // it was superseded, and has not failed
		}

		return decide.Fail(&live.Status, uuid, results, r.Now())
	})
}

func failed(results []enov1.Result) bool { return (&enov1.Synthesis{Results: results}).Failed() }
