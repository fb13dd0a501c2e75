package binding

import (
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
	"github.com/arbor-control/arbor/internal/scheduler/backoff"
	"github.com/arbor-control/arbor/internal/scheduler/gangmetrics"
	"github.com/arbor-control/arbor/internal/scheduler/placement"
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
		b.t.Key, culprit.Pod.Name, culprit.Node, why.err, backoff.VolumesOf(culprit.Pod))
	klog.FromContext(b.ctx).Info("A gang could not be bound; it is tried again", "pod", klog.KObj(culprit.Pod), "node", culprit.Node, "err", why.err)
	timeout := bindTimeoutError(0)
	timedOut := errors.As(why.err, &timeout)
	if timedOut { // before the places are free: the preemptor must not take them for unused ones
		until := b.binder.unpreparedFor(b.t.Key, b.t.Gang.Group, culprit.Pod)
		message += fmt.Sprintf("; the group preempts no pods until %s, unless this pod is deleted or the PodGroup is edited", until.UTC().Format(time.RFC3339))
	}
	b.release(members)
	if timedOut {
		b.binder.BackOffs.Doomed(b.t.Key, b.t.Began, culprit.Pod.UID)
	} else {
		b.binder.BackOffs.FailedSince(b.t.Key, b.t.Began)
	}
	for _, m := range members {
		if m == why.member {
			b.requeue(m, why.err)

			continue
		}
		b.binder.PutBack(b.ctx, b.t.Waiting[b.held[m].Member], nil)
		b.retract(m) // putBack nominates the pod as its status does
	}
	b.binder.Preemptor.CleanUpLater(b.t.Key)
	b.freed(members)
	b.binder.Preemptor.Touch(b.t.Key)
	b.binder.Reporter.Decided(b.t.Key, &decide.Outcome{
		About: decide.Spec(b.t.Gang.Group),
		Error: &decide.Refusal{Reason: v2alpha2.ReasonSchedulerError, Message: message},
	})
}

// release takes the places of members, the last one first.
func (b *binding) release(members []int) {
	logger := klog.FromContext(b.ctx)
	gangmetrics.BindFailures.Add(float64(len(members)))
	for _, m := range slices.Backward(members) {
		h := b.held[m]
		placement.EndPermit(b.ctx, b.t.Framework, h.Pod)
		b.binder.Groups.Uncommit(h.Pod.UID)
		b.binder.Preemptor.Gone(h.Pod.UID)
		b.t.Framework.RunReservePluginsUnreserve(b.ctx, h.State, h.Pod, h.Node)
		if err := b.binder.Kube.Cache.ForgetPod(logger, h.Pod); err != nil {
			logger.Error(err, "A pod that could not be bound was not in the cache any more", "pod", klog.KObj(h.Pod))
		}
		b.t.Framework.RemovePodInPreBind(h.Pod.UID)
	}
}

// requeue returns a member to the queue and writes to the pod why.
func (b *binding) requeue(m int, err error) {
	b.binder.Kube.FailureHandler(b.ctx, b.t.Framework, b.t.Waiting[b.held[m].Member], statusOf(err), noNode, time.Now())
}

// retract has the queue forget the nominatedNodeName that was written in this round.
// Autoscalers add no nodes for a pod that has one, so cleanUp removes it from the status,
// as fast as nominations may be removed.
func (b *binding) retract(m int) {
	if b.nominated[m] {
		b.binder.Kube.SchedulingQueue.AddNominatedPod(klog.FromContext(b.ctx), b.t.Waiting[b.held[m].Member].PodInfo, noNode)
	}
}

// freed tells the queue that places are free, once for members that are alike.
// The members themselves are not moved by that.
func (b *binding) freed(members []int) {
	own, shapes := sets.New[types.UID](), sets.New[string]()
	for _, m := range members {
		own.Insert(b.held[m].Pod.UID)
	}
	for _, m := range members {
		shape := b.t.Gang.Members[b.held[m].Member].Shape
		if shape != "" && shapes.Has(shape) {
			continue
		}
		shapes.Insert(shape)
		b.binder.Kube.SchedulingQueue.MoveAllToActiveOrBackoffQueue(klog.FromContext(b.ctx), framework.EventAssignedPodDelete, b.held[m].Pod, nil,
			func(pod *corev1.Pod) bool { return !own.Has(pod.UID) })
	}
}

// unpreparedFor notes that a pod could not be prepared for a binding round, unless its deletion, or
// an edit of the group, came first: no later event would end this.
func (s *Binder) unpreparedFor(key types.NamespacedName, group *v2alpha2.PodGroup, pod *corev1.Pod) time.Time {
	until := s.Unprepared.Failed(key, pod, s.Reserved(key))
	if is := s.Groups.Current(pod); is == nil || is.DeletionTimestamp != nil {
		s.Unprepared.Deleted(key, pod.UID)
	}
	if is := s.Groups.Group(key); is == nil || is.UID != group.UID || is.Generation != group.Generation {
		s.Unprepared.Forget(key)
	}

	return until
}
