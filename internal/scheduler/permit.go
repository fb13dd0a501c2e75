package scheduler

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// A permitRefusal is the answer of a Permit plugin that rejects a required
// member of a gang, or fails.
type permitRefusal struct {
	pod    *corev1.Pod
	status *fwk.Status
}

// permitAll runs the Permit plugins for every member that has a place, in the
// goroutine that places pods, as kube-scheduler does. Members that a plugin
// delays wait in their round. An extra that is rejected loses its place; when a
// required member is rejected, the caller must give up the gang.
func (s *Scheduler) permitAll(ctx context.Context, t *turn, w *world, required int) *permitRefusal {
	for i := 0; i < len(w.held); {
		h := w.held[i]
		h.state.SetPodGroupSchedulingCycle(nil)
		times, status := t.fw.RunPermitPlugins(ctx, h.state, h.pod, h.node)
		switch {
		case status.IsWait():
			t.fw.AddWaitingPod(h.pod, times)
		case status.IsSuccess():
		default:
			if status.IsRejected() {
				w.rejectors.Insert(status.Plugin())
			}
			if i < required {
				for _, earlier := range w.held[:i] {
					endPermit(ctx, t.fw, earlier.pod)
				}

				return &permitRefusal{pod: h.pod, status: status}
			}
			w.release(h)
			w.held = slices.Delete(w.held, i, i+1)

			continue
		}
		i++
	}
	for _, h := range w.held {
		s.activate(ctx, h)
	}

	return nil
}

// notPermitted gives up a gang with a member that was rejected.
func (s *Scheduler) notPermitted(ctx context.Context, t *turn, w *world, refused *permitRefusal) string {
	w.Rollback(0)
	s.backOffs.failed(t.key)
	why := &decide.Refusal{Reason: v2alpha2.ReasonUnschedulable, Message: fmt.Sprintf("pod %q: %s", refused.pod.Name, refused.status.Message())}
	rejectors, result := w.rejectors, resultUnschedulable
	if !refused.status.IsRejected() {
		why.Reason, rejectors, result = v2alpha2.ReasonSchedulerError, nil, resultError
	}
	s.putAllBack(ctx, t, rejectors)
	s.reporter.decided(t.key, &decide.Outcome{About: decide.Spec(t.gang.Group), Error: why})

	return result
}

// activate moves the pods to the active queue that plugins asked for during the
// cycle of this one.
func (s *Scheduler) activate(ctx context.Context, h holding) {
	data, err := h.state.Read(framework.PodsToActivateKey)
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
