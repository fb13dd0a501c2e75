package placement

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// A PermitRefusal is the answer of a Permit plugin that rejects a required
// member of a gang, or fails.
type PermitRefusal struct {
	Pod    *corev1.Pod
	Status *fwk.Status
}

// PermitAll runs the Permit plugins for every member that has a place, in the
// goroutine that places pods, as kube-scheduler does. Members that a plugin
// delays wait in their round. An extra that is rejected loses its place; when a
// required member is rejected, the caller must give up the gang.
func (w *World) PermitAll(ctx context.Context, required int) *PermitRefusal {
	for i := 0; i < len(w.Held); {
		h := w.Held[i]
		h.State.SetPodGroupSchedulingCycle(nil)
		times, status := w.fw.RunPermitPlugins(ctx, h.State, h.Pod, h.Node)
		switch {
		case status.IsWait():
			w.fw.AddWaitingPod(h.Pod, times)
		case status.IsSuccess():
		default:
			if status.IsRejected() {
				w.Rejectors.Insert(status.Plugin())
			}
			if i < required {
				for _, earlier := range w.Held[:i] {
					EndPermit(ctx, w.fw, earlier.Pod)
				}

				return &PermitRefusal{Pod: h.Pod, Status: status}
			}
			w.release(h)
			w.Held = slices.Delete(w.Held, i, i+1)

			continue
		}
		i++
	}

	return nil
}

// EndPermit removes a pod from those that wait for a Permit plugin.
func EndPermit(ctx context.Context, fw framework.Framework, pod *corev1.Pod) {
	if fw.WillWaitOnPermit(ctx, pod) {
		fw.RejectWaitingPod(pod.UID)
		fw.WaitOnPermit(ctx, pod)
	}
}
