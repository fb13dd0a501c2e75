package scheduler

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/arbor-control/arbor/engine/gang"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// preempt looks, in a goroutine of its own, for pods that are less important
// and whose going would let the whole gang in.
func (s *Scheduler) preempt(t *turn) {
	if !s.options.Preemption || !s.mayPreempt(t.gang) {
		return
	}
	s.preemptor.add(t.key)
}

// mayPreempt says whether no member has sworn off it.
func (s *Scheduler) mayPreempt(g *decide.Gang) bool {
	for i, m := range g.Members {
		if policy := g.Pods[i].Spec.PreemptionPolicy; m.State == gang.Waiting && policy != nil && *policy == corev1.PreemptNever {
			return false
		}
	}

	return true
}

// A preemptor deals with gangs that did not fit, one at a time.
type preemptor struct {
	s       *Scheduler
	budgets policylisters.PodDisruptionBudgetLister
	todo    chan types.NamespacedName
	// evicting holds, by gang, whom it has sent away: until they are gone it
	// sends away nobody else.
	evicting map[types.NamespacedName][]*corev1.Pod
	// kept holds, by gang, the pods for which room is kept.
	kept map[types.NamespacedName][]*corev1.Pod
}

func newPreemptor(s *Scheduler, budgets policylisters.PodDisruptionBudgetLister) *preemptor {
	return &preemptor{
		s: s, budgets: budgets, todo: make(chan types.NamespacedName, 1024),
		evicting: map[types.NamespacedName][]*corev1.Pod{}, kept: map[types.NamespacedName][]*corev1.Pod{},
	}
}

// add is for the goroutine that places pods, so it does not wait: whoever finds
// no room comes back with the gang's next failure.
func (p *preemptor) add(key types.NamespacedName) {
	select {
	case p.todo <- key:
	default:
	}
}

func (p *preemptor) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case key := <-p.todo:
			began := time.Now()
			if err := p.consider(ctx, key); err != nil {
				klog.FromContext(ctx).Error(err, "Could not look for room for a gang", "podGroup", key)
			}
			trialSeconds.WithLabelValues("preemption").Observe(time.Since(began).Seconds())
		}
	}
}

func (p *preemptor) consider(ctx context.Context, key types.NamespacedName) error {
	g, why := p.s.groups.read(key)
	if why != nil || gang.Missing(g.Tree, g.Members, g.Rules) != nil {
		p.giveUp(ctx, key)

		return nil
	}
	if p.waits(key, g) {
		return nil
	}
	// It was tried again with the room that was made, and does not fit.
	p.giveUp(ctx, key)
	units, err := p.units(key, p.s.groups.priority(g.Group, g.Pods))
	if err != nil || len(units) == 0 {
		return err
	}
	found, err := p.search(ctx, g, units)
	if err != nil || found == nil {
		return err
	}

	return p.carryOut(ctx, key, g, found)
}

// giveUp takes the room away that is kept for a gang, and wakes those that may
// want it.
func (p *preemptor) giveUp(ctx context.Context, key types.NamespacedName) {
	logger, queue := klog.FromContext(ctx), p.s.kube.SchedulingQueue
	for _, pod := range p.kept[key] {
		queue.DeleteNominatedPodIfExists(pod)
		queue.MoveAllToActiveOrBackoffQueue(logger, framework.EventAssignedPodDelete, pod, nil, nil)
	}
	delete(p.kept, key)
}

// waits says whether the gang has to be patient: those it sent away are still
// going, or it was asked to wait before it sends away anybody.
func (p *preemptor) waits(key types.NamespacedName, g *decide.Gang) bool {
	for _, pod := range p.evicting[key] {
		if now, err := p.s.trial.pods.Pods(pod.Namespace).Get(pod.Name); err == nil && now.UID == pod.UID {
			return true
		}
	}
	delete(p.evicting, key)
	delay := g.Group.Spec.PreemptionDelay
	if delay == nil {
		return false
	}
	left := time.Until(g.Group.CreationTimestamp.Add(delay.Duration))
	if left > 0 {
		// Nothing else might happen by then that has the gang tried again.
		time.AfterFunc(left, func() { p.s.wake(key) })
	}

	return left > 0
}

// carryOut keeps the places for the gang and sends the victims away.
func (p *preemptor) carryOut(ctx context.Context, key types.NamespacedName, g *decide.Gang, found *plan) error {
	logger := klog.FromContext(ctx)
	var kept []*corev1.Pod
	for _, place := range found.places {
		pod := g.Pods[place.Member].DeepCopy()
		pod.Spec.NodeName = place.Node // so that its going is one from there
		kept = append(kept, pod)
		info, err := framework.NewPodInfo(g.Pods[place.Member])
		if err != nil {
			continue
		}
		p.s.kube.SchedulingQueue.AddNominatedPod(logger, info, &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: place.Node})
	}
	p.evicting[key] = found.victims
	p.kept[key] = kept
	if err := p.s.evictAll(ctx, found.victims, corev1.PodReasonPreemptionByScheduler, "preempted",
		fmt.Sprintf("PodGroup %s, which is more important, takes its place", key)); err != nil {
		return err
	}
	p.s.reporter.preempted(key, len(found.victims))

	return nil
}
