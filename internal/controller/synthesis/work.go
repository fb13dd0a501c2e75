package synthesis

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/synthesis"
)

// A Worker runs syntheses that were begun here, or sees them end if they run in
// pods.
type Worker struct {
	runner *synthesis.Runner
	// pods is whether programs run in pods, and not here. What needs no program is done here.
	pods     bool
	recorder events.EventRecorder
	metrics  *Metrics
	now      func() time.Time

	all     sync.WaitGroup
	mu      sync.Mutex
	flights map[types.UID]*flight
}

// A flight is a synthesis that was begun here.
type flight struct {
	uuid  string
	key   types.NamespacedName
	began time.Time
	// stop ends it; nil if it runs in a pod, which ends when it is not wanted.
	stop context.CancelCauseFunc
	// seen is whether the cache has shown that it is in flight. Before that, the cache is outdated.
	seen bool
}

// Start waits until ctx ends, and for everything that is run here.
func (w *Worker) Start(ctx context.Context) error {
	<-ctx.Done()
	w.all.Wait()

	return nil
}

// able reports whether programs can be run, here or elsewhere.
func (w *Worker) able() bool { return w.pods || w.runner.Executor != nil }

// launch runs the synthesis in flight of a composition, unless a pod does. before
// is the composition without it.
func (w *Worker) launch(ctx context.Context, before, c *enov1.Composition, s *enov1.Synthesizer) {
	f := &flight{uuid: c.Status.InFlightSynthesis.UUID, key: client.ObjectKeyFromObject(c), began: w.now()}
	if w.pods && c.Status.InFlightSynthesis.RolledBackTo == "" {
		w.enter(before, f)

		return
	}
	ctx, f.stop = context.WithCancelCause(ctx)
	w.enter(before, f)
	w.all.Go(func() {
		defer f.stop(nil)
		w.run(ctx, f, c, s)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.flights[c.UID] == f {
			delete(w.flights, c.UID)
		}
	})
}

// enter makes a flight the one of its composition, in place of another. That may have ended without
// having been handled since.
func (w *Worker) enter(before *enov1.Composition, f *flight) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old := w.flights[before.UID]; old != nil && old.stop == nil {
		w.watch(before, old, decide.Progress{})
	}
	w.supersede(w.flights[before.UID])
	w.flights[before.UID] = f
}

// supersede ends a flight that was superseded. The lock is held.
func (w *Worker) supersede(f *flight) {
	switch {
	case f == nil:
	case f.stop != nil:
		f.stop(synthesis.ErrSuperseded)
	default:
		w.metrics.ended(resultSuperseded, w.now().Sub(f.began))
	}
}

// runs reports whether the synthesis in flight of a composition is run here. What is run here and
// not wanted any more is stopped; what ran in a pod and has ended is counted and reported.
func (w *Worker) runs(c *enov1.Composition, current decide.Progress) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.flights[c.UID]
	if f == nil {
		return false
	}
	wanted := decide.Wanted(&c.Status, f.uuid)
	if f.stop == nil {
		w.watch(c, f, current)
	} else if f.seen && !wanted {
		f.stop(synthesis.ErrSuperseded)
	}
	f.seen = f.seen || wanted

	return wanted && f.stop != nil
}

// watch waits for the end of a synthesis that runs in a pod. Of several managers the one that
// started it counts and reports it. The lock is held.
func (w *Worker) watch(c *enov1.Composition, f *flight, current decide.Progress) {
	var result string
	switch end := decide.EndOf(c, f.uuid); {
	case end == decide.Promoted:
		result = resultSuccess
		// The result of the current synthesis can be reported as long as it is this one, and its
		// slices were read.
		if s := c.Status.CurrentSynthesis; s.UUID == f.uuid && current.Slices == len(s.ResourceSlices) {
			w.reportDone(c, s, current.Total)
		}
	case end == decide.GivenUp:
		result = resultFailure
		w.tellFailed(c, c.Status.InFlightSynthesis, decide.Failure(c.Status.InFlightSynthesis))
	case end == decide.Dropped && f.seen:
		result = resultSuperseded
	default:
		return
	}
	w.metrics.ended(result, w.now().Sub(f.began))
	delete(w.flights, c.UID)
}

// stop ends what is run here for a composition.
func (w *Worker) stop(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.flights[uid]; f != nil && f.stop != nil {
		f.stop(synthesis.ErrSuperseded)
	}
}

// forget ends what was begun here for a composition that is gone.
func (w *Worker) forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for uid, f := range w.flights {
		if f.key == key && f.stop == nil {
			w.supersede(f)
			delete(w.flights, uid)
		}
	}
}

// run runs a synthesis to its end, and reports the result.
func (w *Worker) run(ctx context.Context, f *flight, c *enov1.Composition, s *enov1.Synthesizer) {
	log := ctrl.LoggerFrom(ctx).WithValues("composition", f.key, "synthesis", f.uuid)
	out := w.runner.Run(ctx, c, s)
	took := w.now().Sub(f.began)
	switch {
	case out.Err == nil:
		w.metrics.ended(resultSuccess, took)
		w.reportDone(c, c.Status.InFlightSynthesis, out.Resources)
	case errors.Is(out.Err, synthesis.ErrSuperseded):
		w.metrics.ended(resultSuperseded, took)
		log.Info("A synthesis was superseded")
	default:
		w.metrics.ended(resultFailure, took)
		log.Info("A synthesis failed", "reason", out.Reason())
		if out.Message != "" {
			w.tellFailed(c, c.Status.InFlightSynthesis, out.Message)
		}
		if out.MessageErr != nil {
			// It is given up when its time is over.
			log.Error(out.MessageErr, "Cannot record that a synthesis failed")
		}
	}
}

// reportDone reports once for each synthesis what it created.
func (w *Worker) reportDone(c *enov1.Composition, s *enov1.Synthesis, resources int) {
	if s.RolledBackTo != "" {
		w.recorder.Eventf(eventTarget(c), nil, corev1.EventTypeNormal, "RolledBack", "RollBack", "The manifests are those of synthesis %s", s.RolledBackTo)

		return
	}
	w.recorder.Eventf(eventTarget(c), nil, corev1.EventTypeNormal, "Synthesized", "Synthesize", "%s", decide.Made(s.UUID, resources))
}

// tellFailed is heard less and less often while the same thing fails again and
// again: the first time, the second, the fourth, the eighth.
func (w *Worker) tellFailed(c *enov1.Composition, s *enov1.Synthesis, why string) {
	if n := s.Attempts; n&(n-1) == 0 {
		w.recorder.Eventf(eventTarget(c), nil, corev1.EventTypeWarning, "SynthesisFailed", "Synthesize", "%s", why)
	}
}

// eventTarget is a composition without its version, so that two equal events about it become one with a
// count of two.
func eventTarget(c *enov1.Composition) *enov1.Composition {
	c = c.DeepCopy()
	c.ResourceVersion = ""

	return c
}
