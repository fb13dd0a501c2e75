package scheduler

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/arbor-control/arbor/internal/scheduler/podinfo"
)

// putAllBack returns the members of a gang that was tried to the queue, each
// with the plugins that refused any: what may help one of them may help the
// gang, so it wakes all. Without any, they are tried again after a while.
func (s *Scheduler) putAllBack(ctx context.Context, t *turn, rejectors sets.Set[string]) {
	for _, q := range t.waiting {
		if q != nil {
			s.putBack(ctx, q, rejectors)
		}
	}
}

// putBack returns one pod. It writes nothing to the API server: that is the
// reporter's, in its own time, because whoever waits here keeps every other pod
// waiting too.
func (s *Scheduler) putBack(ctx context.Context, q *framework.QueuedPodInfo, rejectors sets.Set[string]) {
	logger, queue := klog.FromContext(ctx), s.kube.SchedulingQueue
	popped := q.Pod
	pod := s.groups.Current(popped)
	if pod == nil || pod.Spec.NodeName != "" {
		queue.Done(q.Pod.UID) // gone, or placed by somebody else

		return
	}
	info, err := framework.NewPodInfo(pod.DeepCopy())
	if err != nil {
		logger.V(1).Info("A pod has affinity terms that cannot be read", "pod", klog.KObj(pod), "err", err)
	}
	q.PodInfo = info
	q.ClearRejectorPlugins()
	q.UnschedulablePlugins = rejectors.Clone()
	if err := queue.AddUnschedulableIfNotPresent(logger, q, queue.SchedulingCycle()); err != nil {
		logger.Error(err, "A pod could not be put back into the queue", "pod", klog.KObj(pod))
	}
	if popped.Status.NominatedNodeName != "" || pod.Status.NominatedNodeName != "" {
		renominate(logger, queue, pod, s.groups.Current)
	}
}

// renominate has the queue nominate a pod to the node that its status has. The queue
// takes no notice when that changes while the pod is being tried, and would keep the old
// nomination forever. Once the pod is in the queue, it follows changes that come later.
func renominate(logger klog.Logger, queue fwk.PodNominator, pod *corev1.Pod, current func(*corev1.Pod) *corev1.Pod) {
	for {
		is := current(pod)
		if is == nil || is.Spec.NodeName != "" {
			return // its event removes the nomination
		}
		queue.AddNominatedPod(logger, podinfo.New(is), nil)
		if again := current(pod); again == nil || again.Status.NominatedNodeName == is.Status.NominatedNodeName {
			return
		}
	}
}
