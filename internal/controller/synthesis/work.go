package synthesis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/executor"
	"github.com/arbor-control/arbor/internal/kube"
)

// farewell is how long a manager that ends may take to say that it gives up what
// it runs, so that the next one need not wait until its time is over.
const farewell = 2 * time.Second

// Why a synthesis ended without a result.
var (
	errSuperseded = errors.New("the synthesis is not wanted any more")
	errEnding     = errors.New("the manager ended while it was running")
)

// A Worker runs syntheses that were begun here.
type Worker struct {
	client   client.Client
	reader   client.Reader
	mapper   meta.RESTMapper
	recorder events.EventRecorder
	executor executor.Executor // nil: nothing is run
	metrics  *Metrics
	timeout  time.Duration
	now      func() time.Time

	all     sync.WaitGroup
	mu      sync.Mutex
	flights map[types.UID]*flight
}

// A flight is a synthesis that is run here.
type flight struct {
	uuid string
	stop context.CancelCauseFunc
	// seen : the cache has shown that it is in flight. Before that, it shows what
	// was before.
	seen bool
}

// Start waits until ctx ends, and for everything that is run here.
func (w *Worker) Start(ctx context.Context) error {
	<-ctx.Done()
	w.all.Wait()

	return nil
}

// launch runs the synthesis in flight of a composition.
func (w *Worker) launch(ctx context.Context, c *enov1.Composition, s *enov1.Synthesizer) {
	ctx, stop := context.WithCancelCause(ctx)
	f := &flight{uuid: c.Status.InFlightSynthesis.UUID, stop: stop}
	w.mu.Lock()
	if old := w.flights[c.UID]; old != nil {
		old.stop(errSuperseded)
	}
	w.flights[c.UID] = f
	w.mu.Unlock()
	w.all.Go(func() {
		defer stop(nil)
		w.run(ctx, c, s)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.flights[c.UID] == f {
			delete(w.flights, c.UID)
		}
	})
}

// runs says whether the synthesis in flight of a composition is run here. What is
// run here and not wanted any more is stopped.
func (w *Worker) runs(c *enov1.Composition) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.flights[c.UID]
	if f == nil {
		return false
	}
	wanted := decide.Wanted(&c.Status, f.uuid)
	if f.seen && !wanted {
		f.stop(errSuperseded)
	}
	f.seen = f.seen || wanted

	return wanted
}

// stop ends what is run here for a composition.
func (w *Worker) stop(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.flights[uid]; f != nil {
		f.stop(errSuperseded)
	}
}

// run runs a synthesis to its end, and says what came of it.
func (w *Worker) run(ctx context.Context, c *enov1.Composition, s *enov1.Synthesizer) {
	began := w.now()
	log := ctrl.LoggerFrom(ctx).WithValues("composition", client.ObjectKeyFromObject(c), "synthesis", c.Status.InFlightSynthesis.UUID)
	m, err := w.make(ctx, c, s)
	if err == nil {
		err = w.publish(ctx, c, m)
	}
	switch {
	case err == nil:
		w.metrics.ended(resultSuccess, w.now().Sub(began))
		w.tellDone(c, m)
	case errors.Is(err, errSuperseded), errors.Is(context.Cause(ctx), errSuperseded):
		w.metrics.ended(resultSuperseded, w.now().Sub(began))
		log.Info("A synthesis was superseded")
	default:
		if ctx.Err() != nil {
			err = errEnding
		}
		w.metrics.ended(resultFailure, w.now().Sub(began))
		log.Info("A synthesis failed", "reason", loggable(err))
		if err := w.fail(ctx, c, m, err); err != nil {
			// It is given up when its time is over.
			log.Error(err, "Cannot say that a synthesis failed")
		}
	}
}

// fail gives the synthesis up, and says why. The context may have ended.
func (w *Worker) fail(ctx context.Context, c *enov1.Composition, m made, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	results := m.results
	if !failed(results) {
		results = append([]enov1.Result{{Message: why.Error(), Severity: enov1.SeverityError}}, results...)
	}
	uuid := c.Status.InFlightSynthesis.UUID
	wrote, err := w.update(ctx, c, func(st *enov1.CompositionStatus) (enov1.CompositionStatus, bool) {
		return decide.Fail(st, uuid, results, w.now())
	})
	if wrote {
		w.tellFailed(c, results[0].Message)
	}

	return err
}

// publish writes slices of what was made, and makes them the current ones.
func (w *Worker) publish(ctx context.Context, c *enov1.Composition, m made) error {
	uuid := c.Status.InFlightSynthesis.UUID
	live := &enov1.Composition{}
	if err := w.reader.Get(ctx, client.ObjectKeyFromObject(c), live); apierrors.IsNotFound(err) {
		return errSuperseded
	} else if err != nil {
		return fmt.Errorf("cannot read Composition %s/%s: %w", c.Namespace, c.Name, err)
	}
	if live.UID != c.UID || live.DeletionTimestamp != nil || !decide.Wanted(&live.Status, uuid) {
		return errSuperseded
	}
	done := decide.Done{UUID: uuid, Results: m.results, Inputs: m.inputs}
	var current []*enov1.ResourceSlice
	if live.Status.CurrentSynthesis != nil {
		done.BasedOn = live.Status.CurrentSynthesis.UUID
		var err error
		if current, err = w.slices(ctx, c.Namespace, live.Status.CurrentSynthesis); err != nil {
			return err
		}
	}
	for _, manifests := range decide.Cut(decide.Manifests(m.manifests, current)) {
		name, err := w.create(ctx, live, uuid, manifests)
		if err != nil {
			return err
		}
		done.Slices = append(done.Slices, name)
	}

	return w.promote(ctx, c, done)
}

// promote makes what was written the current synthesis. Whether it is still wanted
// the status says, under its resourceVersion. So nobody stops it any more: who sees
// that it was promoted would else take it for superseded, and stop it while the
// answer is on its way.
func (w *Worker) promote(ctx context.Context, c *enov1.Composition, done decide.Done) error {
	ctx, cancel := lingering(ctx, farewell)
	defer cancel()
	promoted := false
	_, err := w.update(ctx, c, func(st *enov1.CompositionStatus) (enov1.CompositionStatus, bool) {
		// A write can succeed without its answer coming back.
		if promoted = st.CurrentSynthesis != nil && st.CurrentSynthesis.UUID == done.UUID; promoted {
			return *st, false
		}
		next, ok := decide.Promote(st, done, w.now())
		promoted = ok

		return next, ok
	})
	if err == nil && !promoted {
		return errSuperseded
	}

	return err
}

// lingering returns a context that ends some time after another.
func lingering(ctx context.Context, longer time.Duration) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(longer, cancel) })

	return later, func() {
		stop()
		cancel()
	}
}

func (w *Worker) create(ctx context.Context, c *enov1.Composition, uuid string, manifests []enov1.Manifest) (string, error) {
	slice := &enov1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       c.Namespace,
			GenerateName:    c.Name + "-",
			Finalizers:      []string{enov1.Finalizer},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c, enov1.GroupVersion.WithKind(enov1.CompositionKind))},
		},
		Spec: enov1.ResourceSliceSpec{SynthesisUUID: uuid, Resources: manifests},
	}
	if err := w.client.Create(ctx, slice); err != nil {
		return "", fmt.Errorf("cannot create a ResourceSlice: %w", err)
	}

	return slice.Name, nil
}

// slices reads those of a synthesis from the API server. Of one that is not there
// nothing can be told; that it is not there is seen and mended elsewhere.
func (w *Worker) slices(ctx context.Context, namespace string, s *enov1.Synthesis) ([]*enov1.ResourceSlice, error) {
	var all []*enov1.ResourceSlice
	for _, ref := range s.ResourceSlices {
		slice := &enov1.ResourceSlice{}
		err := w.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, slice)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read ResourceSlice %s/%s: %w", namespace, ref.Name, err)
		}
		all = append(all, slice)
	}

	return all, nil
}

// update changes the status of a composition as it is now, unless change says no,
// and reports whether it did.
func (w *Worker) update(ctx context.Context, c *enov1.Composition, change func(*enov1.CompositionStatus) (enov1.CompositionStatus, bool)) (wrote bool, err error) {
	err = kube.RetryOnConflict(ctx, func(ctx context.Context) error {
		wrote = false
		live := &enov1.Composition{}
		if err := w.reader.Get(ctx, client.ObjectKeyFromObject(c), live); err != nil {
			return client.IgnoreNotFound(err)
		}
		next, ok := change(&live.Status)
		if !ok || live.UID != c.UID {
			return nil
		}
		live.Status = next
		if err := w.client.Status().Update(ctx, live); err != nil {
			return err
		}
		wrote = true

		return nil
	})
	if err != nil {
		err = fmt.Errorf("cannot write the status of Composition %s/%s: %w", c.Namespace, c.Name, err)
	}

	return wrote, err
}

func failed(results []enov1.Result) bool { return (&enov1.Synthesis{Results: results}).Failed() }

// tellDone says once for each synthesis what it made.
func (w *Worker) tellDone(c *enov1.Composition, m made) {
	if to := c.Status.InFlightSynthesis.RolledBackTo; to != "" {
		w.recorder.Eventf(whoever(c), nil, corev1.EventTypeNormal, "RolledBack", "RollBack", "The manifests are those of synthesis %s", to)

		return
	}
	w.recorder.Eventf(whoever(c), nil, corev1.EventTypeNormal, "Synthesized", "Synthesize", "Synthesis %s made %d resources", c.Status.InFlightSynthesis.UUID, len(m.manifests))
}

// tellFailed is heard less and less often while the same thing fails again and
// again: the first time, the second, the fourth, the eighth.
func (w *Worker) tellFailed(c *enov1.Composition, why string) {
	if n := c.Status.InFlightSynthesis.Attempts; n&(n-1) == 0 {
		w.recorder.Eventf(whoever(c), nil, corev1.EventTypeWarning, "SynthesisFailed", "Synthesize", "%s", why)
	}
}

// whoever is a composition whatever its version, so that what is said of it twice
// becomes one event that happened twice.
func whoever(c *enov1.Composition) *enov1.Composition {
	c = c.DeepCopy()
	c.ResourceVersion = ""

	return c
}
