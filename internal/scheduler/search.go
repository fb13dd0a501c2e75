package scheduler

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/arbor-control/arbor/engine/gang"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// trialBudget is how long the search for victims may take. When it is over, the
// best plan so far counts, or there is none.
const trialBudget = 5 * time.Second

// A plan says who would have to go, and where the gang would be then.
type plan struct {
	victims []*corev1.Pod
	places  []gang.Placement
}

// A search tries who has to go.
type search struct {
	trial   *trial
	gang    *decide.Gang
	units   []unit
	without []bool // by unit: it is gone, in the trial
}

// search finds the shortest beginning of the units whose going lets the gang
// in, and then lets everybody stay who need not go after all, the most important
// first. When time is up, what was found so far counts.
func (p *preemptor) search(ctx context.Context, g *decide.Gang, units []unit) (*plan, error) {
	done, err := p.s.trial.open(ctx, p.s.groups.placed)
	if err != nil {
		return nil, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, trialBudget)
	defer cancel()
	s := &search{trial: p.s.trial, gang: g, units: units, without: make([]bool, len(units))}
	if err := p.s.trial.bury(ctx); err != nil {
		return nil, err
	}
	if best, err := s.fits(ctx, 0); err != nil || best != nil {
		return nil, err // somebody has gone meanwhile, or is going, and that wakes the gang
	}
	best, err := s.fits(ctx, len(units))
	if err != nil || best == nil {
		return nil, err // not even if all of them went
	}
	best, n := s.shorten(ctx, best)
	best, err = s.spare(ctx, best, n)
	if err != nil {
		return nil, err
	}

	return toPlan(units, s.without, best), nil
}

// shorten finds by halving how many units are enough.
func (s *search) shorten(ctx context.Context, best *gang.Decision) (*gang.Decision, int) {
	low, high := 0, len(s.units) // low is too few, high is enough
	for high-low > 1 {
		middle := (low + high) / 2
		decision, err := s.fits(ctx, middle)
		if err != nil {
			break
		}
		if decision == nil {
			low = middle
		} else {
			best, high = decision, middle
		}
	}

	return best, high
}

// spare lets units of the first n come back whose room is not needed.
func (s *search) spare(ctx context.Context, best *gang.Decision, n int) (*gang.Decision, error) {
	if err := s.set(ctx, n); err != nil {
		return nil, err
	}
	for i := n - 1; i >= 0 && ctx.Err() == nil; i-- {
		if err := s.let(ctx, i, false); err != nil {
			return nil, err
		}
		decision, err := s.ask(ctx)
		if err == nil && decision != nil {
			best = decision

			continue
		}
		if err := s.let(ctx, i, true); err != nil {
			return nil, err
		}
	}

	return best, nil
}

// fits returns the decision if the gang fits without the first n units.
func (s *search) fits(ctx context.Context, n int) (*gang.Decision, error) {
	if err := s.set(ctx, n); err != nil {
		return nil, err
	}

	return s.ask(ctx)
}

func (s *search) ask(ctx context.Context) (*gang.Decision, error) {
	decision, err := s.trial.place(ctx, s.gang)
	if err != nil || !decision.Fits {
		return nil, err
	}

	return &decision, nil
}

func (s *search) set(ctx context.Context, n int) error {
	for i := range s.units {
		if err := s.let(ctx, i, i < n); err != nil {
			return err
		}
	}

	return nil
}

// let has a unit leave the trial, or come back to it.
func (s *search) let(ctx context.Context, i int, leave bool) error {
	if s.without[i] == leave {
		return nil
	}
	s.without[i] = leave
	do := s.trial.add
	if leave {
		do = s.trial.remove
	}
	for _, pod := range s.units[i].pods {
		if err := do(ctx, pod); err != nil {
			return err
		}
	}

	return nil
}

func toPlan(units []unit, without []bool, decision *gang.Decision) *plan {
	found := &plan{places: decision.Places}
	for i, u := range units {
		if without[i] {
			found.victims = append(found.victims, u.pods...)
		}
	}

	return found
}
