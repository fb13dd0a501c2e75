package scheduler

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
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
	// evict is kube-scheduler's own. It deletes a pod.
	evict preemptFunc
	// marking is held while the victims of a candidate are marked.
	marking sync.Mutex
	// waking are the candidates whose preemptor is activated after its preemption.
	waking sync.Map
}

// preemptPod runs in one goroutine per victim. While a victim has not been
// preempted, the candidate is the value of its mark.
//
// A pod that is not bound yet is not deleted: its binding is canceled. The gang may give up all
// its places at the same time, because another member was canceled, so whether a pod is being
// bound must not be asked twice.
func (e *plainEvictor) preemptPod(ctx context.Context, c preemption.Candidate, preemptor preemption.ExecutorPreemptor, victim *corev1.Pod, plugin string) error {
	if !e.mark(c, victim) {
		return nil // another preemption evicts it
	}
	if cancelBinding(e.handle, victim.UID, plugin) {
		e.handle.EventRecorder().WithLogger(klog.FromContext(ctx)).Eventf(victim, preemptor.Obj(), corev1.EventTypeNormal, "Preempted", "Preempting",
			"Preempted by %s %v on node %v: its binding was canceled", preemptor.Type(), preemptor.UID(), c.Name())
		e.stays(ctx, c, preemptor, victim)

		return nil
	}
	if e.exists(victim) && e.groups.usingRoom(victim) == nil {
		e.stays(ctx, c, preemptor, victim) // its gang has given up its places: it only waits

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
	// The mark is removed with the pod. For one that is gone already there is no event to come.
	if !e.exists(victim) {
		e.groups.unmark(victim)
	}

	return nil
}

// stays removes the mark of a pod that loses its place without being deleted.
//
// The queue learns at once that the place is free, but keeps the preemptor out until its
// preemption has ended, and no deletion follows that would wake it up. So the preemptor is
// activated when its preemption ends, which is when kube-scheduler cancels the context.
func (e *plainEvictor) stays(ctx context.Context, c preemption.Candidate, preemptor preemption.ExecutorPreemptor, victim *corev1.Pod) {
	e.groups.unmark(victim)
	if _, waking := e.waking.LoadOrStore(c, true); waking {
		return
	}
	context.AfterFunc(ctx, func() {
		e.waking.Delete(c)
		e.handle.Activate(klog.FromContext(ctx), preemptor.Pods())
	})
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
