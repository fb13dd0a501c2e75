package scheduler

import (
	"context"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
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
	pod, err := s.kube.Profiles[q.Pod.Spec.SchedulerName].SharedInformerFactory().Core().V1().Pods().Lister().Pods(q.Pod.Namespace).Get(q.Pod.Name)
	if err != nil || pod.UID != q.Pod.UID || pod.Spec.NodeName != "" {
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
}
