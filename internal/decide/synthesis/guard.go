package synthesis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// Namespaces are tenants, and one tenant must not halt the rollout of all. So MaxFailures
// failures in one namespace halt the rollout in that namespace only, and all failures of a
// namespace count as at most MaxFailures-1 for the rollout as a whole: two namespaces at
// least must fail, unless MaxFailures is 1.

// namedNamespaces is how many namespaces the condition RolloutHalted names.
const namedNamespaces = 3

// A guard is what the halt of one rollout is decided by: how many compositions have failed,
// and how many syntheses are in flight, by namespace. It is kept up to date with every change
// of a composition.
type guard struct{ failed, running map[string]int }

func newGuard() *guard { return &guard{failed: map[string]int{}, running: map[string]int{}} }

// add counts a composition, or with -1 undoes that.
func (g *guard) add(namespace string, stage Stage, by int) {
	var counts map[string]int
	switch stage {
	case StageFailed:
		counts = g.failed
	case StageRunning:
		counts = g.running
	default:
		return
	}
	if counts[namespace] += by; counts[namespace] == 0 {
		delete(counts, namespace)
	}
}

func (g *guard) isEmpty() bool { return len(g.failed)+len(g.running) == 0 }

// A budget is how many more compositions may fail in a rollout with failures.
type budget struct {
	most            int
	failed, running map[string]int
	// spent counts the compositions that have failed, or could if all syntheses in flight
	// fail, each namespace up to its share.
	spent int
}

// newBudget returns the budget of a rollout. What a plan begins is added to it, so it has a
// copy of what is in flight.
func newBudget(g *guard, most int) *budget {
	b := &budget{most: most, failed: g.failed, running: maps.Clone(g.running)}
	for namespace := range b.failed {
		b.spent += b.share(b.failed[namespace] + b.running[namespace])
	}
	for namespace, n := range b.running {
		if b.failed[namespace] == 0 {
			b.spent += b.share(n)
		}
	}

	return b
}

// share is how much compositions of one namespace count for the rollout as a whole.
func (b *budget) share(n int) int { return min(n, max(1, b.most-1)) }

// isFull reports whether no further composition of a namespace may be begun: as many have
// failed as may fail, or could if those in flight fail too.
func (b *budget) isFull(namespace string) bool { return b.spent >= b.most || b.isFullIn(namespace) }

// isFullIn is isFull because of the failures in the namespace itself. Without one there is
// no limit.
func (b *budget) isFullIn(namespace string) bool {
	return b.failed[namespace] > 0 && b.failed[namespace]+b.running[namespace] >= b.most
}

// begin counts a synthesis that is begun.
func (b *budget) begin(namespace string) {
	before := b.share(b.failed[namespace] + b.running[namespace])
	b.running[namespace]++
	b.spent += b.share(b.failed[namespace]+b.running[namespace]) - before
}

// isExceeded reports whether enough compositions have failed to halt the rollout as a whole.
func (b *budget) isExceeded() bool {
	n := 0
	for _, failed := range b.failed {
		n += b.share(failed)
	}

	return n >= b.most
}

// halts returns the messages of the conditions that a Synthesizer should have, by the
// namespace that each is about: that of the manager, "" for all, if the whole rollout is
// halted. A rollout halts when enough compositions have failed. Once halted, it also stays so
// while those that have failed are tried again.
func (b *budget) halts(s *enov1.Synthesizer, scope string) map[string]string {
	if b.isExceeded() || Halted(s, scope) != nil && b.spent >= b.most {
		return map[string]string{scope: haltMessage(s, b.failed, "")}
	}
	all := map[string]string{}
	for namespace, n := range b.failed {
		if n >= b.most || Halted(s, namespace) != nil && b.isFullIn(namespace) {
			all[namespace] = haltMessage(s, map[string]int{namespace: n}, " of namespace "+namespace)
		}
	}

	return all
}

// haltMessage describes a halted rollout. Tenants can read Synthesizers, so it does not name
// compositions.
func haltMessage(s *enov1.Synthesizer, failed map[string]int, whose string) string {
	total := 0
	counts := make([]string, 0, namedNamespaces)
	for i, namespace := range slices.Sorted(maps.Keys(failed)) {
		if total += failed[namespace]; i < namedNamespaces {
			counts = append(counts, fmt.Sprintf("%d in %s", failed[namespace], namespace))
		}
	}
	more := ""
	if n := len(failed) - namedNamespaces; n > 0 {
		more = fmt.Sprintf(" and more in %s", counted(n, "other namespace"))
	}

	return fmt.Sprintf("%s failed with generation %d: %s%s. No further composition%s gets this generation until they recover, the Synthesizer is changed, or you run: %s",
		counted(total, "composition"), s.Generation, strings.Join(counts, ", "), more, whose, ResumeCommand(s.Name))
}

// A budgetSet has the budgets of rollouts with failures, by Synthesizer.
type budgetSet map[string]*budget

// holds reports whether a synthesis must wait because its rollout is full.
func (all budgetSet) holds(s Start) bool {
	b := all[s.Composition.Spec.Synthesizer.Name]

	return b != nil && s.isGuarded() && b.isFull(s.Composition.Namespace)
}

// begin counts a synthesis that is begun.
func (all budgetSet) begin(s Start) {
	if b := all[s.Composition.Spec.Synthesizer.Name]; b != nil && s.isGuarded() {
		b.begin(s.Composition.Namespace)
	}
}

// budgets returns those of the rollouts that may be full.
func (l *Ledger) budgets(limits Limits) budgetSet {
	all := budgetSet{}
	for name, g := range l.guards {
		if s := l.synthesizers[name]; limits.MaxFailures > 0 && len(g.failed) > 0 && !IsResumed(s) {
			all[name] = newBudget(g, limits.MaxFailures)
		}
	}

	return all
}

// halts returns the Synthesizers of which a condition RolloutHalted must be changed, with one such
// condition each. The rest follows when that is written.
func (l *Ledger) halts(budgets budgetSet, scope string) []Halt {
	var all []Halt
	names := slices.AppendSeq(slices.Collect(maps.Keys(budgets)), maps.Keys(l.halted))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		var want map[string]string
		if b := budgets[name]; b != nil {
			want = b.halts(l.synthesizers[name], scope)
		}
		if h, ok := nextHalt(l.synthesizers[name], want, scope); ok {
			all = append(all, h)
		}
	}

	return all
}

// nextHalt returns a condition that has to be written, or else one that has to be removed.
func nextHalt(s *enov1.Synthesizer, want map[string]string, scope string) (Halt, bool) {
	for _, about := range slices.Sorted(maps.Keys(want)) {
		is := meta.FindStatusCondition(s.Status.Conditions, haltType(about))
		if is == nil || is.Message != want[about] || is.ObservedGeneration != s.Generation {
			return Halt{Synthesizer: s, Scope: about, Message: want[about]}, true
		}
	}
	for _, about := range haltedScopes(s, scope) {
		if _, ok := want[about]; !ok {
			return Halt{Synthesizer: s, Scope: about}, true
		}
	}

	return Halt{}, false
}

// haltedScopes returns what the conditions RolloutHalted that a manager writes are about. One
// that is about all namespaces also removes those of managers that no longer run.
func haltedScopes(s *enov1.Synthesizer, scope string) []string {
	var all []string
	for _, c := range s.Status.Conditions {
		if about := strings.TrimPrefix(strings.TrimPrefix(c.Type, enov1.ConditionRolloutHalted), "."); isHaltType(c.Type) && (scope == "" || about == scope) {
			all = append(all, about)
		}
	}

	return all
}
