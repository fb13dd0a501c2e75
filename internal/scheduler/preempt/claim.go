package preempt

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/arbor-control/arbor/engine/gang"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/reservation"
)

// Rejected takes a gang that was tried and does not fit. If victims were found for it, their
// plan is verified now, and the room is reserved. Only the scheduling goroutine calls it.
func (p *Preemptor) Rejected(ctx context.Context, key types.NamespacedName, g *decide.Gang) {
	if found := p.pending(key); found != nil {
		p.reserve(ctx, key, g, found)
	} else if p.mayPreempt(g) {
		p.unplaced(key)
	}
}

// reserve verifies a plan and reserves its room, unless it is given up at the same time.
func (p *Preemptor) reserve(ctx context.Context, key types.NamespacedName, g *decide.Gang, found *plan) {
	err := p.verifyPlan(ctx, key, g, found)
	if err == nil {
		err = p.claim(found)
	}
	if err == nil {
		p.Reservations.Set(reservation.NewReservation(key, found.pods, found.nodes, found.priority))
	} else {
		klog.FromContext(ctx).V(1).Info("A plan for preemption no longer holds", "err", err)
	}
	if !p.verify(key, found, err == nil) && err == nil {
		p.Reservations.Release(key)
		p.unclaim(found)
	}
}

// inCache reports whether the scheduler's cache still has a victim on its node.
func (p *Preemptor) inCache(victim *corev1.Pod) bool {
	pod, err := p.Kube.Cache.GetPod(victim)

	return err == nil && pod.Spec.NodeName == victim.Spec.NodeName
}

// claim marks the victims of a plan as leaving, so that no other plan counts on them,
// unless another one has been faster: what is left of their gangs must not break. Only
// the scheduling goroutine calls it.
func (p *Preemptor) claim(of *plan) error {
	gangs, left := sets.New[types.NamespacedName](), sets.New[types.UID]()
	for _, pod := range of.victims {
		if pod.DeletionTimestamp != nil {
			continue // it terminates anyway
		}
		if p.Groups.IsLeaving(pod.UID) || !p.mayEvict(pod, of.priority, of.victims) {
			return fmt.Errorf("pod %s/%s is evicted for another pod, or may not be evicted", pod.Namespace, pod.Name)
		}
		left.Insert(pod.UID)
		if key, ok := decide.GroupOf(pod); ok {
			gangs.Insert(key)
		}
	}
	for key := range gangs {
		g := p.Groups.Running(key)
		if g != nil && gang.Broken(g.Tree, g.Members, g.Rules, func(member int) bool { return left.Has(g.Pods[member].UID) }) {
			return fmt.Errorf("gang %s would be broken", key)
		}
	}
	p.claimed(of)
	for _, pod := range of.victims {
		if left.Has(pod.UID) {
			p.Groups.Mark(pod)
		}
	}

	return nil
}
