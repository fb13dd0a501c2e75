package scheduler

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// preemptFunc preempts one victim of a candidate node.
type preemptFunc func(ctx context.Context, c preemption.Candidate, preemptor preemption.ExecutorPreemptor, victim *corev1.Pod, plugin string) error

// A plainEvictor preempts victims as kube-scheduler does. Before the first one, it
// marks all as leaving, so that none counts as a member of its gang any more.
type plainEvictor struct {
	handle fwk.Handle
	groups *groups
	// evict is kube-scheduler's own: it cancels the binding of a pod that is not
	// bound yet, and deletes any other.
	evict preemptFunc
	// marking is held while the victims of a candidate are marked.
	marking sync.Mutex
}

// preemptPod runs in one goroutine per victim. While a victim has not been
// preempted, the candidate is the value of its mark.
func (e *plainEvictor) preemptPod(ctx context.Context, c preemption.Candidate, preemptor preemption.ExecutorPreemptor, victim *corev1.Pod, plugin string) error {
	if !e.mark(c, victim) {
		return nil // another preemption evicts it
	}
	canceled := e.handle.GetWaitingPod(victim.UID) != nil || e.handle.GetPodInPreBind(victim.UID) != nil
	if !canceled && e.exists(victim) && e.groups.usingRoom(victim) == nil {
		e.groups.unmark(victim) // its gang has given up its places: it only waits

		return nil
	}
	if err := e.evict(ctx, c, preemptor, victim, plugin); err != nil {
		for _, pod := range c.Victims().Pods {
			if e.groups.leaving.CompareAndDelete(pod.UID, c) {
				e.groups.unmark(pod)
			}
		}

		return err
	}
	e.groups.leaving.Store(victim.UID, true)
	// The mark is removed with the pod. A pod whose binding was canceled stays,
	// and for one that is gone already there is no event to come.
	if canceled || !e.exists(victim) {
		e.groups.unmark(victim)
	}

	return nil
}

// mark marks all victims of a candidate. It reports whether this candidate, and
// no other preemption, marked the one that is given.
func (e *plainEvictor) mark(c preemption.Candidate, victim *corev1.Pod) bool {
	e.marking.Lock()
	defer e.marking.Unlock()
	if by, ok := e.groups.leaving.Load(victim.UID); ok {
		return by == c
	}
	for _, pod := range c.Victims().Pods {
		e.groups.leaving.LoadOrStore(pod.UID, c)
	}

	return true
}

// exists reports whether the informer still has a pod.
func (e *plainEvictor) exists(pod *corev1.Pod) bool {
	o, ok, err := e.groups.pods.GetStore().GetByKey(pod.Namespace + "/" + pod.Name)
	is, isPod := o.(*corev1.Pod)

	return err == nil && ok && isPod && is.UID == pod.UID
}
