package eviction

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	fwk "k8s.io/kube-scheduler/framework"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"

	"github.com/arbor-control/arbor/internal/scheduler/gangmetrics"
	"github.com/arbor-control/arbor/internal/scheduler/podgroups"
	"github.com/arbor-control/arbor/internal/scheduler/profiles"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
)

// evictionsAtOnce bounds the evictions that are under way for one gang.
const evictionsAtOnce = 16

// An Evictor deletes pods, or cancels their binding.
type Evictor struct {
	kube     *kubescheduler.Scheduler
	groups   *podgroups.Index
	recorder events.EventRecorder
}

// New returns an evictor that records events.
func New(kube *kubescheduler.Scheduler, groups *podgroups.Index, recorder events.EventRecorder) *Evictor {
	return &Evictor{kube: kube, groups: groups, recorder: recorder}
}

// EvictAll deletes pods, with the reason on each. From the first of them on, none
// counts as a member of its gang: what takes the place of one must not find the
// others still there. An error does not keep the rest from being deleted; pods that
// could not be deleted count again. It returns the pods that were evicted, with an error too.
func (e *Evictor) EvictAll(ctx context.Context, pods []*corev1.Pod, reason, kind, message string) (evicted []types.UID, err error) {
	for _, pod := range pods {
		e.groups.MarkLeaving(pod.UID)
	}
	var mu sync.Mutex
	workqueue.ParallelizeUntil(ctx, evictionsAtOnce, len(pods), func(i int) {
		failed := e.evict(ctx, pods[i], reason, message)
		if failed == nil {
			gangmetrics.Evictions.WithLabelValues(kind).Inc()
		} else {
			e.groups.Unmark(pods[i])
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
func (e *Evictor) cancelBinding(pod *corev1.Pod) bool {
	fw := e.kube.Profiles[pod.Spec.SchedulerName]
	if fw == nil || !CancelBinding(fw, pod.UID, profiles.Gang) {
		return false
	}
	e.groups.Unmark(pod)

	return true
}

// CancelBinding cancels the binding of a pod, for a plugin that preempts it. A member of a gang
// is in PreBind while it waits for Permit plugins, too: after the first canceled member its
// gang gives up, and no longer waits for them.
func CancelBinding(handle fwk.Handle, uid types.UID, plugin string) bool {
	if w := handle.GetWaitingPod(uid); w != nil && w.Preempt(plugin, "preempted") {
		return true
	}
	p := handle.GetPodInPreBind(uid)

	return p != nil && p.CancelPod("preempted by "+plugin)
}

func (e *Evictor) evict(ctx context.Context, pod *corev1.Pod, reason, message string) error {
	if e.cancelBinding(pod) {
		return nil
	}
	if e.groups.UsingRoom(pod) == nil { // it ended, or its gang gave up its places
		e.groups.Unmark(pod)

		return nil
	}
	if err := e.groups.DeletePod(ctx, pod, reason, settings.Name+": "+message); err != nil {
		return err
	}
	e.groups.DeletedPod(pod)
	e.recorder.Eventf(pod, nil, corev1.EventTypeNormal, "Evicted", "Evicting", "%s", message)

	return nil
}
