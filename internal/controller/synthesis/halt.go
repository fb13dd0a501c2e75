package synthesis

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
)

// report writes the condition RolloutHalted of Synthesizers.
func (s *Scheduler) report(ctx context.Context, all []decide.Halt) error {
	var failed error
	for _, h := range all {
		next, was := h.Apply(metav1.NewTime(s.now()).Rfc3339Copy())
		if err := client.IgnoreNotFound(s.client.Status().Update(ctx, next)); err != nil {
			failed = errors.Join(failed, fmt.Errorf("cannot write the condition %s of Synthesizer %s: %w", enov1.ConditionRolloutHalted, next.Name, err))

			continue
		}
		s.ledger.SetSynthesizer(next)
		s.record(next, h, was)
	}

	return failed
}

// record records an event when a rollout halts, and when it continues.
func (s *Scheduler) record(of *enov1.Synthesizer, h decide.Halt, was bool) {
	switch {
	case h.Message == "" && decide.Halted(of, "") != nil: // the halt of one namespace has become that of all
	case h.Message != "" && !was:
		s.recorder.Eventf(of, nil, corev1.EventTypeWarning, enov1.ConditionRolloutHalted, "RollOut", "%s", h.Message)
	case h.Message == "" && was && decide.IsResumed(of):
		s.recorder.Eventf(of, nil, corev1.EventTypeNormal, "RolloutResumed", "RollOut", "generation %d is rolled out to all compositions, as requested by annotation %s", of.Generation, enov1.AnnotationResumeRollout)
	case h.Message == "" && was:
		s.recorder.Eventf(of, nil, corev1.EventTypeNormal, "RolloutResumed", "RollOut", "compositions have recovered: generation %d is rolled out to the next ones", of.Generation)
	}
}
