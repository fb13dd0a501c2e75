package synthesis

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// Limits of what is synthesized at once.
type Limits struct {
	// Concurrency is how many syntheses are in flight at most.
	Concurrency int
	// Cooldown is the time between two syntheses of a rollout.
	Cooldown time.Duration
}

// A Start is a synthesis whose turn it is.
type Start struct {
	Composition *enov1.Composition
	Synthesizer *enov1.Synthesizer
	Wish        Wish
}

// A Plan is what to begin now.
type Plan struct {
	Begin []Start
	// Waiting are those whose turn it is not: there is no room, or a rollout goes on
	// slowly. What failed a moment ago is not waiting yet.
	Waiting []Start
	// Free is how many more could be begun.
	Free int
	// Next is when to look again even if nothing happens; zero if never.
	Next time.Time
}

// Schedule says which syntheses to begin: the most urgent ones that have all
// they need, as many as there is room for, and one at a time of those that
// follow a change which reaches many. The order of a rollout is another one for
// every generation of a Synthesizer, and the same whoever asks.
func Schedule(all []*enov1.Composition, synthesizers map[string]*enov1.Synthesizer, l Limits, now time.Time) Plan {
	running, rollout := inFlight(all)
	plan := Plan{Free: l.Concurrency - running}
	for _, s := range candidates(all, synthesizers) {
		at := s.Wish.NotBefore
		if s.Wish.Cause.deferred() && !rollout.IsZero() {
			at = later(at, rollout.Add(l.Cooldown))
		}
		// One that takes the place of another needs no room.
		inPlace := Running(&s.Composition.Status)
		switch {
		case at.After(now):
			plan.Next = sooner(plan.Next, at)
			if !s.Wish.NotBefore.After(now) {
				plan.Waiting = append(plan.Waiting, s)
			}
		case plan.Free <= 0 && !inPlace: // whoever ends makes room, and is seen to
			plan.Waiting = append(plan.Waiting, s)
		default:
			plan.Begin = append(plan.Begin, s)
			if !inPlace {
				plan.Free--
			}
			if s.Wish.Cause.deferred() {
				rollout = now
			}
		}
	}
	plan.Free = max(plan.Free, 0)

	return plan
}

// candidates returns the wishes that nothing but time and room stands against,
// the most urgent one first.
func candidates(all []*enov1.Composition, synthesizers map[string]*enov1.Synthesizer) []Start {
	type key struct{ namespace, name string }
	known := make(map[key]*enov1.Composition, len(all))
	for _, c := range all {
		known[key{c.Namespace, c.Name}] = c
	}
	find := func(namespace, name string) *enov1.Composition { return known[key{namespace, name}] }

	var starts []Start
	for _, c := range all {
		s := synthesizers[c.Spec.Synthesizer.Name]
		w, ok := Want(c, s)
		if ok && (w.RollBackTo != "" || obstacle(c, s, Dependencies(c, find)) == nil) {
			starts = append(starts, Start{c, s, w})
		}
	}
	slices.SortFunc(starts, func(a, b Start) int {
		return cmp.Or(
			cmp.Compare(a.Wish.Cause, b.Wish.Cause),
			cmp.Compare(turn(a), turn(b)),
			a.Composition.CreationTimestamp.Compare(b.Composition.CreationTimestamp.Time),
			cmp.Compare(a.Composition.Namespace, b.Composition.Namespace),
			cmp.Compare(a.Composition.Name, b.Composition.Name),
		)
	})

	return starts
}

// turn is the place of a composition in a rollout.
func turn(s Start) uint64 {
	if !s.Wish.Cause.deferred() {
		return 0
	}
	h := sha256.New()
	h.Write([]byte(s.Synthesizer.UID))
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(s.Synthesizer.Generation))) //nolint:gosec // generations are positive, and this is no more than a name
	h.Write([]byte(s.Composition.UID))

	return binary.BigEndian.Uint64(h.Sum(nil))
}

// inFlight counts the syntheses in flight, and says when the last synthesis of a
// rollout was begun.
func inFlight(all []*enov1.Composition) (running int, rollout time.Time) {
	for _, c := range all {
		if Running(&c.Status) {
			running++
		}
		rollout = later(rollout, lastDeferred(&c.Status))
	}

	return running, rollout
}

func lastDeferred(st *enov1.CompositionStatus) time.Time {
	var last time.Time
	for _, s := range []*enov1.Synthesis{st.InFlightSynthesis, st.CurrentSynthesis, st.PreviousSynthesis} {
		if s != nil && s.Deferred && s.Initialized != nil {
			last = later(last, s.Initialized.Time)
		}
	}

	return last
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}

	return a
}

// sooner ignores times that are not set.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}

	return a
}
