package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/engine/gang"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// errOutdated ends a plan that does not hold for the gang as it is now.
var errOutdated = errors.New("the reserved room does not fit the group any more")

// covers reports whether a plan was verified for the gang as it is now: for its spec, and
// for pods that all still exist.
func (p *plan) covers(g *decide.Gang) bool {
	if p.generation != g.Group.Generation {
		return false
	}
	exists := map[types.UID]bool{}
	for _, pod := range g.Pods {
		exists[pod.UID] = true
	}

	return !slices.ContainsFunc(p.pods, func(pod *corev1.Pod) bool { return !exists[pod.UID] })
}

// renew verifies a plan, whose victims were evicted, for a gang that has changed. It uses the
// copy of the cluster, so it writes nothing: see recordAgain. Its error wraps errOutdated if
// the plan does not hold any more.
func (p *preemptor) renew(ctx context.Context, key types.NamespacedName, g *decide.Gang, one *preempting) error {
	next, err := p.adapt(ctx, key, g, one.plan)
	if err != nil {
		return fmt.Errorf("%w: %w", errOutdated, err)
	}
	former, had := one.plan, p.reservations.of(key)
	p.mu.Lock()
	one.plan = next
	p.mu.Unlock()
	p.reservations.set(newReservation(key, next.pods, next.nodes, next.priority))
	if len(next.pods) < len(former.pods) || next.priority < former.priority {
		p.vacate(ctx, had) // other pods may use a part of the room now
	}

	return nil
}

// recordAgain writes the record and the places of a plan that was renewed.
func (p *preemptor) recordAgain(ctx context.Context, g *decide.Gang, one *preempting) error {
	if err := p.record(ctx, g.Group, one.plan); err != nil {
		return err
	}
	if err := p.nominate(ctx, one.plan); err != nil {
		return err
	}
	p.mu.Lock()
	one.plan.unrecorded = false
	p.mu.Unlock()

	return nil
}

// adapt returns the plan for the gang as it is now, with the same room and the same
// victims. It is verified on the private copy of the cluster: the room is reserved, so
// other pods have not taken it since the plan was verified on the live one.
func (p *preemptor) adapt(ctx context.Context, key types.NamespacedName, g *decide.Gang, of *plan) (*plan, error) {
	next := *of
	next.generation, next.unrecorded = g.Group.Generation, true
	next.priority = p.groups.priority(g.Group, g.Pods)
	if !p.mayPreempt(g) {
		return nil, errors.New("the group may not preempt")
	}
	for _, pod := range of.victims {
		if is := p.groups.usingRoom(pod); is != nil && isRunning(is) && !p.mayEvict(is, next.priority, of.victims) {
			return nil, fmt.Errorf("%w: %s/%s", errIneligible, is.Namespace, is.Name)
		}
	}
	if err := next.reassign(g); err != nil {
		return nil, err
	}
	done, err := p.trial.open(ctx, p.groups.placed)
	if err != nil {
		return nil, err
	}
	defer done()
	dry, err := trialDryRun(ctx, p.trial, key, g, next.priority)
	if err != nil {
		return nil, err
	}

	return &next, dry.verify(g, &next, p.groups.current, time.Now())
}

// reassign gives the places of pods that do not wait any more to pods that are like
// them. It returns an error if the places are not enough for the gang.
func (p *plan) reassign(g *decide.Gang) error {
	members, spare := slices.Clone(g.Members), p.spares(g)
	had, nodes := p.pods, p.nodes
	p.pods, p.nodes = nil, nil
	for at, pod := range had {
		i := slices.IndexFunc(g.Pods, func(is *corev1.Pod) bool { return is.UID == pod.UID })
		if i < 0 {
			i = slices.IndexFunc(g.Pods, func(is *corev1.Pod) bool { return spare[is.UID] && alike(is, pod) })
		}
		if i < 0 || !waits(members[i]) {
			continue // it has a place, or no pod replaces it
		}
		delete(spare, g.Pods[i].UID)
		members[i].State = gang.Placed
		p.pods, p.nodes = append(p.pods, g.Pods[i]), append(p.nodes, nodes[at])
	}
	if len(p.pods) == 0 || !gang.Satisfied(g.Tree, members, g.Rules)[g.Tree.Root()].Satisfied {
		return errors.New("the reserved places are not enough for its minimum")
	}

	return nil
}

// spares returns the pods of a gang that wait and have no place in the plan.
func (p *plan) spares(g *decide.Gang) map[types.UID]bool {
	spare := map[types.UID]bool{}
	for i, m := range g.Members {
		spare[g.Pods[i].UID] = waits(m)
	}
	for _, pod := range p.pods {
		delete(spare, pod.UID)
	}

	return spare
}

// alike reports whether a pod can take the reserved place of another one.
func alike(a, b *corev1.Pod) bool {
	return a.Labels[decide.SubGroupLabel] == b.Labels[decide.SubGroupLabel] && decide.Shape(a, false) == decide.Shape(b, false)
}

// claimMargin is what a reservation may take beyond the termination of its victims: for
// writing it down with errors, for victims that are late, and for placing the gang.
const claimMargin = 5 * time.Minute

// latest returns when the reservation of a plan has to end: a scheduler that crashes again
// and again must not keep room forever.
func (p *plan) latest(now time.Time) time.Time {
	deadline := now
	for _, pod := range p.victims {
		ends := now
		switch grace := pod.Spec.TerminationGracePeriodSeconds; {
		case pod.DeletionTimestamp != nil:
			ends = pod.DeletionTimestamp.Time
		case grace != nil:
			ends = now.Add(time.Duration(*grace) * time.Second)
		}
		if ends.After(deadline) {
			deadline = ends
		}
	}

	return deadline.Add(claimMargin)
}
