package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/kube"
)

const (
	// gather is how long states are gathered before they are written, unless one completes
	// its slice.
	gather = 100 * time.Millisecond
	// writePause is how long a slice is left alone after a failed write.
	writePause = time.Second
	// writers is how many slices are written at a time.
	writers = 4
	// restShare is how long a slice is left alone after a write, in multiples of what
	// the write took: the API server rewrites all manifests of the slice with each, so a
	// large composition would spend its time on its own status. maxRest bounds it.
	// firstRest is how long the first write of a slice waits after its first state, for each
	// of its manifests: about as long as it takes to apply them, so that most slices are
	// written once.
	restShare = 20
	maxRest   = 3 * time.Second
	firstRest = 8 * time.Millisecond
)

// A statusWriter writes what has become of manifests, and of compositions.
type statusWriter struct {
	client  client.Client
	reader  client.Reader
	metrics *Metrics

	mu sync.Mutex
	// dirty is by name, not by view: of two views of one slice, what was said last is
	// written, and nothing that an earlier one said comes after it.
	dirty map[types.NamespacedName]*unwritten
	views map[chore]bool
	// wake has an element if there is something to write, and complete if a slice has
	// nothing left to gather.
	wake, complete chan struct{}
}

// unwritten are states of a slice.
type unwritten struct {
	view   *view
	slice  *slice
	states map[int]enov1.ResourceState
	// hints are written where nobody else wrote anything.
	hints map[int]enov1.ResourceState
	// notBefore is when to try again after a failed write.
	notBefore time.Time
}

func newStatusWriter(c client.Client, reader client.Reader, m *Metrics) *statusWriter {
	return &statusWriter{client: c, reader: reader, metrics: m, dirty: map[types.NamespacedName]*unwritten{}, views: map[chore]bool{}, wake: make(chan struct{}, 1), complete: make(chan struct{}, 1)}
}

// set has a state written.
func (w *statusWriter) set(v *view, it *item, s enov1.ResourceState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of(v, it).states[it.index] = s
	w.nudge()
	if s.Ready != nil && v.isReconciled(it.slice) {
		signal(w.complete)
	}
}

// persist writes a state at once.
func (w *statusWriter) persist(ctx context.Context, v *view, it *item, s enov1.ResourceState) error {
	return w.write(ctx, it.slice, &unwritten{view: v, slice: it.slice, states: map[int]enov1.ResourceState{it.index: s}})
}

// hint has a state written if nobody else writes one.
func (w *statusWriter) hint(v *view, it *item, s enov1.ResourceState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of(v, it).hints[it.index] = s
	w.nudge()
}

// of is what is to be written of the slice of an item.
func (w *statusWriter) of(v *view, it *item) *unwritten {
	u := w.dirty[it.slice.NamespacedName]
	if u == nil {
		u = &unwritten{states: map[int]enov1.ResourceState{}, hints: map[int]enov1.ResourceState{}}
		w.dirty[it.slice.NamespacedName] = u
	}
	if it.slice.restUntil.IsZero() {
		it.slice.restUntil = time.Now().Add(min(time.Duration(it.slice.count)*firstRest, maxRest))
	}
	u.view, u.slice = v, it.slice

	return u
}

func (w *statusWriter) nudge() { signal(w.wake) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// depth is how many states and reports wait to be written.
func (w *statusWriter) depth() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.views)
	for _, u := range w.dirty {
		n += len(u.states)
	}

	return n
}

// run writes until ctx ends.
func (w *statusWriter) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		}
		select {
		case <-ctx.Done():
			return
		case <-w.complete:
		case <-time.After(gather):
		}
		w.flush(ctx)
	}
}

// due takes what may be written now. A slice whose last write failed, or was slow,
// waits, and delays no other. When nothing is left to do in a slice it does not wait.
func (w *statusWriter) due() (map[types.NamespacedName]*unwritten, map[chore]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	dirty, views := map[types.NamespacedName]*unwritten{}, w.views
	w.views = map[chore]bool{}
	for name, u := range w.dirty {
		if wait := time.Until(u.earliest()); wait > 0 {
			time.AfterFunc(wait, w.nudge)

			continue
		}
		dirty[name] = u
		delete(w.dirty, name)
	}

	return dirty, views
}

// earliest is when states may be written.
func (u *unwritten) earliest() time.Time {
	if u.slice.restUntil.Before(u.notBefore) || u.view.isReconciled(u.slice) {
		return u.notBefore
	}

	return u.slice.restUntil
}

// rest has a slice left alone in proportion to what its last write took.
func (w *statusWriter) rest(s *slice, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.restUntil = time.Now().Add(min(restShare*took, maxRest))
}

// flush writes what may be written now.
func (w *statusWriter) flush(ctx context.Context) {
	dirty, views := w.due()
	var all sync.WaitGroup
	free := make(chan struct{}, writers)
	do := func(write func() error, again func()) {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			began := time.Now()
			defer func() { w.metrics.flushTime.Observe(time.Since(began).Seconds()) }()
			if err := write(); err != nil {
				logr.FromContextOrDiscard(ctx).V(1).Info("cannot write a status; trying again", "error", err.Error())
				again()
				time.AfterFunc(writePause, w.nudge)
			}
		})
	}
	for _, u := range dirty {
		do(func() error {
			err := w.write(ctx, u.slice, u)
			if isRejected(err) {
				return nil // all states are written if the slice is restored
			}

			return err
		}, func() { w.again(u) })
	}
	for c := range views {
		do(func() error { return w.do(ctx, c) }, func() { time.AfterFunc(writePause, func() { w.add(c) }) })
	}
	all.Wait()
}

// again keeps states that could not be written, unless there are newer ones.
func (w *statusWriter) again(u *unwritten) {
	w.mu.Lock()
	defer w.mu.Unlock()
	newer := w.dirty[u.slice.NamespacedName]
	if newer == nil {
		newer = u
		w.dirty[u.slice.NamespacedName] = u
	}
	newer.notBefore = time.Now().Add(writePause)
	if newer == u {
		return
	}
	for i, state := range u.states {
		if _, ok := newer.states[i]; !ok {
			newer.states[i] = state
		}
	}
	maps.Copy(newer.hints, u.hints)
}

// all are the states of the whole slice. Another view may have said some of them.
func (u *unwritten) all() []enov1.ResourceState {
	states := u.view.states(u.slice)
	for i, s := range u.states {
		states[i] = s
	}

	return states
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// write writes states by their index. Somebody else may write beside it: each
// state has one place. The first write makes those places, on condition that
// nobody else did.
func (w *statusWriter) write(ctx context.Context, s *slice, u *unwritten) error {
	s.Lock()
	defer s.Unlock()
	if s.rejected != "" {
		return &rejectedError{s.rejected}
	}
	var ops []operation
	if s.initialized {
		if err := w.writeHints(ctx, s, u.hints); err != nil {
			return err
		}
		for i, state := range u.states {
			ops = append(ops, operation{Op: "replace", Path: placeOf(i), Value: state})
		}
		if len(ops) == 0 {
			return nil
		}
	} else {
		ops = []operation{
			{Op: "test", Path: "/metadata/resourceVersion", Value: s.version},
			{Op: "add", Path: "/status", Value: enov1.ResourceSliceStatus{Resources: u.all()}},
		}
	}
	began := time.Now()
	err := w.patch(ctx, s, ops)
	w.rest(s, time.Since(began))
	w.metrics.flushSize.Observe(float64(len(u.states)))
	result := resultOf(err)
	switch result {
	case resultSuccess:
		s.initialized = true

		return nil
	case resultGone:
		return nil // with the slice went whoever would read it
	}
	w.metrics.writeErrors.WithLabelValues(opPatch).Inc()
	if result == resultConflict {
		return w.refresh(ctx, s, err)
	}

	return fmt.Errorf("cannot write the status of slice %s: %w", s.NamespacedName, err)
}

// writeHints writes states where there are none.
func (w *statusWriter) writeHints(ctx context.Context, s *slice, hints map[int]enov1.ResourceState) error {
	for i, state := range hints {
		err := w.patch(ctx, s, []operation{
			{Op: "test", Path: placeOf(i), Value: enov1.ResourceState{}},
			{Op: "replace", Path: placeOf(i), Value: state},
		})
		if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cannot write the status of slice %s: %w", s.NamespacedName, err)
		}
	}

	return nil
}

// placeOf is where the state of a manifest is.
func placeOf(index int) string { return fmt.Sprintf("/status/resources/%d", index) }

func (w *statusWriter) patch(ctx context.Context, s *slice, ops []operation) error {
	data, err := json.Marshal(ops)
	if err != nil {
		return err
	}
	// The answer would have all the manifests in it again.
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(enov1.GroupVersion.WithKind(enov1.ResourceSliceKind))
	o.Namespace, o.Name = s.Namespace, s.Name
	err = w.client.Status().Patch(ctx, o, client.RawPatch(types.JSONPatchType, data))
	if err == nil {
		s.events.wrote(o.ResourceVersion)
	}
	w.metrics.updates.WithLabelValues(resultOf(err)).Inc()

	return err
}

// resultOf is what came of a write to a slice.
func resultOf(err error) string {
	_, homeless := kube.MissingNamespace(err)
	switch {
	case err == nil:
		return resultSuccess
	case homeless:
		// A namespace that was forced to go leaves its slices behind, and may be made again.
		return resultFailure
	case apierrors.IsNotFound(err):
		return resultGone
	case apierrors.IsInvalid(err) || apierrors.IsConflict(err):
		return resultConflict
	default:
		return resultFailure
	}
}

// refresh finds out why a write was refused, and returns that reason: the slice
// was written by somebody else.
func (w *statusWriter) refresh(ctx context.Context, s *slice, because error) error {
	now := &enov1.ResourceSlice{}
	switch err := w.reader.Get(ctx, s.NamespacedName, now); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		w.metrics.writeErrors.WithLabelValues(opGet).Inc()

		return fmt.Errorf("cannot read slice %s: %w", s.NamespacedName, err)
	}
	s.initialized, s.version = len(now.Status.Resources) == s.count, now.ResourceVersion

	return fmt.Errorf("cannot write the status of slice %s: %w", s.NamespacedName, because)
}
