package symphony_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/symphony"
)

// A world is a Symphony, its compositions, and what managers do about them.
type world struct {
	t     *testing.T
	r     *rand.Rand
	seed  uint64
	s     *enov1.Symphony
	all   []*enov1.Composition
	made  int
	clock int
	// late are decisions that a second manager is still to carry out.
	late []symphony.Decision
	// excused is set while several lead because that was not excluded.
	excused bool
}

// TestConverges changes the spec in any way at any time, has users and managers
// meddle, and then leaves the Symphony alone: soon there is one composition for
// each variation.
func TestConverges(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := &world{t: t, r: r, seed: seed, s: aSymphony()}
		rival := seed%2 == 1
		for range 60 {
			w.clock++
			switch n := r.IntN(10); {
			case n < 3:
				w.respec()
			case n == 3:
				w.userDeletes()
			case n == 4:
				w.finish()
				w.synthesize(3)
			case n == 5 && rival:
				w.late = append(w.late, w.decide())
			case n == 6 && len(w.late) > 0:
				w.apply(w.late[0], 1000)
				w.late = w.late[1:]
			default:
				w.apply(w.decide(), r.IntN(6)) // it may end in the middle
			}
			if !rival {
				w.atMostOne()
			}
		}
		for _, d := range w.late {
			w.apply(d, 1000)
		}
		w.settle()
		if t.Failed() {
			return
		}
	}
}

// respec changes the spec in any way: variations are added, removed, and depend on each other; one
// of them, or none, leads. Now and then it is invalid.
func (w *world) respec() {
	w.s.Generation++
	w.s.Spec = w.spec(w.r.IntN(5) == 0)
}

func (w *world) spec(nonsense bool) enov1.SymphonySpec {
	spec := enov1.SymphonySpec{}
	lead := w.r.IntN(7)
	names := []string{"a", "b", "c", "d", "e", "f"}
	w.r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for i, name := range names[:w.r.IntN(len(names)+1)] {
		v := variation(name, noted("lead", ""))
		if i == lead {
			v.Annotations["lead"] = "true"
		}
		v.SynthesisEnv = []enov1.EnvVar{{Name: "E", Value: strconv.Itoa(w.r.IntN(3))}}
		v.Optional = w.r.IntN(4) == 0
		for range w.r.IntN(3) {
			if nonsense {
				on(names[w.r.IntN(len(names))])(&v)
			} else if i > 0 {
				on(names[w.r.IntN(i)])(&v)
			}
		}
		spec.Variations = append(spec.Variations, v)
	}
	if nonsense && len(spec.Variations) > 0 && w.r.IntN(2) == 0 {
		spec.Variations = append(spec.Variations, spec.Variations[0])
	}
	w.r.Shuffle(len(spec.Variations), func(i, j int) {
		spec.Variations[i], spec.Variations[j] = spec.Variations[j], spec.Variations[i]
	})

	return spec
}

func (w *world) decide() symphony.Decision {
	return symphony.Decide(symphony.View{Symphony: w.s.DeepCopy(), Compositions: slices.Clone(w.all)}, epoch)
}

// apply does as many of the writes as there is time for. A write of an object that has changed in
// between fails, and ends it.
func (w *world) apply(d symphony.Decision, writes int) {
	var steps []func() bool
	change := func(list []symphony.Change) {
		for _, c := range list {
			steps = append(steps, func() bool {
				i := slices.Index(w.all, c.From)
				if i < 0 {
					return false
				}
				to := c.To.DeepCopy()
				if !slices.Equal(to.Spec.SynthesisEnv, c.From.Spec.SynthesisEnv) || !slices.Equal(to.Spec.DependsOn, c.From.Spec.DependsOn) {
					to.Generation++
				}
				w.all[i] = to

				return true
			})
		}
	}
	change(d.Before)
	for _, c := range d.Delete {
		steps = append(steps, func() bool {
			if i := slices.IndexFunc(w.all, func(o *enov1.Composition) bool { return o.UID == c.UID }); i >= 0 {
				w.all[i] = w.all[i].DeepCopy()
				w.all[i].DeletionTimestamp = after(0)
			}

			return true
		})
	}
	for _, c := range d.Create {
		steps = append(steps, func() bool {
			w.made++
			made := composition(fmt.Sprint(c.GenerateName, w.made), born(w.clock/4))
			made.Labels, made.Annotations, made.Spec = c.Labels, c.Annotations, c.Spec
			w.all = append(w.all, made)

			return true
		})
	}
	change(d.After)
	for _, step := range steps[:min(len(steps), writes)] {
		if !step() {
			return
		}
	}
}

func (w *world) userDeletes() {
	if len(w.all) > 0 {
		i := w.r.IntN(len(w.all))
		w.all[i] = w.all[i].DeepCopy()
		w.all[i].DeletionTimestamp = after(0)
	}
}

// finish removes compositions whose deletion waits for no other. In a cycle none waits:
// surplus compositions still depend on what they depended on.
func (w *world) finish() {
	all := slices.Clone(w.all)
	w.all = slices.DeleteFunc(w.all, func(c *enov1.Composition) bool {
		kept := slices.ContainsFunc(all, func(o *enov1.Composition) bool {
			return directly(o, c.Name) && !depends(all, c, o.Name, len(all))
		})

		return c.DeletionTimestamp != nil && !kept
	})
}

func directly(c *enov1.Composition, on string) bool {
	return slices.ContainsFunc(c.Spec.DependsOn, func(d enov1.CompositionDependency) bool { return d.Name == on })
}

// depends reports whether a composition depends on another in so many steps.
func depends(all []*enov1.Composition, c *enov1.Composition, on string, steps int) bool {
	return directly(c, on) || steps > 0 && slices.ContainsFunc(all, func(o *enov1.Composition) bool { return directly(c, o.Name) && depends(all, o, on, steps-1) })
}

// synthesize has compositions synthesized, one of so many. If it is not each of them, some
// have no manifests.
func (w *world) synthesize(of int) {
	for i, c := range w.all {
		if w.r.IntN(of) != 0 || c.Status.CurrentSynthesis != nil && (of > 1 || len(c.Status.CurrentSynthesis.ResourceSlices) > 0) {
			continue
		}
		w.all[i] = c.DeepCopy()
		w.all[i].Status.CurrentSynthesis = &enov1.Synthesis{ObservedCompositionGeneration: c.Generation}
		if of == 1 || w.r.IntN(3) > 0 {
			sliced(w.all[i])
		}
	}
}

// atMostOne is only guaranteed if some variation does not lead explicitly: otherwise a move cannot
// be recognized. A composition that leads since then does so until it is deleted or another one
// should lead.
func (w *world) atMostOne() {
	var lead []string
	for _, c := range w.all {
		if c.DeletionTimestamp == nil && c.Annotations["lead"] != "" {
			lead = append(lead, c.Name)
		}
	}
	promised := slices.ContainsFunc(w.s.Spec.Variations, func(v enov1.Variation) bool { return v.Annotations["lead"] == "" })
	if w.excused = len(lead) > 1 && (w.excused || !promised); len(lead) > 1 && !w.excused {
		w.t.Errorf("seed %d: several lead: %v", w.seed, lead)
	}
}

// settle leaves a Symphony alone that can be played, and counts the rounds.
func (w *world) settle() {
	w.s.Spec = w.spec(false)
	w.s.Generation++
	variations := w.s.Spec.Variations
	rounds := 0
	w.synthesize(1)
	for d := w.decide(); !d.Idle(); d = w.decide() {
		// One for what must be removed, one for each that waits for another, and one for changes
		// that waited for the last. And one for those that are deleted when all are synthesized.
		if rounds++; rounds > len(variations)+3 {
			w.t.Fatalf("seed %d: after %d rounds there is still %v to do", w.seed, rounds, actions(d))
		}
		w.apply(d, 1000)
		w.synthesize(1)
	}
	for range len(w.all) {
		w.finish()
	}
	if len(w.all) != len(variations) {
		w.t.Errorf("seed %d: %d variations have %d compositions", w.seed, len(variations), len(w.all))
	}
	for _, v := range variations {
		w.right(v)
	}
	w.atMostOne()
	for _, c := range w.all {
		reached(1, 2, 3)(c)
	}
	if st := w.decide().Status; st.Conditions[0].Status != "True" {
		w.t.Errorf("seed %d: all are ready, and it says %+v", w.seed, st)
	}
}

func (w *world) right(v enov1.Variation) {
	of := func(name string) *enov1.Composition {
		i := slices.IndexFunc(w.all, func(c *enov1.Composition) bool { return c.Spec.Synthesizer.Name == name })
		if i < 0 {
			w.t.Fatalf("seed %d: %s has no composition", w.seed, name)
		}

		return w.all[i]
	}
	c := of(v.Synthesizer.Name)
	if !slices.Equal(c.Spec.SynthesisEnv, v.SynthesisEnv) || c.Annotations["lead"] != v.Annotations["lead"] {
		w.t.Errorf("seed %d: of %+v came %+v", w.seed, v, c)
	}
	for _, d := range v.DependsOn {
		if want := of(d.Synthesizer).Name; !slices.Contains(c.Spec.DependsOn, enov1.CompositionDependency{Name: want, Namespace: "ns"}) {
			w.t.Errorf("seed %d: %s is not after %s: %+v", w.seed, c.Name, want, c.Spec.DependsOn)
		}
	}
}
