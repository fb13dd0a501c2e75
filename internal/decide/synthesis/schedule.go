package synthesis

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// Limits of what is synthesized at once.
type Limits struct {
	// Concurrency is how many syntheses are in flight at most: the number of slots.
	Concurrency int
	// Cooldown is the time between two syntheses of a rollout.
	Cooldown time.Duration
	// MaxFailures is how many compositions may fail before a rollout halts, 0 for any
	// number.
	MaxFailures int
	// Scope is the namespace that the manager is about, "" for all.
	Scope string
	// Rules are those between tenants.
	Rules tenancy.Rules
}

// A Start is a synthesis whose turn it is.
type Start struct {
	Composition *enov1.Composition
	Synthesizer *enov1.Synthesizer
	Wish        Wish

	// failed is set for a composition that the rollout has broken.
	failed bool
	// place is where it is among all wishes, the most urgent one first.
	place int
}

// needsSlot reports whether the synthesis needs a slot. One that replaces a synthesis in
// flight has that one's.
func (s Start) needsSlot() bool { return !Running(&s.Composition.Status) }

// isGuarded reports whether a halt of the rollout holds the synthesis: a composition that
// is broken already has nothing to lose.
func (s Start) isGuarded() bool { return s.Wish.Cause.deferred() && !s.failed }

// earliest is when a synthesis may begin, if the last one of a rollout began at a time.
func (s Start) earliest(rollout time.Time, cooldown time.Duration) time.Time {
	if s.Wish.Cause.deferred() && !rollout.IsZero() {
		return later(s.Wish.NotBefore, rollout.Add(cooldown))
	}

	return s.Wish.NotBefore
}

// A Plan is what to begin now.
type Plan struct {
	Begin []Start
	// Waiting are those whose turn has not come: there is no slot for them, or a rollout
	// continues slowly. What failed a moment ago is not waiting yet.
	Waiting []Start
	// Held are those that wait because the rollout of their Synthesizer is halted.
	Held []Start
	// Halts are the Synthesizers whose condition RolloutHalted has to be written.
	Halts []Halt
	// Free is how many more could be begun: none while one waits for a slot.
	Free int
	// Next is when to requeue even if nothing happens; zero if never.
	Next time.Time
}

// Schedule returns which syntheses to start, of compositions that nothing is known of yet. See
// Ledger.Plan.
func Schedule(all []*enov1.Composition, synthesizers map[string]*enov1.Synthesizer, limits Limits, now time.Time) Plan {
	l := NewLedger()
	for _, s := range synthesizers {
		l.SetSynthesizer(s)
	}
	for _, c := range all {
		l.Set(c)
	}

	return l.Plan(limits, now)
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

// lastDeferred is when the last synthesis of a rollout was begun for a composition.
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
