package scheduler

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/gangmetrics"
	"github.com/arbor-control/arbor/internal/scheduler/placement"
)

// notPermitted gives up a gang with a member that was rejected.
func (s *Scheduler) notPermitted(ctx context.Context, t *turn, w *placement.World, refused *placement.PermitRefusal) string {
	w.Rollback(0)
	s.backOffs.Failed(t.key)
	why := &decide.Refusal{Reason: v2alpha2.ReasonUnschedulable, Message: fmt.Sprintf("pod %q: %s", refused.Pod.Name, refused.Status.Message())}
	rejectors, result := w.Rejectors, gangmetrics.ResultUnschedulable
	if !refused.Status.IsRejected() {
		why.Reason, rejectors, result = v2alpha2.ReasonSchedulerError, nil, gangmetrics.ResultError
	}
	s.putAllBack(ctx, t, rejectors)
	s.reporter.Decided(t.key, &decide.Outcome{About: decide.Spec(t.gang.Group), Error: why})

	return result
}

// activate moves the pods to the active queue that plugins asked for during the
// cycle of this one.
func (s *Scheduler) activate(ctx context.Context, h placement.Holding) {
	data, err := h.State.Read(framework.PodsToActivateKey)
	if err != nil {
		return
	}
	pods, ok := data.(*framework.PodsToActivate)
	if !ok {
		return
	}
	pods.Lock()
	wanted := pods.Map
	pods.Map = map[string]*corev1.Pod{}
	pods.Unlock()
	if len(wanted) > 0 {
		s.kube.SchedulingQueue.Activate(klog.FromContext(ctx), wanted)
	}
}
