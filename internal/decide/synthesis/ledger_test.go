package synthesis_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/synthesis"
)

// planned is a plan in a form that can be compared.
func planned(p synthesis.Plan) []any {
	return []any{starts(p.Begin), starts(p.Waiting), starts(p.Held), halts(p.Halts), p.Free, p.Next}
}

// TestLedger changes compositions and Synthesizers one by one, and compares the plan with
// that of a ledger that knows nothing but the result.
func TestLedger(t *testing.T) {
	limits := synthesis.Limits{Concurrency: 3, Cooldown: time.Minute, MaxFailures: 2}
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 2))
		l := synthesis.NewLedger()
		all, programs := map[string]*enov1.Composition{}, map[string]*enov1.Synthesizer{}
		for step := range 300 {
			now := epoch.Add(time.Duration(step) * 10 * time.Second)
			if r.IntN(8) == 0 {
				changeProgram(r, l, programs)
			} else {
				changeComposition(r, l, all, step)
			}
			var list []*enov1.Composition
			for _, c := range all {
				list = append(list, c)
			}
			want, got := planned(synthesis.Schedule(list, programs, limits, now)), planned(l.Plan(limits, now))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, step %d: -fresh, +ledger:\n%s", seed, step, diff)
			}
		}
	}
}

func changeProgram(r *rand.Rand, l *synthesis.Ledger, programs map[string]*enov1.Synthesizer) {
	s := synthesizer()
	s.Name = []string{"s", "other"}[r.IntN(2)]
	if r.IntN(4) == 0 {
		delete(programs, s.Name)
		l.RemoveSynthesizer(s.Name)

		return
	}
	s.Generation += int64(r.IntN(2))
	if r.IntN(4) == 0 {
		s.Annotations = map[string]string{enov1.AnnotationResumeRollout: strconv.FormatInt(s.Generation, 10)}
	}
	if r.IntN(4) == 0 {
		s, _ = synthesis.Halt{Synthesizer: s, Scope: []string{"", "n", "m", "gone"}[r.IntN(4)], Message: "halted"}.Apply(*after(0))
	}
	programs[s.Name] = s
	l.SetSynthesizer(s)
}

func changeComposition(r *rand.Rand, l *synthesis.Ledger, all map[string]*enov1.Composition, step int) {
	number := r.IntN(10)
	name, tenant := fmt.Sprint("c", number), namespace([]string{"n", "m"}[number%2])
	if old := all[name]; old != nil && r.IntN(6) == 0 {
		l.Remove(old.Namespace, name, "of another")
		l.Remove(old.Namespace, name, old.UID)
		delete(all, name)

		return
	}
	changes := []func(*enov1.Composition){
		fresh, inFlight, canceled, generation, input, failedAttempt, secondAttempt, undelivered,
		func(c *enov1.Composition) { c.Status.CurrentSynthesis.ObservedSynthesizerGeneration = 1 },
		func(c *enov1.Composition) {
			c.Status.CurrentSynthesis.Deferred, c.Status.CurrentSynthesis.Initialized = true, after(step*10-r.IntN(90))
		},
		func(c *enov1.Composition) { c.Spec.Synthesizer.Name = "other" },
		func(c *enov1.Composition) {
			c.Spec.DependsOn = []enov1.CompositionDependency{{Name: fmt.Sprint("c", r.IntN(10))}}
		},
	}
	c := named(name, tenant, changes[r.IntN(len(changes))])
	c.UID, c.ResourceVersion = types.UID(fmt.Sprint(name, r.IntN(2))), strconv.Itoa(step+10)
	all[name] = c
	l.Set(c)
	// Objects from a cache that is behind are ignored.
	stale := named(name, tenant, fresh)
	stale.UID, stale.ResourceVersion = c.UID, "5"
	l.Set(stale)
}

// BenchmarkSchedule has 10,000 compositions: with all of them added, with one that changed, with
// one that changed while all the rest waits for a rollout, and with one that changed while 10,000
// of 1,000 namespaces wait for slots.
func BenchmarkSchedule(b *testing.B) {
	const many = 10_000
	limits, now := synthesis.Limits{Concurrency: 10, Cooldown: time.Minute}, epoch.Add(time.Hour)
	programs := map[string]*enov1.Synthesizer{"s": synthesizer()}
	var all []*enov1.Composition
	for i := range many {
		c := named(fmt.Sprint("c", i))
		c.ResourceVersion = "1"
		all = append(all, c)
	}
	load := func(s *enov1.Synthesizer) *synthesis.Ledger {
		l := synthesis.NewLedger()
		l.SetSynthesizer(s)
		for _, c := range all {
			l.Set(c)
		}

		return l
	}
	changed := func(b *testing.B, l *synthesis.Ledger) {
		b.Helper()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			c := *all[i%many]
			c.ResourceVersion = strconv.Itoa(i + 2)
			l.Set(&c)
			l.Plan(limits, now)
		}
	}
	b.Run("All", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			synthesis.Schedule(all, programs, limits, now)
		}
	})
	b.Run("OneChanged", func(b *testing.B) { changed(b, load(synthesizer())) })
	b.Run("OneChangedInRollout", func(b *testing.B) {
		s := synthesizer()
		s.Generation++
		changed(b, load(s))
	})
	b.Run("OneChangedInCrowd", func(b *testing.B) {
		l := load(synthesizer())
		for i := range many {
			l.Set(named(fmt.Sprint("new", i), fresh, namespace(fmt.Sprint("n", i%1000))))
		}
		changed(b, l)
	})
	b.Run("OneChangedInHaltedRollout", func(b *testing.B) {
		s := synthesizer()
		s.Generation++
		limits.MaxFailures = 3
		l := load(s)
		for i := range 3 {
			c := named(fmt.Sprint("failed", i), failedAttempt, func(c *enov1.Composition) { c.Status.InFlightSynthesis.ObservedSynthesizerGeneration = s.Generation })
			l.Set(c)
		}
		changed(b, l)
	})
}
