package synthesis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// DefaultMaxFailures is how many compositions may fail before a rollout halts by default.
// One that fails may have a reason of its own; three that worked before hardly have.
const DefaultMaxFailures = 3

// namedFailures is how many failed compositions the condition RolloutHalted names.
const namedFailures = 3

// A Stage is where a composition is in the rollout of its Synthesizer.
type Stage int

// Stages of a rollout.
const (
	// StageOther is a composition that the rollout does not concern: it is being deleted,
	// ignores side effects, is rolled back, or lacks something.
	StageOther Stage = iota
	// StageWaiting is a composition whose turn has not come.
	StageWaiting
	// StageRunning is a composition whose synthesis is in flight for the first time.
	StageRunning
	// StageUpdated is a composition whose current synthesis is of the generation.
	StageUpdated
	// StageFailed is a composition that the rollout has broken.
	StageFailed
)

// StageOf returns where a composition is in the rollout of its Synthesizer, nil if that
// does not exist. A rollout consists of the deferred syntheses of one generation.
func StageOf(c *enov1.Composition, s *enov1.Synthesizer) Stage {
	if s == nil || c.DeletionTimestamp != nil {
		return StageOther
	}
	if stage := guardedStage(c, s); stage != StageOther {
		return stage
	}
	if wish, ok := Want(c, s); ok && wish.Cause.deferred() {
		return StageWaiting
	}

	return plainStage(c, s)
}

// plainStage is that of a composition that is neither failing nor waiting.
func plainStage(c *enov1.Composition, s *enov1.Synthesizer) Stage {
	latest := Latest(&c.Status)
	switch {
	case latest == nil || latest.ObservedSynthesizerGeneration != s.Generation || latest.Canceled != nil || latest.RolledBackTo != "":
		return StageOther
	case Running(&c.Status):
		return StageRunning
	default:
		return StageUpdated
	}
}

// guardedStage is StageFailed or StageRunning for a composition that counts for the halt of
// a rollout, and StageOther for all others.
func guardedStage(c *enov1.Composition, s *enov1.Synthesizer) Stage {
	if s == nil || c.DeletionTimestamp != nil {
		return StageOther
	}
	latest, rolledBack := rolledOut(&c.Status)
	switch {
	case latest == nil || !latest.Deferred || latest.FailedBefore || latest.ObservedSynthesizerGeneration != s.Generation:
		return StageOther
	case rolledBack || isFailing(c):
		return StageFailed
	case Running(&c.Status):
		return StageRunning
	default:
		return StageOther
	}
}

// rolledOut returns the latest synthesis that is not a rollback, and whether a rollback has
// replaced it.
func rolledOut(st *enov1.CompositionStatus) (_ *enov1.Synthesis, rolledBack bool) {
	latest := Latest(st)
	if latest == nil || latest.RolledBackTo == "" {
		return latest, false
	}
	for _, s := range promoted(st) {
		if s.RolledBackTo == "" {
			return s, true
		}
	}

	return nil, false
}

// isFailing reports whether the latest synthesis of a composition has failed, is tried again
// after that, or cannot be delivered.
func isFailing(c *enov1.Composition) bool {
	if in := c.Status.InFlightSynthesis; in != nil {
		if in.Canceled == nil {
			return in.Attempts > 1
		}

		return EndOf(c, in.UUID) == GivenUp
	}
	current, simple := c.Status.CurrentSynthesis, c.Status.Simplified
	if current == nil || current.Reconciled != nil || simple == nil || meta.IsStatusConditionTrue(c.Status.Conditions, enov1.ConditionSuspended) {
		return false
	}

	return simple.Status == enov1.StatusReconciling && simple.Error != ""
}

// failedBefore reports whether a composition is failing, and not because of a rollout.
func failedBefore(c *enov1.Composition) bool {
	if !isFailing(c) {
		return false
	}
	latest := Latest(&c.Status)

	return !latest.Deferred || latest.FailedBefore
}

// IsResumed reports whether a user wants the rollout of a Synthesizer to go on however many
// compositions fail. That is about the present generation only.
func IsResumed(s *enov1.Synthesizer) bool {
	return s.Annotations[enov1.AnnotationResumeRollout] == strconv.FormatInt(s.Generation, 10)
}

// haltType is the type of the condition RolloutHalted. Managers that are about one namespace
// each share Synthesizers, so each has a condition of its own.
func haltType(scope string) string {
	if scope == "" {
		return enov1.ConditionRolloutHalted
	}

	return enov1.ConditionRolloutHalted + "." + scope
}

// Halted returns why the rollout of the present generation of a Synthesizer is halted by a
// manager that is about one namespace, or about all if scope is "". It is nil if the rollout
// is not halted.
func Halted(s *enov1.Synthesizer, scope string) *metav1.Condition {
	c := meta.FindStatusCondition(s.Status.Conditions, haltType(scope))
	if c == nil || !isHalt(s, c) {
		return nil
	}

	return c
}

// AllHalts returns the conditions with which any manager has halted the rollout of the
// present generation of a Synthesizer. There are none if a user has resumed it: a manager
// that no longer runs does not remove its condition.
func AllHalts(s *enov1.Synthesizer) []metav1.Condition {
	if IsResumed(s) {
		return nil
	}
	var all []metav1.Condition
	for i := range s.Status.Conditions {
		if c := &s.Status.Conditions[i]; isHalt(s, c) {
			all = append(all, *c)
		}
	}

	return all
}

// isHalt reports whether a condition halts the rollout of the present generation.
func isHalt(s *enov1.Synthesizer, c *metav1.Condition) bool {
	return isHaltType(c.Type) && c.Status == metav1.ConditionTrue && c.ObservedGeneration == s.Generation
}

func isHaltType(name string) bool {
	return name == enov1.ConditionRolloutHalted || strings.HasPrefix(name, enov1.ConditionRolloutHalted+".")
}

// ResumeCommand is the command that has a halted rollout go on.
func ResumeCommand(synthesizer string) string {
	return "arbor delivery rollout resume " + synthesizer
}

// A Halt is a Synthesizer whose condition RolloutHalted has to be written.
type Halt struct {
	Synthesizer *enov1.Synthesizer
	// Scope is the namespace that the manager is about, "" for all.
	Scope string
	// Message of the condition, "" if the condition has to be removed.
	Message string
}

// Apply returns the Synthesizer with its condition, and whether its rollout was halted
// before.
func (h Halt) Apply(now metav1.Time) (_ *enov1.Synthesizer, was bool) {
	s := h.Synthesizer.DeepCopy()
	was = Halted(s, h.Scope) != nil
	if h.Message == "" {
		meta.RemoveStatusCondition(&s.Status.Conditions, haltType(h.Scope))

		return s, was
	}
	meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
		Type: haltType(h.Scope), Status: metav1.ConditionTrue, Reason: enov1.ReasonTooManyFailures, Message: h.Message,
		ObservedGeneration: s.Generation, LastTransitionTime: now,
	})

	return s, was
}

// A guard is what the halt of one rollout is decided by. It is kept up to date with every
// change of a composition.
type guard struct {
	failed  map[ledgerKey]bool
	running int
}

// add counts a composition.
func (g *guard) add(key ledgerKey, stage Stage) {
	switch stage {
	case StageFailed:
		g.failed[key] = true
	case StageRunning:
		g.running++
	default:
	}
}

// remove undoes add.
func (g *guard) remove(key ledgerKey, stage Stage) {
	switch stage {
	case StageFailed:
		delete(g.failed, key)
	case StageRunning:
		g.running--
	default:
	}
}

// isFull reports whether no further composition may be begun: as many have failed as may
// fail, or could if those in flight fail too. Without a failure there is no limit.
func (g *guard) isFull(most int) bool {
	return len(g.failed) > 0 && len(g.failed)+g.running >= most
}

// message describes a halted rollout.
func (g *guard) message(s *enov1.Synthesizer) string {
	all := slices.SortedFunc(maps.Keys(g.failed), func(a, b ledgerKey) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	names := make([]string, 0, namedFailures)
	for _, k := range all[:min(len(all), namedFailures)] {
		names = append(names, types.NamespacedName{Namespace: k.namespace, Name: k.name}.String())
	}
	more := ""
	if n := len(all) - namedFailures; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}

	return fmt.Sprintf("%s failed with generation %d: %s%s. No further composition gets this generation until they recover, the Synthesizer is changed, or you run: %s",
		counted(len(all), "composition"), s.Generation, strings.Join(names, ", "), more, ResumeCommand(s.Name))
}

// A guardSet has the guards of rollouts with failures, by Synthesizer.
type guardSet map[string]*guard

// holds reports whether a synthesis must wait because its rollout is full.
func (all guardSet) holds(s Start, most int) bool {
	g := all[s.Composition.Spec.Synthesizer.Name]

	return g != nil && s.isGuarded() && g.isFull(most)
}

// begin counts a synthesis that is begun.
func (all guardSet) begin(s Start) {
	if g := all[s.Composition.Spec.Synthesizer.Name]; g != nil && s.isGuarded() {
		g.running++
	}
}

// fullGuards returns the rollouts that may be full, by Synthesizer. What the plan begins is
// added to them, so they are copies.
func (l *Ledger) fullGuards(limits Limits) guardSet {
	all := guardSet{}
	for name, g := range l.guards {
		if s := l.synthesizers[name]; limits.MaxFailures > 0 && len(g.failed) > 0 && !IsResumed(s) {
			all[name] = &guard{failed: g.failed, running: g.running}
		}
	}

	return all
}

// halts returns the Synthesizers whose condition RolloutHalted is not what it should be.
// A rollout halts when enough compositions have failed. Once halted, it also stays so while
// those that have failed are tried again.
func (l *Ledger) halts(limits Limits) []Halt {
	var all []Halt
	full := l.fullGuards(limits)
	names := slices.AppendSeq(slices.Collect(maps.Keys(full)), maps.Keys(l.halted))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		s, g := l.synthesizers[name], full[name]
		h := Halt{Synthesizer: s, Scope: limits.Scope}
		if g != nil && (len(g.failed) >= limits.MaxFailures || Halted(s, limits.Scope) != nil && g.isFull(limits.MaxFailures)) {
			h.Message = g.message(s)
		}
		if is := meta.FindStatusCondition(s.Status.Conditions, haltType(limits.Scope)); is == nil && h.Message != "" ||
			is != nil && (is.Message != h.Message || is.ObservedGeneration != s.Generation) {
			all = append(all, h)
		}
	}

	return all
}
