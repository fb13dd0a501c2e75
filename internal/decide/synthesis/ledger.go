package synthesis

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// A Ledger has the compositions and Synthesizers that syntheses are scheduled for. It keeps what
// can be computed for each composition alone, so that the cost of a change does not depend on the
// number of compositions. It is for one goroutine, and does not change its arguments.
type Ledger struct {
	entries      map[ledgerKey]*ledgerEntry
	synthesizers map[string]*enov1.Synthesizer
	// users are the entries by the name of their Synthesizer, and wanting those that
	// should have a synthesis, whether or not they can have it now, the most urgent one
	// first.
	users   map[string]map[ledgerKey]*ledgerEntry
	wanting []*ledgerEntry
	// running counts the syntheses in flight by namespace, and turns has the namespaces in
	// the order in which they were served. See slots.
	running map[string]int
	turns   turns
	// rollout is when the last synthesis of a rollout was begun. lost : the composition
	// that it was of has changed, so it has to be looked for.
	rollout time.Time
	lost    bool
	// guards are what halts are decided by, of the Synthesizers whose rollout has failures or
	// syntheses in flight. halted are the Synthesizers with the condition RolloutHalted.
	guards map[string]*guard
	halted map[string]bool
}

type ledgerKey struct{ namespace, name string }

// A ledgerEntry is one composition, and what can be computed for it alone.
type ledgerEntry struct {
	composition *enov1.Composition
	deferred    time.Time
	running     bool
	// wants is whether it is among the wanting.
	wants bool
	wish  Wish
	turn  uint64
	// stage is what it counts as in guards.
	stage Stage
}

// NewLedger returns an empty one.
func NewLedger() *Ledger {
	return &Ledger{
		entries: map[ledgerKey]*ledgerEntry{}, synthesizers: map[string]*enov1.Synthesizer{},
		users: map[string]map[ledgerKey]*ledgerEntry{}, guards: map[string]*guard{}, halted: map[string]bool{},
		running: map[string]int{},
	}
}

// Set enters a composition as it is now. One that is older than what is known is
// ignored: caches are behind what was written.
func (l *Ledger) Set(c *enov1.Composition) {
	key := ledgerKey{c.Namespace, c.Name}
	if old := l.entries[key]; old != nil {
		if old.composition.UID == c.UID && isOlder(c.ResourceVersion, old.composition.ResourceVersion) {
			return
		}
		l.drop(key, old)
	}
	e := &ledgerEntry{composition: c, deferred: lastDeferred(&c.Status), running: Running(&c.Status)}
	l.entries[key] = e
	l.count(e, 1)
	l.rollout = later(l.rollout, e.deferred)
	used := c.Spec.Synthesizer.Name
	if l.users[used] == nil {
		l.users[used] = map[ledgerKey]*ledgerEntry{}
	}
	l.users[used][key] = e
	l.evaluate(e)
}

// Remove forgets a composition that is gone.
func (l *Ledger) Remove(namespace, name string, uid types.UID) {
	key := ledgerKey{namespace, name}
	if e := l.entries[key]; e != nil && e.composition.UID == uid {
		l.drop(key, e)
	}
}

func (l *Ledger) drop(key ledgerKey, e *ledgerEntry) {
	delete(l.entries, key)
	l.unlist(e)
	l.guard(e, StageOther)
	used := e.composition.Spec.Synthesizer.Name
	if delete(l.users[used], key); len(l.users[used]) == 0 {
		delete(l.users, used)
	}
	l.count(e, -1)
	l.lost = l.lost || !e.deferred.IsZero() && e.deferred.Equal(l.rollout)
}

// count counts an entry that has a synthesis in flight, or with -1 undoes that.
func (l *Ledger) count(e *ledgerEntry, by int) {
	namespace := e.composition.Namespace
	if !e.running {
		return
	}
	if l.running[namespace] += by; l.running[namespace] == 0 {
		delete(l.running, namespace)
	}
}

// Served has a namespace be the last one to get a slot again, of those with as many
// syntheses in flight. Call it when a synthesis has begun that a Plan gave a slot to.
func (l *Ledger) Served(namespace string) { l.turns.served(namespace) }

// SetSynthesizer enters a Synthesizer as it is now. One that is older than what is known is
// ignored.
func (l *Ledger) SetSynthesizer(s *enov1.Synthesizer) {
	old := l.synthesizers[s.Name]
	if old != nil && old.UID == s.UID && isOlder(s.ResourceVersion, old.ResourceVersion) {
		return
	}
	l.synthesizers[s.Name] = s
	if delete(l.halted, s.Name); slices.ContainsFunc(s.Status.Conditions, func(c metav1.Condition) bool { return isHaltType(c.Type) }) {
		l.halted[s.Name] = true
	}
	// The desired syntheses depend on the spec only.
	if old == nil || old.UID != s.UID || old.Generation != s.Generation {
		l.evaluateUsers(s.Name)
	}
}

// RemoveSynthesizer forgets one that is gone.
func (l *Ledger) RemoveSynthesizer(name string) {
	delete(l.synthesizers, name)
	delete(l.halted, name)
	l.evaluateUsers(name)
}

// guard has an entry count as a stage of the rollout of its Synthesizer.
func (l *Ledger) guard(e *ledgerEntry, stage Stage) {
	if e.stage == stage {
		return
	}
	name := e.composition.Spec.Synthesizer.Name
	g := l.guards[name]
	if g == nil {
		g = newGuard()
		l.guards[name] = g
	}
	g.add(e.composition.Namespace, e.stage, -1)
	g.add(e.composition.Namespace, stage, 1)
	e.stage = stage
	if g.isEmpty() {
		delete(l.guards, name)
	}
}

func (l *Ledger) evaluateUsers(name string) {
	for _, e := range l.users[name] {
		l.evaluate(e)
	}
}

// evaluate finds out whether a composition should have another synthesis.
func (l *Ledger) evaluate(e *ledgerEntry) {
	l.unlist(e)
	s := l.synthesizers[e.composition.Spec.Synthesizer.Name]
	l.guard(e, guardedStage(e.composition, s))
	if e.wish, e.wants = Want(e.composition, s); !e.wants {
		return
	}
	e.turn = turn(Start{Composition: e.composition, Synthesizer: s, Wish: e.wish})
	at, _ := slices.BinarySearchFunc(l.wanting, e, (*ledgerEntry).compare)
	l.wanting = slices.Insert(l.wanting, at, e)
}

// unlist takes an entry out of the wanting.
func (l *Ledger) unlist(e *ledgerEntry) {
	if !e.wants {
		return
	}
	if at, ok := slices.BinarySearchFunc(l.wanting, e, (*ledgerEntry).compare); ok {
		l.wanting = slices.Delete(l.wanting, at, at+1)
	}
	e.wants = false
}

// compare orders entries by urgency. No two are equal.
func (e *ledgerEntry) compare(other *ledgerEntry) int {
	a, b := e.composition, other.composition

	return cmp.Or(
		cmp.Compare(e.wish.Cause, other.wish.Cause),
		cmp.Compare(e.turn, other.turn),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
	)
}

// lastRollout is when the last synthesis of a rollout was begun.
func (l *Ledger) lastRollout() time.Time {
	if l.lost {
		l.rollout, l.lost = time.Time{}, false
		for _, e := range l.entries {
			l.rollout = later(l.rollout, e.deferred)
		}
	}

	return l.rollout
}

// candidates returns the wishes that nothing but time and room stands against,
// the most urgent one first.
func (l *Ledger) candidates(rules tenancy.Rules) []Start {
	find := func(namespace, name string) *enov1.Composition {
		if e := l.entries[ledgerKey{namespace, name}]; e != nil {
			return e.composition
		}

		return nil
	}
	all := make([]Start, 0, len(l.wanting))
	for place, e := range l.wanting {
		c := e.composition
		s := l.synthesizers[c.Spec.Synthesizer.Name]
		if e.wish.RollBackTo != "" || !isForbidden(c) && obstacle(c, s, Dependencies(c, find, rules), rules) == nil {
			all = append(all, Start{Composition: c, Synthesizer: s, Wish: e.wish, failed: e.stage == StageFailed, place: place})
		}
	}

	return all
}

// isForbidden reports whether an input of a composition was found to be forbidden when it was
// resolved, which cannot be decided by rules alone: its kind may be cluster-scoped.
func isForbidden(c *enov1.Composition) bool {
	found := meta.FindStatusCondition(c.Status.Conditions, enov1.ConditionInputForbidden)

	return found != nil && found.Status == metav1.ConditionTrue && found.Reason == enov1.ReasonClusterScoped && found.ObservedGeneration == c.Generation
}

// isOlder reports whether a resourceVersion is before another. Those that cannot be
// compared are not.
func isOlder(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)

	return err == nil && order < 0
}
