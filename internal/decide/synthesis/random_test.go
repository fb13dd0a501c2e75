package synthesis_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/identity"
)

// A world is one composition, its slices, the programs that run for it, and
// what the cluster has of it. Programs come back whenever they like, wanted or
// not.
type world struct {
	t     *testing.T
	r     *rand.Rand
	now   time.Time
	c     *enov1.Composition
	s     *enov1.Synthesizer
	slice map[string]*enov1.ResourceSlice
	runs  []run
	// cluster has what was delivered once and is not known to be gone.
	cluster map[identity.Identity]bool
	// begun counts syntheses; order is when each was begun, and latest the order of
	// the current one.
	begun, latest int
	order         map[string]int
	live          map[string]bool
}

type run struct {
	uuid    string
	basedOn string
	made    []*enov1.ResourceSlice
	// unchanged is whether it takes over the slices of what it is based on.
	unchanged bool
}

// TestNothingIsLost does whatever can happen, in any order.
func TestNothingIsLost(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := &world{
			t: t, r: r, now: epoch, c: composition(fresh), s: synthesizer(),
			slice: map[string]*enov1.ResourceSlice{}, cluster: map[identity.Identity]bool{}, order: map[string]int{}, live: map[string]bool{},
		}
		w.c.Status = enov1.CompositionStatus{}
		acts := []func(){w.schedule, w.schedule, w.finish, w.finish, w.finish, w.fail, w.look, w.deliver, w.deliver, w.change, w.collect, w.crash}
		for range 300 {
			w.now = w.now.Add(time.Duration(r.IntN(20)) * time.Second)
			acts[r.IntN(len(acts))]()
			w.check(seed)
			if t.Failed() {
				return
			}
		}
	}
}

func (w *world) schedule() {
	plan := synthesis.Schedule([]*enov1.Composition{w.c}, map[string]*enov1.Synthesizer{"s": w.s}, synthesis.Limits{Concurrency: 1, Cooldown: time.Minute}, w.now)
	for _, s := range plan.Begin {
		w.begun++
		uuid := fmt.Sprintf("u%d", w.begun)
		w.order[uuid] = w.begun
		w.c.Status = synthesis.Begin(s, uuid, w.now)
		w.runs = append(w.runs, w.work(s, uuid))
	}
}

// work makes the slices of a synthesis, as they are when it is begun.
func (w *world) work(s synthesis.Start, uuid string) run {
	out := run{uuid: uuid}
	var made []string
	if to := s.Wish.RollBackTo; to != "" {
		made = synthesis.Copied(w.slices(synthesis.Find(&w.c.Status, to)))
	} else {
		for i := range 8 {
			if w.r.IntN(2) == 0 {
				made = append(made, manifest(fmt.Sprint("d", i)))
			}
		}
	}
	var current []*enov1.ResourceSlice
	if w.c.Status.CurrentSynthesis != nil {
		out.basedOn, current = w.c.Status.CurrentSynthesis.UUID, w.slices(w.c.Status.CurrentSynthesis)
	}
	if out.unchanged = synthesis.Unchanged(&w.c.Status, made, current); out.unchanged {
		return out
	}
	for i, cut := range synthesis.Cut(synthesis.Manifests(made, current, uuid, synthesis.RequestOf(&w.c.Status, current))) {
		out.made = append(out.made, &enov1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(uuid, "-", i)},
			Spec:       enov1.ResourceSliceSpec{SynthesisUUID: uuid, Resources: cut},
		})
	}

	return out
}

func (w *world) slices(s *enov1.Synthesis) []*enov1.ResourceSlice {
	var all []*enov1.ResourceSlice
	for _, ref := range s.ResourceSlices {
		if w.slice[ref.Name] == nil {
			w.t.Fatalf("slice %s of synthesis %s is gone", ref.Name, s.UUID)
		}
		all = append(all, w.slice[ref.Name])
	}

	return all
}

// finish ends a program, perhaps one that was superseded.
func (w *world) finish() {
	if len(w.runs) == 0 {
		return
	}
	i := w.r.IntN(len(w.runs))
	r := w.runs[i]
	w.runs = slices.Delete(w.runs, i, i+1)
	d := synthesis.Done{UUID: r.uuid, BasedOn: r.basedOn, Inputs: w.c.Status.InputRevisions, HistoryLimit: synthesis.DefaultHistoryLimit, Unchanged: r.unchanged}
	for _, s := range r.made {
		w.slice[s.Name] = s
		d.Slices = append(d.Slices, &enov1.ResourceSliceRef{Name: s.Name})
	}
	if w.r.IntN(8) == 0 {
		return // the manager ended between the two writes
	}
	wanted := synthesis.Wanted(&w.c.Status, r.uuid)
	next, ok := synthesis.Promote(&w.c.Status, d, w.now)
	if ok && !wanted {
		w.t.Errorf("%s was promoted, and nobody waited for it", r.uuid)
	}
	w.c.Status = next
	if !ok {
		return
	}
	if w.order[r.uuid] <= w.latest {
		w.t.Errorf("%s is older than what it replaced", r.uuid)
	}
	w.latest = w.order[r.uuid]
	for _, s := range r.made {
		for _, m := range s.Spec.Resources {
			if !m.Deleted {
				w.cluster[identity.Read(m.Manifest)] = true
			}
		}
	}
}

func (w *world) fail() {
	if len(w.runs) > 0 {
		i := w.r.IntN(len(w.runs))
		w.c.Status, _ = synthesis.Fail(&w.c.Status, w.runs[i].uuid, []enov1.Result{{Message: "no", Severity: "error"}}, w.now)
		w.runs = slices.Delete(w.runs, i, i+1)
	}
}

// crash ends all programs without a record.
func (w *world) crash() {
	if w.r.IntN(10) == 0 {
		w.runs = nil
	}
}

func (w *world) look() {
	v := synthesis.View{Composition: w.c, Synthesizer: w.s, Find: lookup(nil), Timeout: 30 * time.Second, HistoryLimit: synthesis.DefaultHistoryLimit}
	for _, key := range []string{"in", "slow"} {
		v.Inputs = append(v.Inputs, synthesis.Input{Key: key, Revision: &enov1.InputRevisions{Key: key, ResourceVersion: strconv.Itoa(w.r.IntN(3))}})
	}
	if w.c.Status.CurrentSynthesis != nil {
		v.Current = w.slices(w.c.Status.CurrentSynthesis)
	}
	w.c.Status = synthesis.Look(v, w.now).Status
}

// deliver reconciles some manifests of the current synthesis.
func (w *world) deliver() {
	if w.c.Status.CurrentSynthesis == nil {
		return
	}
	for _, s := range w.slices(w.c.Status.CurrentSynthesis) {
		for len(s.Status.Resources) < len(s.Spec.Resources) {
			s.Status.Resources = append(s.Status.Resources, enov1.ResourceState{})
		}
		for i, m := range s.Spec.Resources {
			switch {
			case w.r.IntN(3) > 0:
			case m.Deleted:
				s.Status.Resources[i].Deleted = true
				delete(w.cluster, identity.Read(m.Manifest))
			default:
				s.Status.Resources[i] = enov1.ResourceState{Reconciled: true, Ready: after(0)}
			}
		}
	}
}

func (w *world) change() {
	switch w.r.IntN(5) {
	case 0:
		w.c.Generation++
	case 1:
		w.s.Generation++
	case 2:
		if latest := synthesis.Latest(&w.c.Status); latest != nil {
			w.c.Annotations[enov1.AnnotationForceResynthesis] = latest.UUID
		}
	case 3:
		delete(w.c.Annotations, enov1.AnnotationRollback)
	case 4:
		w.c.Annotations[enov1.AnnotationRollback] = fmt.Sprintf("u%d", w.r.IntN(w.begun+2))
	}
}

// collect deletes what is not needed.
func (w *world) collect() {
	var all []*enov1.ResourceSlice
	for _, s := range w.slice {
		all = append(all, s)
	}
	for _, s := range synthesis.Garbage(&w.c.Status, all) {
		delete(w.slice, s.Name)
	}
}

func (w *world) check(seed uint64) {
	if w.c.Status.CurrentSynthesis != nil {
		known := map[identity.Identity]bool{}
		for _, s := range w.slices(w.c.Status.CurrentSynthesis) {
			for _, m := range s.Spec.Resources {
				known[identity.Read(m.Manifest)] = true
			}
		}
		for ref := range w.cluster {
			if !known[ref] {
				w.t.Errorf("seed %d: %s is in the cluster, and the current synthesis knows nothing of it", seed, ref)
			}
		}
	}
	seen := map[string]bool{}
	for _, s := range append([]enov1.Synthesis{}, w.c.Status.History...) {
		if seen[s.UUID] {
			w.t.Errorf("seed %d: %s is in the history twice", seed, s.UUID)
		}
		seen[s.UUID] = true
		w.slices(&s)
	}
	if len(w.c.Status.History) > synthesis.DefaultHistoryLimit {
		w.t.Errorf("seed %d: the history has %d syntheses", seed, len(w.c.Status.History))
	}
}
