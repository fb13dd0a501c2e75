package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// noNode removes a nomination.
var noNode = &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride} //nolint:gochecknoglobals // a constant

// drop returns one member to the queue. The gang is tried again as it is then:
// pods that are bound count toward its minimum.
func (b *binding) drop(m int, err error) {
	b.release([]int{m})
	b.requeue(m, err)
	b.freed([]int{m})
}

// fail returns all members to the queue. None of them is there before all of
// them have lost their places: otherwise the next cycle would count the places
// that are still held toward the minimum.
func (b *binding) fail(members []int, why *roundFailure) {
	culprit := b.held[why.member]
	message := fmt.Sprintf("PodGroup %s waits because pod %q could not be prepared for node %q: %s%s",
		b.t.key, culprit.pod.Name, culprit.node, why.err, volumesOf(culprit.pod))
	klog.FromContext(b.ctx).Info("A gang could not be bound; it is tried again", "pod", klog.KObj(culprit.pod), "node", culprit.node, "err", why.err)
	timeout := bindTimeoutError(0)
	timedOut := errors.As(why.err, &timeout)
	if timedOut { // before the places are free: the preemptor must not take them for unused ones
		until := b.binder.unpreparedFor(b.t.key, b.t.gang.Group, culprit.pod)
		message += fmt.Sprintf("; the group preempts no pods until %s, unless this pod is deleted or the PodGroup is edited", until.UTC().Format(time.RFC3339))
	}
	b.release(members)
	if timedOut {
		b.binder.backOffs.doomed(b.t.key, b.t.began, culprit.pod.UID)
	} else {
		b.binder.backOffs.failedSince(b.t.key, b.t.began)
	}
	for _, m := range members {
		if m == why.member {
			b.requeue(m, why.err)

			continue
		}
		b.binder.putBack(b.ctx, b.t.waiting[b.held[m].member], nil)
		b.retract(m) // putBack nominates the pod as its status does
	}
	b.binder.preemptor.cleanUpLater(b.t.key)
	b.freed(members)
	b.binder.preemptor.touch(b.t.key)
	b.binder.reporter.decided(b.t.key, &decide.Outcome{
		About: decide.Spec(b.t.gang.Group),
		Error: &decide.Refusal{Reason: v2alpha2.ReasonSchedulerError, Message: message},
	})
}

// release takes the places of members, the last one first.
func (b *binding) release(members []int) {
	logger := klog.FromContext(b.ctx)
	bindFailures.Add(float64(len(members)))
	for _, m := range slices.Backward(members) {
		h := b.held[m]
		endPermit(b.ctx, b.t.fw, h.pod)
		b.binder.groups.uncommit(h.pod.UID)
		b.binder.preemptor.gone(h.pod.UID)
		b.t.fw.RunReservePluginsUnreserve(b.ctx, h.state, h.pod, h.node)
		if err := b.binder.kube.Cache.ForgetPod(logger, h.pod); err != nil {
			logger.Error(err, "A pod that could not be bound was not in the cache any more", "pod", klog.KObj(h.pod))
		}
		b.t.fw.RemovePodInPreBind(h.pod.UID)
	}
}

// requeue returns a member to the queue and writes to the pod why.
func (b *binding) requeue(m int, err error) {
	b.binder.kube.FailureHandler(b.ctx, b.t.fw, b.t.waiting[b.held[m].member], statusOf(err), noNode, time.Now())
}

// retract has the queue forget the nominatedNodeName that was written in this round.
// Autoscalers add no nodes for a pod that has one, so cleanUp removes it from the status,
// as fast as nominations may be removed.
func (b *binding) retract(m int) {
	if b.nominated[m] {
		b.binder.kube.SchedulingQueue.AddNominatedPod(klog.FromContext(b.ctx), b.t.waiting[b.held[m].member].PodInfo, noNode)
	}
}

// freed tells the queue that places are free, once for members that are alike.
// The members themselves are not moved by that.
func (b *binding) freed(members []int) {
	own, shapes := sets.New[types.UID](), sets.New[string]()
	for _, m := range members {
		own.Insert(b.held[m].pod.UID)
	}
	for _, m := range members {
		shape := b.t.gang.Members[b.held[m].member].Shape
		if shape != "" && shapes.Has(shape) {
			continue
		}
		shapes.Insert(shape)
		b.binder.kube.SchedulingQueue.MoveAllToActiveOrBackoffQueue(klog.FromContext(b.ctx), framework.EventAssignedPodDelete, b.held[m].pod, nil,
			func(pod *corev1.Pod) bool { return !own.Has(pod.UID) })
	}
}

// unpreparedFor notes that a pod could not be prepared for a binding round, unless its deletion, or
// an edit of the group, came first: no later event would end this.
func (s *binder) unpreparedFor(key types.NamespacedName, group *v2alpha2.PodGroup, pod *corev1.Pod) time.Time {
	until := s.unprepared.failed(key, pod, s.reserved(key))
	if is := s.groups.current(pod); is == nil || is.DeletionTimestamp != nil {
		s.unprepared.deleted(key, pod.UID)
	}
	if is := s.groups.group(key); is == nil || is.UID != group.UID || is.Generation != group.Generation {
		s.unprepared.forget(key)
	}

	return until
}

// endPermit removes a pod from those that wait for a Permit plugin.
func endPermit(ctx context.Context, fw framework.Framework, pod *corev1.Pod) {
	if fw.WillWaitOnPermit(ctx, pod) {
		fw.RejectWaitingPod(pod.UID)
		fw.WaitOnPermit(ctx, pod)
	}
}
