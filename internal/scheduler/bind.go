package scheduler

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// bindsAtOnce is how many bindings are under way. One connection to the API server
// carries a hundred requests; whoever finds it full opens another, and a gang of
// hundreds would open hundreds, each with its handshake.
const bindsAtOnce = 50

// bindAll binds the pods of a gang, each in its own time, but those that share a
// claim one after the other: the second finds what the first has written.
func (s *Scheduler) bindAll(ctx context.Context, t *turn, held []holding) {
	for _, chain := range chains(held) {
		go func() {
			for _, h := range chain {
				s.bindOne(ctx, t, h)
			}
		}()
	}
}

// chains divides pods so that those that share a claim are together, in order.
func chains(held []holding) [][]holding {
	var all [][]holding
	owner := map[string]int{} // claim to chain
	for _, h := range held {
		at := -1
		names := claims(h.pod)
		for _, name := range names {
			if i, ok := owner[name]; ok {
				at = join(all, owner, at, i)
			}
		}
		if at < 0 {
			at = len(all)
			all = append(all, nil)
		}
		all[at] = append(all[at], h)
		for _, name := range names {
			owner[name] = at
		}
	}

	return all
}

// join makes one chain of two, and returns which.
func join(all [][]holding, owner map[string]int, a, b int) int {
	if a < 0 || a == b {
		return b
	}
	all[a] = append(all[a], all[b]...)
	all[b] = nil
	for name, i := range owner {
		if i == b {
			owner[name] = a
		}
	}

	return a
}

// claims are the objects that pods may share and that binding writes to.
func claims(pod *corev1.Pod) []string {
	var names []string
	for _, c := range pod.Spec.ResourceClaims {
		if c.ResourceClaimName != nil {
			names = append(names, "resource/"+*c.ResourceClaimName)
		}
	}
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			names = append(names, "volume/"+v.PersistentVolumeClaim.ClaimName)
		}
	}

	return names
}

// bindOne is the rest of a pod's way, as kube-scheduler goes it: permission,
// what must be prepared, and the binding itself.
func (s *Scheduler) bindOne(ctx context.Context, t *turn, h holding) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	metrics.Goroutines.WithLabelValues(metrics.Binding).Inc()
	defer metrics.Goroutines.WithLabelValues(metrics.Binding).Dec()
	h.state.SetPodGroupSchedulingCycle(nil)
	s.groups.binding.Store(h.pod.UID, true)

	status := s.bind(ctx, t, h)
	if status.IsSuccess() {
		bound(t, h)
		t.fw.RunPostBindPlugins(ctx, h.state, h.pod, h.node)

		return
	}
	s.unbound(ctx, t, h, status)
}

func (s *Scheduler) bind(ctx context.Context, t *turn, h holding) *fwk.Status {
	if status := s.permit(ctx, t.fw, h); !status.IsSuccess() {
		return status
	}
	flight := t.fw.RunPreBindPreFlights(ctx, h.state, h.pod, h.node)
	if flight.Code() == fwk.Error || flight.IsRejected() {
		return flight
	}
	// From here on the pod is not in the queue's hands any more.
	s.kube.SchedulingQueue.Done(h.pod.UID)
	if flight.IsSuccess() {
		var stop context.CancelCauseFunc
		ctx, stop = context.WithCancelCause(ctx)
		defer stop(nil)
		t.fw.AddPodInPreBind(h.pod.UID, stop)
		defer t.fw.RemovePodInPreBind(h.pod.UID)
	}
	if status := t.fw.RunPreBindPlugins(ctx, h.state, h.pod, h.node); !status.IsSuccess() {
		return status
	}
	if p := t.fw.GetPodInPreBind(h.pod.UID); p != nil && !p.MarkPrebound() {
		return fwk.AsStatus(context.Cause(ctx))
	}
	if done, err := s.extend(ctx, h); done {
		return fwk.AsStatus(err)
	}

	s.binds <- struct{}{}
	defer func() { <-s.binds }()

	return t.fw.RunBindPlugins(ctx, h.state, h.pod, h.node)
}

// permit asks the plugins that may delay a pod.
func (s *Scheduler) permit(ctx context.Context, fw framework.Framework, h holding) *fwk.Status {
	times, status := fw.RunPermitPlugins(ctx, h.state, h.pod, h.node)
	if status.IsWait() {
		fw.AddWaitingPod(h.pod, times)

		return fw.WaitOnPermit(ctx, h.pod)
	}

	return status
}

// extend binds through an extender, if one wants to.
func (s *Scheduler) extend(ctx context.Context, h holding) (bool, error) {
	for _, e := range s.kube.Extenders {
		if !e.IsBinder() || !e.IsInterested(h.pod) {
			continue
		}
		binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: h.node}}
		binding.Namespace, binding.Name, binding.UID = h.pod.Namespace, h.pod.Name, h.pod.UID
		err := e.Bind(binding)
		if err != nil && e.IsIgnorable() {
			klog.FromContext(ctx).Info("An extender could not bind and may be ignored", "extender", e.Name(), "err", err)

			continue
		}

		return true, err
	}

	return false, nil
}

func bound(t *turn, h holding) {
	t.fw.EventRecorder().Eventf(h.pod, nil, corev1.EventTypeNormal, "Scheduled", "Binding", "Successfully assigned %v/%v to %v", h.pod.Namespace, h.pod.Name, h.node)
	metrics.PodScheduled(t.fw.ProfileName(), metrics.SinceInSeconds(t.began))
	q := t.waiting[h.member]
	metrics.PodSchedulingAttempts.Observe(float64(q.Attempts))
}

// unbound gives the place up and the pod back. The gang is then tried again as
// it is: with those that were bound as a part of its minimum.
func (s *Scheduler) unbound(ctx context.Context, t *turn, h holding, status *fwk.Status) {
	logger := klog.FromContext(ctx)
	bindFailures.Inc()
	s.groups.binding.Delete(h.pod.UID)
	t.fw.RunReservePluginsUnreserve(ctx, h.state, h.pod, h.node)
	if err := s.kube.Cache.ForgetPod(logger, h.pod); err != nil {
		logger.Error(err, "A pod that could not be bound was not in the cache any more", "pod", klog.KObj(h.pod))
	} else {
		s.kube.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, framework.EventAssignedPodDelete, h.pod, nil, nil)
	}
	q := t.waiting[h.member]
	s.kube.FailureHandler(ctx, t.fw, q, status, &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride}, time.Now())
}
