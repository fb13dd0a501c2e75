package synthesis_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/synthesis"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// after is a time as it is stored.
func after(seconds int) *metav1.Time {
	return new(metav1.NewTime(epoch.Add(time.Duration(seconds) * time.Second)))
}

// composition returns one that was synthesized once and wants nothing.
func composition(changes ...func(*enov1.Composition)) *enov1.Composition {
	c := &enov1.Composition{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "c", Generation: 2, Finalizers: []string{enov1.Finalizer}, Annotations: map[string]string{}},
		Spec:       enov1.CompositionSpec{Synthesizer: enov1.SynthesizerRef{Name: "s"}},
		Status: enov1.CompositionStatus{
			InputRevisions: []enov1.InputRevisions{{Key: "in", ResourceVersion: "10"}, {Key: "slow", ResourceVersion: "20"}},
			CurrentSynthesis: &enov1.Synthesis{
				UUID: "now", ObservedCompositionGeneration: 2, ObservedSynthesizerGeneration: 3, Initialized: after(0), Synthesized: after(1), Attempts: 1,
				InputRevisions: []enov1.InputRevisions{{Key: "in", ResourceVersion: "10"}, {Key: "slow", ResourceVersion: "20"}},
				ResourceSlices: []*enov1.ResourceSliceRef{{Name: "now-1"}},
			},
		},
	}
	for _, change := range changes {
		change(c)
	}

	return c
}

func synthesizer() *enov1.Synthesizer {
	return &enov1.Synthesizer{
		ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "s", Generation: 3},
		Spec: enov1.SynthesizerSpec{Refs: []enov1.Ref{
			{Key: "in", Resource: enov1.ResourceRef{Kind: "ConfigMap", Version: "v1"}},
			{Key: "slow", Defer: true, Resource: enov1.ResourceRef{Kind: "ConfigMap", Version: "v1"}},
			{Key: "maybe", Optional: true, Resource: enov1.ResourceRef{Kind: "ConfigMap", Version: "v1"}},
		}},
	}
}

// inFlight has a synthesis run since a second, of the composition as it is.
func inFlight(c *enov1.Composition) {
	c.Status.InFlightSynthesis = &enov1.Synthesis{
		UUID: "next", ObservedCompositionGeneration: c.Generation, ObservedSynthesizerGeneration: 3, Initialized: after(100), Attempts: 1,
		InputRevisions: c.Status.InputRevisions,
	}
}

// canceled has it given up after ten seconds.
func canceled(c *enov1.Composition) {
	inFlight(c)
	c.Status.InFlightSynthesis.Canceled = after(110)
}

func generation(c *enov1.Composition) { c.Generation++ }

func input(c *enov1.Composition) { c.Status.InputRevisions[0].ResourceVersion = "11" }

func annotate(key, value string) func(*enov1.Composition) {
	return func(c *enov1.Composition) { c.Annotations[key] = value }
}

func earlier(c *enov1.Composition) {
	c.Status.PreviousSynthesis = &enov1.Synthesis{UUID: "before", ResourceSlices: []*enov1.ResourceSliceRef{{Name: "before-1"}}}
	c.Status.History = []enov1.Synthesis{{UUID: "old", ResourceSlices: []*enov1.ResourceSliceRef{{Name: "old-1"}}}}
}

func TestWant(t *testing.T) {
	rollback := func(to string) func(*enov1.Composition) { return annotate(enov1.AnnotationRollback, to) }
	newSynthesizer := func(s *enov1.Synthesizer) { s.Generation++ }
	wish := func(c synthesis.Cause) *synthesis.Wish { return &synthesis.Wish{Cause: c} }

	cases := map[string]struct {
		reason  string
		changes []func(*enov1.Composition)
		synth   func(*enov1.Synthesizer)
		want    *synthesis.Wish
	}{
		"Nothing": {reason: "What is true is left alone."},
		"Initial": {reason: "Everybody gets a first one.", changes: []func(*enov1.Composition){func(c *enov1.Composition) { c.Status = enov1.CompositionStatus{} }}, want: wish(synthesis.Initial)},
		"NoFinalizer": {
			reason:  "Nothing is made that could not be cleared away.",
			changes: []func(*enov1.Composition){func(c *enov1.Composition) { c.Status, c.Finalizers = enov1.CompositionStatus{}, nil }},
		},
		"Deleted":        {reason: "Nothing is made of what goes.", changes: []func(*enov1.Composition){generation, func(c *enov1.Composition) { c.DeletionTimestamp = after(0) }}},
		"Composition":    {reason: "The spec changed.", changes: []func(*enov1.Composition){generation}, want: wish(synthesis.CompositionModified)},
		"Supersedes":     {reason: "It is not waited for what nobody wants any more.", changes: []func(*enov1.Composition){inFlight, generation}, want: wish(synthesis.CompositionModified)},
		"InFlight":       {reason: "What is in flight is enough.", changes: []func(*enov1.Composition){generation, inFlight}},
		"Forced":         {reason: "Somebody names the latest.", changes: []func(*enov1.Composition){annotate(enov1.AnnotationForceResynthesis, "now")}, want: wish(synthesis.Forced)},
		"ForcedInFlight": {reason: "The latest is the one in flight.", changes: []func(*enov1.Composition){inFlight, annotate(enov1.AnnotationForceResynthesis, "next")}, want: wish(synthesis.Forced)},
		"ForcedOnce":     {reason: "An older one was replaced already.", changes: []func(*enov1.Composition){annotate(enov1.AnnotationForceResynthesis, "before")}},
		"Input":          {reason: "An input changed.", changes: []func(*enov1.Composition){input}, want: wish(synthesis.InputModified)},
		"InputInFlight": {reason: "What is in flight may end first.", changes: []func(*enov1.Composition){inFlight, func(c *enov1.Composition) {
			c.Status.InputRevisions = []enov1.InputRevisions{{Key: "in", ResourceVersion: "12"}, {Key: "slow", ResourceVersion: "20"}}
		}}},
		"InputBehind": {reason: "The synthesis has read what the status does not know yet.", changes: []func(*enov1.Composition){func(c *enov1.Composition) { c.Status.InputRevisions[0].ResourceVersion = "9" }}},
		"InputOptional": {reason: "An optional one came.", changes: []func(*enov1.Composition){func(c *enov1.Composition) {
			c.Status.InputRevisions = append(c.Status.InputRevisions, enov1.InputRevisions{Key: "maybe"})
		}}, want: wish(synthesis.InputModified)},
		"InputIgnored":    {reason: "The composition does not mind.", changes: []func(*enov1.Composition){input, annotate(enov1.AnnotationIgnoreSideEffects, "true")}},
		"InputIgnoresOne": {reason: "The input says that it does not matter.", changes: []func(*enov1.Composition){input, func(c *enov1.Composition) { c.Status.InputRevisions[0].IgnoreSideEffects = new(true) }}},
		"InputInsists": {
			reason:  "The input goes before the composition.",
			changes: []func(*enov1.Composition){input, annotate(enov1.AnnotationIgnoreSideEffects, "true"), func(c *enov1.Composition) { c.Status.InputRevisions[0].IgnoreSideEffects = new(false) }},
			want:    wish(synthesis.InputModified),
		},
		"Revision": {
			reason: "A revision counts instead of the version.",
			changes: []func(*enov1.Composition){input, func(c *enov1.Composition) {
				c.Status.InputRevisions[0].Revision, c.Status.CurrentSynthesis.InputRevisions[0].Revision = new(1), new(1)
			}},
		},
		"Deferred":           {reason: "It waits for its turn.", changes: []func(*enov1.Composition){func(c *enov1.Composition) { c.Status.InputRevisions[1].ResourceVersion = "21" }}, want: wish(synthesis.DeferredInputModified)},
		"Both":               {reason: "What is at once goes before.", changes: []func(*enov1.Composition){input, func(c *enov1.Composition) { c.Status.InputRevisions[1].ResourceVersion = "21" }}, want: wish(synthesis.InputModified)},
		"Synthesizer":        {reason: "The program is another one.", synth: newSynthesizer, want: wish(synthesis.SynthesizerModified)},
		"SynthesizerIgnored": {reason: "Only the spec counts.", changes: []func(*enov1.Composition){annotate(enov1.AnnotationIgnoreSideEffects, "true")}, synth: newSynthesizer},
		"SynthesizerFlies":   {reason: "A rollout replaces nothing that is in flight.", changes: []func(*enov1.Composition){inFlight}, synth: newSynthesizer},
		"Retry":              {reason: "Ten seconds, once, and half as much again.", changes: []func(*enov1.Composition){canceled}, want: &synthesis.Wish{Cause: synthesis.Retry, NotBefore: epoch.Add(125 * time.Second)}},
		"RetryThird":         {reason: "Every attempt costs more.", changes: []func(*enov1.Composition){canceled, func(c *enov1.Composition) { c.Status.InFlightSynthesis.Attempts = 3 }}, want: &synthesis.Wish{Cause: synthesis.Retry, NotBefore: epoch.Add(155 * time.Second)}},
		"RetryAtOnce":        {reason: "What failed at once is not tried at once: times have seconds only.", changes: []func(*enov1.Composition){canceled, func(c *enov1.Composition) { c.Status.InFlightSynthesis.Canceled = after(100) }}, want: &synthesis.Wish{Cause: synthesis.Retry, NotBefore: epoch.Add(101500 * time.Millisecond)}},
		"RetryAtLast":        {reason: "There is an end to patience.", changes: []func(*enov1.Composition){canceled, func(c *enov1.Composition) { c.Status.InFlightSynthesis.Attempts = 1 << 40 }}, want: &synthesis.Wish{Cause: synthesis.Retry, NotBefore: epoch.Add(110*time.Second + time.Hour)}},
		"RetryChanged": {reason: "Another input may mend it: no backoff.", changes: []func(*enov1.Composition){canceled, func(c *enov1.Composition) {
			c.Status.InputRevisions = []enov1.InputRevisions{{Key: "in", ResourceVersion: "12"}, {Key: "slow", ResourceVersion: "20"}}
		}}, want: wish(synthesis.InputModified)},
		"RollBack":        {reason: "To the previous one.", changes: []func(*enov1.Composition){earlier, rollback("before")}, want: &synthesis.Wish{Cause: synthesis.RollBack, RollBackTo: "before"}},
		"RollBackFar":     {reason: "Or further.", changes: []func(*enov1.Composition){earlier, generation, rollback("old")}, want: &synthesis.Wish{Cause: synthesis.RollBack, RollBackTo: "old"}},
		"RollBackFlies":   {reason: "Also if something is in flight.", changes: []func(*enov1.Composition){earlier, inFlight, rollback("old")}, want: &synthesis.Wish{Cause: synthesis.RollBack, RollBackTo: "old"}},
		"RollBackUnknown": {reason: "Nothing is synthesized meanwhile.", changes: []func(*enov1.Composition){earlier, generation, rollback("other")}},
		"RollBackHere":    {reason: "The current one is kept.", changes: []func(*enov1.Composition){earlier, generation, rollback("now")}},
		"RolledBack":      {reason: "Once.", changes: []func(*enov1.Composition){earlier, generation, rollback("old"), func(c *enov1.Composition) { c.Status.CurrentSynthesis.RolledBackTo = "old" }}},
		"RollingBack":     {reason: "And not while it is being done.", changes: []func(*enov1.Composition){earlier, inFlight, rollback("old"), func(c *enov1.Composition) { c.Status.InFlightSynthesis.RolledBackTo = "old" }}},
		"RollBackRetry": {
			reason: "It can fail.", changes: []func(*enov1.Composition){earlier, canceled, rollback("old"), func(c *enov1.Composition) { c.Status.InFlightSynthesis.RolledBackTo = "old" }},
			want: &synthesis.Wish{Cause: synthesis.Retry, NotBefore: epoch.Add(125 * time.Second), RollBackTo: "old"},
		},
		"Resumed": {reason: "The annotation is gone.", changes: []func(*enov1.Composition){earlier, func(c *enov1.Composition) { c.Status.CurrentSynthesis.RolledBackTo = "old" }}, want: wish(synthesis.Resumed)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := synthesizer()
			if tc.synth != nil {
				tc.synth(s)
			}
			got, ok := synthesis.Want(composition(tc.changes...), s)
			var want synthesis.Wish
			if tc.want != nil {
				want = *tc.want
			}
			if ok != (tc.want != nil) || ok && !cmp.Equal(want, got) {
				t.Errorf("%s\ngot %v %+v, want %+v", tc.reason, ok, got, tc.want)
			}
		})
	}
}

func TestWantWithoutSynthesizer(t *testing.T) {
	if w, ok := synthesis.Want(composition(generation), nil); ok {
		t.Errorf("nothing can be run, but: %+v", w)
	}
	if _, ok := synthesis.Want(composition(earlier, annotate(enov1.AnnotationRollback, "old")), nil); !ok {
		t.Error("a rollback needs no Synthesizer")
	}
}
