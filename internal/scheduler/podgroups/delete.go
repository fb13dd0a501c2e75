package podgroups

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// DeletePod deletes a pod, with the reason in its status. If another pod has its name by now,
// that pod is neither changed nor deleted.
func (g *Index) DeletePod(ctx context.Context, pod *corev1.Pod, reason, message string) error {
	status := pod.Status.DeepCopy()
	if podutil.UpdatePodCondition(status, &corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: message,
		ObservedGeneration: podutil.CalculatePodConditionObservedGeneration(&pod.Status, pod.Generation, corev1.DisruptionTarget),
	}) {
		if err := PatchPodStatus(ctx, g.Client, pod, &pod.Status, status); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cannot mark pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	err := g.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}})
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
func (g *Index) confirmDeleted(ctx context.Context, pod *corev1.Pod, answer error) error {
	is, err := g.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
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
