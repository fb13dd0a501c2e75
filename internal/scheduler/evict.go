package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	fwk "k8s.io/kube-scheduler/framework"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// evictionsAtOnce bounds the evictions that are under way for one gang.
const evictionsAtOnce = 16

// evictAll deletes pods, with the reason on each. From the first of them on, none
// counts as a member of its gang: what takes the place of one must not find the
// others still there. An error does not keep the rest from being deleted; pods that
// could not be deleted count again. It returns the pods that were evicted, with an error too.
func (s *Scheduler) evictAll(ctx context.Context, pods []*corev1.Pod, reason, kind, message string) (evicted []types.UID, err error) {
	for _, pod := range pods {
		s.groups.leaving.Store(pod.UID, true)
	}
	var mu sync.Mutex
	workqueue.ParallelizeUntil(ctx, evictionsAtOnce, len(pods), func(i int) {
		failed := s.evict(ctx, pods[i], reason, message)
		if failed == nil {
			evictions.WithLabelValues(kind).Inc()
		} else {
			s.groups.unmark(pods[i])
		}
		mu.Lock()
		defer mu.Unlock()
		if err = errors.Join(err, failed); failed == nil {
			evicted = append(evicted, pods[i].UID)
		}
	})

	return evicted, errors.Join(err, ctx.Err())
}

// cancelBinding takes the place of a pod that is not bound yet, which then waits again.
// It reports false if the pod has to be deleted.
func (s *Scheduler) cancelBinding(pod *corev1.Pod) bool {
	fw := s.kube.Profiles[pod.Spec.SchedulerName]
	if fw == nil || !cancelBinding(fw, pod.UID, pluginName) {
		return false
	}
	s.groups.unmark(pod)

	return true
}

// cancelBinding cancels the binding of a pod, for a plugin that preempts it. A member of a gang
// is in PreBind while it waits for Permit plugins, too: after the first canceled member its
// gang gives up, and no longer waits for them.
func cancelBinding(handle fwk.Handle, uid types.UID, plugin string) bool {
	if w := handle.GetWaitingPod(uid); w != nil && w.Preempt(plugin, "preempted") {
		return true
	}
	p := handle.GetPodInPreBind(uid)

	return p != nil && p.CancelPod("preempted by "+plugin)
}

func (s *Scheduler) evict(ctx context.Context, pod *corev1.Pod, reason, message string) error {
	if s.cancelBinding(pod) {
		return nil
	}
	if s.groups.usingRoom(pod) == nil { // it ended, or its gang gave up its places
		s.groups.unmark(pod)

		return nil
	}
	if err := s.groups.deletePod(ctx, pod, reason, Name+": "+message); err != nil {
		return err
	}
	s.groups.deletedPod(pod)
	s.reporter.recorder.Eventf(pod, nil, corev1.EventTypeNormal, "Evicted", "Evicting", "%s", message)

	return nil
}

// deletePod deletes a pod, with the reason in its status. If another pod has its name by now,
// that pod is neither changed nor deleted.
func (g *groups) deletePod(ctx context.Context, pod *corev1.Pod, reason, message string) error {
	status := pod.Status.DeepCopy()
	if podutil.UpdatePodCondition(status, &corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: message,
		ObservedGeneration: podutil.CalculatePodConditionObservedGeneration(&pod.Status, pod.Generation, corev1.DisruptionTarget),
	}) {
		if err := patchPodStatus(ctx, g.client, pod, &pod.Status, status); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cannot mark pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	err := g.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		err = g.confirmDeleted(ctx, pod, err)
	}
	if err != nil {
		return fmt.Errorf("cannot evict pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}

	return nil
}

// confirmDeleted returns nil if a pod no longer exists, or is terminating. Otherwise it
// returns the answer to the request that was to delete the pod. That answer is no proof: the
// API server reports a conflict if another pod has the name, but an admission webhook may
// reject the request with any code and reason. Reads are not subject to admission.
func (g *groups) confirmDeleted(ctx context.Context, pod *corev1.Pod, answer error) error {
	is, err := g.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("%w; and the pod cannot be read: %w", answer, err)
	case is.UID != pod.UID || is.DeletionTimestamp != nil:
		return nil
	default:
		return answer
	}
}
