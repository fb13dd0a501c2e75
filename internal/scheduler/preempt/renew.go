package preempt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/reservation"
)

// errOutdated ends a plan that does not hold for the gang as it is now.
var errOutdated = errors.New("the reserved room does not fit the group any more")

// renew verifies a plan, whose victims were evicted, for a gang that has changed. It uses the
// copy of the cluster, so it writes nothing: see recordAgain. Its error wraps errOutdated if
// the plan does not hold any more.
func (p *Preemptor) renew(ctx context.Context, key types.NamespacedName, g *decide.Gang, one *preempting) error {
	next, err := p.adapt(ctx, key, g, one.plan)
	if err != nil {
		return fmt.Errorf("%w: %w", errOutdated, err)
	}
	former, had := one.plan, p.Reservations.Of(key)
	p.mu.Lock()
	one.plan = next
	p.mu.Unlock()
	p.Reservations.Set(reservation.NewReservation(key, next.pods, next.nodes, next.priority))
	if len(next.pods) < len(former.pods) || next.priority < former.priority {
		p.vacate(ctx, had) // other pods may use a part of the room now
	}

	return nil
}

// recordAgain writes the record and the places of a plan that was renewed.
func (p *Preemptor) recordAgain(ctx context.Context, g *decide.Gang, one *preempting) error {
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
func (p *Preemptor) adapt(ctx context.Context, key types.NamespacedName, g *decide.Gang, of *plan) (*plan, error) {
	next := *of
	next.generation, next.unrecorded = g.Group.Generation, true
	next.priority = p.Groups.Priority(g.Group, g.Pods)
	if !p.mayPreempt(g) {
		return nil, errors.New("the group may not preempt")
	}
	for _, pod := range of.victims {
		if is := p.Groups.UsingRoom(pod); is != nil && isRunning(is) && !p.mayEvict(is, next.priority, of.victims) {
			return nil, fmt.Errorf("%w: %s/%s", errIneligible, is.Namespace, is.Name)
		}
	}
	if err := next.reassign(g); err != nil {
		return nil, err
	}
	done, err := p.Trial.Open(ctx, p.Groups.Placed)
	if err != nil {
		return nil, err
	}
	defer done()
	dry, err := trialDryRun(ctx, p.Trial, key, g, next.priority)
	if err != nil {
		return nil, err
	}

	return &next, dry.verify(g, &next, p.Groups.Current, time.Now())
}
