package podinfo

import (
	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// New makes a PodInfo whose resources are computed, so that goroutines may
// share it. Affinity terms that do not parse are ignored, as kube-scheduler does.
func New(pod *corev1.Pod) fwk.PodInfo {
	info, _ := framework.NewPodInfo(pod)
	info.CalculateResource()

	return info
}

// WithPriority returns the pod as the filters must see it: with the priority of its
// gang, which may come from the PodGroup.
func WithPriority(pod *corev1.Pod, priority int32) *corev1.Pod {
	if pod.Spec.Priority != nil && *pod.Spec.Priority == priority {
		return pod
	}
	c := *pod
	c.Spec.Priority = &priority

	return &c
}
