package synthesis_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/synthesis"
)

// failedAttempt has the first synthesis of the rollout given up.
func failedAttempt(c *enov1.Composition) {
	canceled(c)
	c.Status.InFlightSynthesis.Deferred = true
	c.Status.InFlightSynthesis.Results = []enov1.Result{{Severity: enov1.SeverityError, Message: "no"}}
}

// firstAttempt has the first synthesis of the rollout in flight.
func firstAttempt(c *enov1.Composition) {
	inFlight(c)
	c.Status.InFlightSynthesis.Deferred = true
}

// secondAttempt has a synthesis of the rollout in flight that has failed before.
func secondAttempt(c *enov1.Composition) {
	firstAttempt(c)
	c.Status.InFlightSynthesis.Attempts = 2
}

// updated has the current synthesis be one of the rollout.
func updated(c *enov1.Composition) { c.Status.CurrentSynthesis.Deferred = true }

// undelivered has a synthesis of the rollout that cannot be delivered.
func undelivered(c *enov1.Composition) {
	updated(c)
	c.Status.Simplified = &enov1.SimplifiedStatus{Status: enov1.StatusReconciling, Error: "ConfigMap n/a: rejected"}
}

// failingSince has a composition be reconciled until so long after its synthesis.
func failingSince(d time.Duration) func(*enov1.Composition) {
	return func(c *enov1.Composition) {
		c.Status.CurrentSynthesis.Synthesized = after(0)
		c.Status.Conditions = []metav1.Condition{{Type: enov1.ConditionReconciled, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(epoch.Add(d))}}
	}
}

func namespace(name string) func(*enov1.Composition) {
	return func(c *enov1.Composition) { c.Namespace = name }
}

// behind is of the generation before.
func behind(c *enov1.Composition) { c.Status.CurrentSynthesis.ObservedSynthesizerGeneration = 2 }

// brokenBefore has failed before the rollout reached it.
func brokenBefore(c *enov1.Composition) {
	failedAttempt(c)
	c.Status.InFlightSynthesis.FailedBefore = true
}

// rolledBackFrom has a user roll back the synthesis of the rollout.
func rolledBackFrom(c *enov1.Composition) {
	updated(c)
	c.Status.PreviousSynthesis = c.Status.CurrentSynthesis
	c.Status.CurrentSynthesis = &enov1.Synthesis{UUID: "back", ObservedCompositionGeneration: 2, ObservedSynthesizerGeneration: 3, RolledBackTo: "old"}
	c.Annotations[enov1.AnnotationRollback] = "old"
}

func halts(all []synthesis.Halt) []string {
	var texts []string
	for _, h := range all {
		texts = append(texts, strings.TrimSuffix(h.Synthesizer.Name+"/"+h.Scope, "/")+": "+h.Message)
	}

	return texts
}

func TestStageOf(t *testing.T) {
	suspended := func(c *enov1.Composition) {
		undelivered(c)
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: enov1.ConditionSuspended, Status: metav1.ConditionTrue})
	}
	cases := map[string]struct {
		reason  string
		changes []func(*enov1.Composition)
		want    synthesis.Stage
	}{
		"Updated":       {reason: "It has the generation.", want: synthesis.StageUpdated},
		"Rolled":        {reason: "It has got it in its turn.", changes: []func(*enov1.Composition){updated}, want: synthesis.StageUpdated},
		"Waiting":       {reason: "Its turn comes.", changes: []func(*enov1.Composition){behind}, want: synthesis.StageWaiting},
		"Running":       {reason: "It is its turn.", changes: []func(*enov1.Composition){behind, firstAttempt}, want: synthesis.StageRunning},
		"Failed":        {reason: "The program failed.", changes: []func(*enov1.Composition){behind, failedAttempt}, want: synthesis.StageFailed},
		"Retried":       {reason: "Another attempt is not yet a success.", changes: []func(*enov1.Composition){behind, secondAttempt}, want: synthesis.StageFailed},
		"Undelivered":   {reason: "The cluster rejects what the program made.", changes: []func(*enov1.Composition){undelivered}, want: synthesis.StageFailed},
		"Worked":        {reason: "It was delivered for an hour, and fails for another reason.", changes: []func(*enov1.Composition){undelivered, failingSince(time.Hour)}, want: synthesis.StageUpdated},
		"HardlyWorked":  {reason: "It was delivered for a minute.", changes: []func(*enov1.Composition){undelivered, failingSince(time.Minute)}, want: synthesis.StageFailed},
		"WorkedBack":    {reason: "A user did not want what the rollout made, however long it worked.", changes: []func(*enov1.Composition){rolledBackFrom, failingSince(time.Hour)}, want: synthesis.StageFailed},
		"Suspended":     {reason: "A user does not want it to be delivered.", changes: []func(*enov1.Composition){suspended}, want: synthesis.StageUpdated},
		"BrokenBefore":  {reason: "The rollout did not break it.", changes: []func(*enov1.Composition){behind, brokenBefore}, want: synthesis.StageOther},
		"RolledBack":    {reason: "A user did not want what the rollout made.", changes: []func(*enov1.Composition){rolledBackFrom}, want: synthesis.StageFailed},
		"Edited":        {reason: "A failure after an edit is not that of the rollout.", changes: []func(*enov1.Composition){behind, canceled}, want: synthesis.StageOther},
		"OldGeneration": {reason: "A failure with an earlier generation says nothing of this one.", changes: []func(*enov1.Composition){behind, failedAttempt, func(c *enov1.Composition) { c.Status.InFlightSynthesis.ObservedSynthesizerGeneration = 2 }}, want: synthesis.StageWaiting},
		"Deleted":       {reason: "It is being deleted.", changes: []func(*enov1.Composition){behind, failedAttempt, func(c *enov1.Composition) { c.DeletionTimestamp = after(1) }}, want: synthesis.StageOther},
		"Ignoring":      {reason: "It does not follow changes of the Synthesizer.", changes: []func(*enov1.Composition){behind, annotate(enov1.AnnotationIgnoreSideEffects, "true")}, want: synthesis.StageOther},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := synthesis.StageOf(composition(tc.changes...), synthesizer()); got != tc.want {
				t.Errorf("%s\nStageOf(...): %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

func TestHalt(t *testing.T) {
	const (
		until   = " gets this generation until they recover, the Synthesizer is changed, or you run: arbor delivery rollout resume s"
		message = "2 compositions failed with generation 3: 2 in n. No further composition of namespace n" + until
	)
	resume := func(generation string) func(*enov1.Synthesizer) {
		return func(s *enov1.Synthesizer) {
			s.Annotations = map[string]string{enov1.AnnotationResumeRollout: generation}
		}
	}
	saidOf := func(kind, text string, generation int64) func(*enov1.Synthesizer) {
		return func(s *enov1.Synthesizer) {
			s.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue, Message: text, ObservedGeneration: generation}}
		}
	}
	said := func(text string, generation int64) func(*enov1.Synthesizer) {
		return saidOf(enov1.ConditionRolloutHalted+".n", text, generation)
	}
	two := []*enov1.Composition{named("a", behind, failedAttempt), named("b", undelivered)}
	other := namespace("m")
	deferredInput := func(c *enov1.Composition) {
		c.Status.InputRevisions = slices.Clone(c.Status.InputRevisions)
		c.Status.InputRevisions[1].ResourceVersion = "21"
	}

	cases := map[string]struct {
		reason string
		synth  func(*enov1.Synthesizer)
		max    int
		all    []*enov1.Composition
		begin  []string
		held   []string
		halts  []string
	}{
		"Halts": {
			reason: "Two have failed, which is too many.", max: 2, all: append([]*enov1.Composition{named("c", behind)}, two...),
			begin: []string{"a Retry"}, held: []string{"c SynthesizerModified"}, halts: []string{"s/n: " + message},
		},
		"Few": {
			reason: "Two are not too many.", max: 3, all: append([]*enov1.Composition{named("c", behind)}, two...),
			begin: []string{"c SynthesizerModified", "a Retry"},
		},
		"Budget": {
			reason: "One that is in flight may fail too.", max: 3, all: append([]*enov1.Composition{named("c", behind), named("d", behind, firstAttempt)}, two...),
			begin: []string{"a Retry"}, held: []string{"c SynthesizerModified"},
		},
		"BudgetOfPlan": {
			reason: "So may what is begun now.", max: 3, all: append([]*enov1.Composition{named("c", behind), named("d", behind)}, two...),
			begin: []string{"d SynthesizerModified", "a Retry"}, held: []string{"c SynthesizerModified"},
		},
		"NoLimitWithoutFailures": {
			reason: "As long as none fails, any number is in flight.", max: 1, all: []*enov1.Composition{named("c", behind), named("d", behind, firstAttempt)},
			begin: []string{"c SynthesizerModified"},
		},
		"Off": {
			reason: "0 is no limit.", all: append([]*enov1.Composition{named("c", behind)}, two...),
			begin: []string{"c SynthesizerModified", "a Retry"},
		},
		"Edited": {
			reason: "What a user asks for is never held.", max: 2,
			all:   append([]*enov1.Composition{named("c", behind, generation), named("d", behind, annotate(enov1.AnnotationForceResynthesis, "now")), named("e", fresh), named("f", behind, input)}, two...),
			begin: []string{"e Initial", "d Forced", "c CompositionModified", "f InputModified", "a Retry"}, halts: []string{"s/n: " + message},
		},
		"Repaired": {
			reason: "A repaired input reaches those that have failed.", max: 2,
			all:   []*enov1.Composition{named("a", behind, failedAttempt, deferredInput), named("b", undelivered), named("c", deferredInput)},
			begin: []string{"a DeferredInputModified"}, held: []string{"c DeferredInputModified"}, halts: []string{"s/n: " + message},
		},
		"Resumed": {
			reason: "A user wants it to go on.", max: 2, synth: resume("3"), all: append([]*enov1.Composition{named("c", behind)}, two...),
			begin: []string{"c SynthesizerModified", "a Retry"},
		},
		"ResumedBefore": {
			reason: "That was about another generation.", max: 2, synth: resume("2"), all: append([]*enov1.Composition{named("c", behind)}, two...),
			begin: []string{"a Retry"}, held: []string{"c SynthesizerModified"}, halts: []string{"s/n: " + message},
		},
		"Reported": {
			reason: "What is written is not written again.", max: 2, synth: said(message, 3), all: append([]*enov1.Composition{named("c", behind)}, two...),
			begin: []string{"a Retry"}, held: []string{"c SynthesizerModified"},
		},
		"Recovered": {
			reason: "The condition is removed when one has recovered.", max: 2, synth: said(message, 3), all: []*enov1.Composition{named("a", updated), named("b", undelivered), named("c", behind)},
			begin: []string{"c SynthesizerModified"}, halts: []string{"s/n: "},
		},
		"TriedAgain": {
			reason: "It stays while a repaired one is tried.", max: 2, synth: said("x", 3), all: []*enov1.Composition{named("a", behind, firstAttempt), named("b", undelivered), named("c", behind)},
			held: []string{"c SynthesizerModified"}, halts: []string{"s/n: 1 composition failed with generation 3: 1 in n. No further composition of namespace n" + until},
		},
		"OtherNamespace": {
			reason: "One tenant does not halt the rollout of others.", max: 2, all: append([]*enov1.Composition{named("c", behind), named("d", behind, other)}, two...),
			begin: []string{"d SynthesizerModified", "a Retry"}, held: []string{"c SynthesizerModified"}, halts: []string{"s/n: " + message},
		},
		"OneAtATime": {
			reason: "The next failure, wherever it is, halts the rollout.", max: 2, synth: said(message, 3),
			all:   append([]*enov1.Composition{named("d", behind, other), named("e", behind, other, firstAttempt)}, two...),
			begin: []string{"a Retry"}, held: []string{"d SynthesizerModified"},
		},
		"TwoNamespaces": {
			reason: "Failures in two namespaces are no tenant's own.", max: 3, all: append([]*enov1.Composition{named("c", behind), named("d", behind, other), named("e", undelivered, other)}, two...),
			begin: []string{"a Retry"}, held: []string{"d SynthesizerModified", "c SynthesizerModified"},
			halts: []string{"s: 3 compositions failed with generation 3: 1 in m, 2 in n. No further composition" + until},
		},
		"NamespaceOfAll": {
			reason: "The condition about one namespace is removed after the one about all is written.", max: 2,
			synth: func(s *enov1.Synthesizer) {
				said(message, 3)(s)
				namespaced := s.Status.Conditions
				saidOf(enov1.ConditionRolloutHalted, "3 compositions failed with generation 3: 1 in m, 2 in n. No further composition"+until, 3)(s)
				s.Status.Conditions = append(s.Status.Conditions, namespaced...)
			},
			all:   append([]*enov1.Composition{named("e", undelivered, other)}, two...),
			begin: []string{"a Retry"}, halts: []string{"s/n: "},
		},
		"DeadScope": {
			reason: "The condition of a manager that no longer runs is removed.", max: 2, synth: saidOf(enov1.ConditionRolloutHalted+".gone", "x", 3),
			all: []*enov1.Composition{named("a", updated)}, halts: []string{"s/gone: "},
		},
		"ManyNamespaces": {
			reason: "The message is bounded.", max: 1,
			all:   []*enov1.Composition{named("a", undelivered), named("b", undelivered, other), named("c", undelivered, namespace("k")), named("d", undelivered, namespace("z")), named("e", undelivered, namespace("y"))},
			halts: []string{"s: 5 compositions failed with generation 3: 1 in k, 1 in m, 1 in n and more in 2 other namespaces. No further composition" + until},
		},
		"Another": {
			reason: "The next generation is guarded again, with nothing against it.", max: 2, synth: func(s *enov1.Synthesizer) { said(message, 3)(s); s.Generation++ },
			all:   []*enov1.Composition{named("c", behind)},
			begin: []string{"c SynthesizerModified"}, halts: []string{"s/n: "},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := synthesizer()
			if tc.synth != nil {
				tc.synth(s)
			}
			plan := synthesis.Schedule(tc.all, map[string]*enov1.Synthesizer{"s": s}, synthesis.Limits{Concurrency: 10, MaxFailures: tc.max}, epoch.Add(time.Hour))
			if diff := cmp.Diff([][]string{tc.begin, tc.held, tc.halts}, [][]string{starts(plan.Begin), starts(plan.Held), halts(plan.Halts)}); diff != "" {
				t.Errorf("%s\nbegin, held, halts: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// slowHeld is which compositions wait, computed from all of them. all reports whether the rollout
// is halted in all namespaces.
func slowHeld(list []*enov1.Composition, s *enov1.Synthesizer, most int) (held []string, all bool) {
	if s.Annotations[enov1.AnnotationResumeRollout] == strconv.FormatInt(s.Generation, 10) {
		return nil, false
	}
	failed := map[string]int{}
	for _, c := range list {
		in, last := c.Status.InFlightSynthesis, c.Status.CurrentSynthesis
		if in != nil {
			last = in
		}
		if last == nil || !last.Deferred || last.FailedBefore || last.ObservedSynthesizerGeneration != s.Generation {
			continue
		}
		if in != nil && (in.Canceled != nil || in.Attempts > 1) || in == nil && c.Status.Simplified != nil && c.Status.Simplified.Error != "" {
			failed[c.Namespace]++
		}
	}
	total := 0
	for _, n := range failed {
		total += n
	}
	all = total >= most && (len(failed) > 1 || most == 1)
	for _, c := range list {
		wish, ok := synthesis.Want(c, s)
		if ok && wish.Cause == synthesis.SynthesizerModified && (all || failed[c.Namespace] >= most) {
			held = append(held, c.Name)
		}
	}

	return held, all
}

// TestRolloutStopsInTime rolls a bad generation out to many compositions, of which some are
// broken by it, with a manager that is restarted all the time. No more are broken than may
// be, unless a user asks for it.
func TestRolloutStopsInTime(t *testing.T) {
	const many = 20
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		s := synthesizer()
		s.Generation++
		if seed%5 == 0 {
			s.Annotations = map[string]string{enov1.AnnotationResumeRollout: strconv.FormatInt(s.Generation, 10)}
		}
		most, tenants := 1+r.IntN(4), 1+r.IntN(3)
		limits := synthesis.Limits{Concurrency: 1 + r.IntN(10), Cooldown: time.Duration(r.IntN(2)) * time.Minute, MaxFailures: most}
		all := make([]*enov1.Composition, many)
		for i := range all {
			all[i] = named(fmt.Sprint("c", i), namespace(fmt.Sprint("n", r.IntN(tenants))))
		}
		bad, broken := r.IntN(3), map[string]bool{}
		for step := range 200 {
			now := epoch.Add(time.Duration(step) * time.Minute)
			plan := synthesis.Schedule(all, map[string]*enov1.Synthesizer{"s": s}, limits, now)
			got := []string{}
			for _, start := range plan.Held {
				got = append(got, start.Composition.Name)
			}
			held, halted := slowHeld(all, s, most)
			// The rest is held while as many are in flight as may still fail.
			if missing := slices.DeleteFunc(slices.Clone(held), func(name string) bool { return slices.Contains(got, name) }); len(missing) > 0 || halted && len(got) != len(held) {
				t.Fatalf("seed %d, step %d: held are %q, and should be %q", seed, step, got, held)
			}
			for _, h := range plan.Halts {
				s, _ = h.Apply(*after(step))
			}
			for _, start := range plan.Begin {
				start.Composition.Status = synthesis.Begin(start, fmt.Sprint("u", step, start.Composition.Name), now)
			}
			for i, c := range all {
				if !synthesis.Running(&c.Status) || r.IntN(2) == 0 {
					continue
				}
				in := c.Status.InFlightSynthesis
				if i%3 < bad {
					c.Status, _ = synthesis.Fail(&c.Status, in.UUID, []enov1.Result{{Severity: enov1.SeverityError, Message: "no"}}, now)
					broken[c.Name] = true
				} else {
					c.Status, _ = synthesis.Promote(&c.Status, synthesis.Done{UUID: in.UUID, BasedOn: c.Status.CurrentSynthesis.UUID, Inputs: c.Status.InputRevisions}, now)
				}
			}
		}
		resumed := synthesis.IsResumed(s)
		// Before the first failure any number may be in flight. After the last that one
		// namespace may have, one more may fail in another.
		limit := max(most, limits.Concurrency)
		if tenants > 1 && most > 1 {
			limit++
		}
		if !resumed && len(broken) > limit {
			t.Errorf("seed %d: %d compositions are broken, and %d may be, %d of them before it halts", seed, len(broken), limit, most)
		}
		if halted := len(synthesis.AllHalts(s)) > 0; halted != (!resumed && bad > 0) {
			t.Errorf("seed %d: halted is %t, with %d of 3 broken by the generation", seed, halted, bad)
		}
	}
}

// TestTenantHaltsItself has a tenant all of whose compositions are broken by a generation, and
// other tenants whose compositions are not. The generation reaches all of theirs, and no more of
// its own than may fail.
func TestTenantHaltsItself(t *testing.T) {
	const most = 3
	s := synthesizer()
	s.Generation++
	var all []*enov1.Composition
	for i := range 30 {
		all = append(all, named(fmt.Sprint("c", i), namespace([]string{"bad", "x", "y"}[i%3])))
	}
	limits := synthesis.Limits{Concurrency: 10, Cooldown: time.Minute, MaxFailures: most}
	tried := map[string]int{}
	for step := range 200 {
		now := epoch.Add(time.Duration(step) * time.Minute)
		plan := synthesis.Schedule(all, map[string]*enov1.Synthesizer{"s": s}, limits, now)
		for _, h := range plan.Halts {
			s, _ = h.Apply(*after(step))
		}
		for _, start := range plan.Begin {
			c := start.Composition
			if start.Wish.Cause == synthesis.SynthesizerModified {
				tried[c.Namespace]++
			}
			uuid := fmt.Sprint("u", step, c.Name)
			c.Status = synthesis.Begin(start, uuid, now)
			if c.Namespace == "bad" {
				c.Status, _ = synthesis.Fail(&c.Status, uuid, nil, now)
			} else {
				c.Status, _ = synthesis.Promote(&c.Status, synthesis.Done{UUID: uuid, BasedOn: c.Status.CurrentSynthesis.UUID, Inputs: c.Status.InputRevisions}, now)
			}
		}
	}
	if diff := cmp.Diff(map[string]int{"bad": most, "x": 10, "y": 10}, tried); diff != "" {
		t.Errorf("compositions that the generation has reached: -want, +got:\n%s", diff)
	}
	if synthesis.Halted(s, "") != nil || synthesis.Halted(s, "bad") == nil || len(synthesis.AllHalts(s)) != 1 {
		t.Errorf("the conditions are %+v", s.Status.Conditions)
	}
}

func TestFailedBefore(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*enov1.Composition)
		want   bool
	}{
		"Well":    {reason: "It worked.", change: behind},
		"Failing": {reason: "It failed after an edit.", change: canceled, want: true},
		"Stuck":   {reason: "What it made before could not be delivered.", change: func(c *enov1.Composition) { undelivered(c); c.Status.CurrentSynthesis.Deferred = false }, want: true},
		"Rollout": {reason: "The rollout before broke it, and a better one is expected to repair it.", change: failedAttempt},
		"Later":   {reason: "The rollout before did not break it: it worked for an hour.", change: func(c *enov1.Composition) { undelivered(c); failingSince(time.Hour)(c) }, want: true},
		"Still":   {reason: "It was broken before the rollout before.", change: brokenBefore, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := synthesizer()
			s.Generation++
			c := composition(tc.change)
			begun := synthesis.Begin(synthesis.Start{Composition: c, Synthesizer: s, Wish: synthesis.Wish{Cause: synthesis.SynthesizerModified}}, "x", epoch)
			if got := begun.InFlightSynthesis.FailedBefore; got != tc.want {
				t.Errorf("%s\nFailedBefore: %t", tc.reason, got)
			}
			begun.InFlightSynthesis.Canceled = after(1)
			c.Status = begun
			again := synthesis.Begin(synthesis.Start{Composition: c, Synthesizer: s, Wish: synthesis.Wish{Cause: synthesis.Retry}}, "y", epoch)
			if got := again.InFlightSynthesis.FailedBefore; got != tc.want {
				t.Errorf("%s\nFailedBefore of the next attempt: %t", tc.reason, got)
			}
		})
	}
}

// TestHaltScopes has managers for one namespace each, which share a Synthesizer and do not
// touch each other's conditions.
func TestHaltScopes(t *testing.T) {
	all := []*enov1.Composition{named("a", behind, failedAttempt), named("b", undelivered), named("c", behind)}
	limits := func(scope string) synthesis.Limits {
		return synthesis.Limits{Concurrency: 10, MaxFailures: 2, Scope: scope}
	}
	plan := func(s *enov1.Synthesizer, scope string, all ...*enov1.Composition) synthesis.Plan {
		return synthesis.Schedule(all, map[string]*enov1.Synthesizer{"s": s}, limits(scope), epoch.Add(time.Hour))
	}
	first := plan(synthesizer(), "n", all...)
	if len(first.Halts) != 1 || len(first.Held) != 1 {
		t.Fatalf("it is not halted: %+v", first)
	}
	s, _ := first.Halts[0].Apply(*after(0))
	if synthesis.Halted(s, "n") == nil || synthesis.Halted(s, "") != nil || synthesis.Halted(s, "other") != nil || len(synthesis.AllHalts(s)) != 1 {
		t.Errorf("the conditions are %+v", s.Status.Conditions)
	}
	other := named("d", behind)
	other.Namespace = "other"
	if p := plan(s, "other", other); len(p.Halts) != 0 || len(p.Begin) != 1 {
		t.Errorf("the manager of another namespace plans %+v", p)
	}
	if p := plan(s, "n", all...); len(p.Halts) != 0 || len(p.Held) != 1 {
		t.Errorf("the same manager plans %+v", p)
	}
}

// TestResumedScopes resumes a rollout that a manager has halted which no longer runs, so its
// condition stays.
func TestResumedScopes(t *testing.T) {
	s, _ := synthesis.Halt{Synthesizer: synthesizer(), Scope: "gone", Message: "too many"}.Apply(*after(0))
	if all := synthesis.AllHalts(s); len(all) != 1 {
		t.Fatalf("the halts are %+v", all)
	}
	s.Annotations = map[string]string{enov1.AnnotationResumeRollout: strconv.FormatInt(s.Generation, 10)}
	if all := synthesis.AllHalts(s); len(all) != 0 {
		t.Errorf("the halts of a resumed rollout are %+v", all)
	}
	s.Generation++
	if all := synthesis.AllHalts(s); len(all) != 0 {
		t.Errorf("the halts of the next generation are %+v", all)
	}
}

func TestCountHalted(t *testing.T) {
	well, stopped := synthesizer(), synthesizer()
	stopped.Name = "stopped"
	stopped, _ = synthesis.Halt{Synthesizer: stopped, Message: "too many"}.Apply(*after(0))
	past := stopped.DeepCopy()
	past.Name = "past"
	past.Generation++
	want := map[synthesis.Program]int{{Name: "s"}: 0, {Name: "stopped"}: 1, {Name: "past"}: 0}
	if diff := cmp.Diff(want, synthesis.Count(nil, []enov1.Synthesizer{*well, *stopped, *past}, 0, epoch).Halted); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
