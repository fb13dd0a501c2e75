package scheduler

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// evictAll ends pods, and says why on each. From now on none of them counts as a
// member of its gang; those that could not be ended do again.
func (s *Scheduler) evictAll(ctx context.Context, pods []*corev1.Pod, reason, kind, message string) error {
	for _, pod := range pods {
		s.groups.leaving.Store(pod.UID, true)
	}
	for i, pod := range pods {
		if err := s.evict(ctx, pod, reason, message); err != nil {
			for _, rest := range pods[i:] {
				s.groups.leaving.Delete(rest.UID)
			}

			return err
		}
		evictions.WithLabelValues(kind).Inc()
	}

	return nil
}

func (s *Scheduler) evict(ctx context.Context, pod *corev1.Pod, reason, message string) error {
	client := s.groups.client
	status := pod.Status.DeepCopy()
	if podutil.UpdatePodCondition(status, &corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: Name + ": " + message,
	}) {
		if err := util.PatchPodStatus(ctx, client, pod.Name, pod.Namespace, &pod.Status, status); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cannot mark pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	err := client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		s.groups.leaving.Delete(pod.UID) // it has gone already, and nobody will tell
	case err != nil:
		return fmt.Errorf("cannot evict pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	s.reporter.recorder.Eventf(pod, nil, corev1.EventTypeNormal, "Evicted", "Evicting", "%s", message)

	return nil
}
