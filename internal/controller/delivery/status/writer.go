package status

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
	"github.com/arbor-control/arbor/internal/controller/delivery/metric"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/kube"
)

const (
	// Gather is how long states are gathered before they are written, unless one completes
	// its slice.
	Gather = 100 * time.Millisecond
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

// A Writer writes what has become of manifests, and of compositions.
type Writer struct {
	Client  client.Client
	Reader  client.Reader
	metrics *metric.Metrics

	mu sync.Mutex
	// Dirty is by name, not by view: of two views of one slice, the state that was set last is
	// written, and no state of an earlier view is written after it.
	Dirty map[types.NamespacedName]*unwritten
	views map[compositionWrite]bool
	// wake has an element if there is something to write, and complete if a slice has
	// nothing left to gather.
	wake, complete chan struct{}
}

// unwritten are states of a slice.
type unwritten struct {
	View   *model.Composition
	slice  *model.Slice
	states map[int]enov1.ResourceState
	// hints are written where no other client has written a state.
	hints map[int]enov1.ResourceState
	// notBefore is when to try again after a failed write.
	notBefore time.Time
}

// NewWriter returns a writer, which reads past the cache with reader.
func NewWriter(c client.Client, reader client.Reader, m *metric.Metrics) *Writer {
	return &Writer{Client: c, Reader: reader, metrics: m, Dirty: map[types.NamespacedName]*unwritten{}, views: map[compositionWrite]bool{}, wake: make(chan struct{}, 1), complete: make(chan struct{}, 1)}
}

// Set has a state written.
func (w *Writer) Set(v *model.Composition, it *model.Item, s enov1.ResourceState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of(v, it).states[it.Index] = s
	w.wakeUp()
	if s.Ready != nil && v.IsReconciled(it.Slice) {
		signal(w.complete)
	}
}

// Persist writes a state at once.
func (w *Writer) Persist(ctx context.Context, v *model.Composition, it *model.Item, s enov1.ResourceState) error {
	return w.write(ctx, it.Slice, &unwritten{View: v, slice: it.Slice, states: map[int]enov1.ResourceState{it.Index: s}})
}

// Hint has a state written if no other client writes one.
func (w *Writer) Hint(v *model.Composition, it *model.Item, s enov1.ResourceState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of(v, it).hints[it.Index] = s
	w.wakeUp()
}

// of returns the states of the slice of an item that have to be written.
func (w *Writer) of(v *model.Composition, it *model.Item) *unwritten {
	u := w.Dirty[it.Slice.NamespacedName]
	if u == nil {
		u = &unwritten{states: map[int]enov1.ResourceState{}, hints: map[int]enov1.ResourceState{}}
		w.Dirty[it.Slice.NamespacedName] = u
	}
	if it.Slice.RestUntil.IsZero() {
		it.Slice.RestUntil = time.Now().Add(min(time.Duration(it.Slice.Count)*firstRest, maxRest))
	}
	u.View, u.slice = v, it.Slice

	return u
}

func (w *Writer) wakeUp() { signal(w.wake) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Depth is how many states and reports wait to be written.
func (w *Writer) Depth() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.views)
	for _, u := range w.Dirty {
		n += len(u.states)
	}

	return n
}

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context) {
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
		case <-time.After(Gather):
		}
		w.Flush(ctx)
	}
}

// due takes what may be written now. A slice whose last write failed, or was slow,
// waits, and delays no other. When nothing is left to do in a slice it does not wait.
func (w *Writer) due() (map[types.NamespacedName]*unwritten, map[compositionWrite]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	dirty, views := map[types.NamespacedName]*unwritten{}, w.views
	w.views = map[compositionWrite]bool{}
	for name, u := range w.Dirty {
		if wait := time.Until(u.earliest()); wait > 0 {
			time.AfterFunc(wait, w.wakeUp)

			continue
		}
		dirty[name] = u
		delete(w.Dirty, name)
	}

	return dirty, views
}

// earliest is when states may be written.
func (u *unwritten) earliest() time.Time {
	if u.slice.RestUntil.Before(u.notBefore) || u.View.IsReconciled(u.slice) {
		return u.notBefore
	}

	return u.slice.RestUntil
}

// rest has a slice left alone in proportion to what its last write took.
func (w *Writer) rest(s *model.Slice, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.RestUntil = time.Now().Add(min(restShare*took, maxRest))
}

// Flush writes what may be written now.
func (w *Writer) Flush(ctx context.Context) {
	dirty, views := w.due()
	var all sync.WaitGroup
	free := make(chan struct{}, writers)
	do := func(write func() error, again func()) {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			began := time.Now()
			defer func() { w.metrics.FlushTime.Observe(time.Since(began).Seconds()) }()
			if err := write(); err != nil {
				logr.FromContextOrDiscard(ctx).V(1).Info("cannot write a status; trying again", "error", err.Error())
				again()
				time.AfterFunc(writePause, w.wakeUp)
			}
		})
	}
	for _, u := range dirty {
		do(func() error {
			err := w.write(ctx, u.slice, u)
			if model.IsRejected(err) {
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
func (w *Writer) again(u *unwritten) {
	w.mu.Lock()
	defer w.mu.Unlock()
	newer := w.Dirty[u.slice.NamespacedName]
	if newer == nil {
		newer = u
		w.Dirty[u.slice.NamespacedName] = u
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

// All are the states of the whole slice. Another view may have set some of them.
func (u *unwritten) All() []enov1.ResourceState {
	states := u.View.States(u.slice)
	for i, s := range u.states {
		states[i] = s
	}

	return states
}

// An Operation is one of a JSON patch.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// write writes states by their index. Another client may write next to it: each state has one
// place. The first write creates those places, on condition that no other client did.
func (w *Writer) write(ctx context.Context, s *model.Slice, u *unwritten) error {
	s.Lock()
	defer s.Unlock()
	if s.Rejected != "" {
		return &model.RejectedError{Reason: s.Rejected}
	}
	var ops []Operation
	if s.Initialized {
		if err := w.writeHints(ctx, s, u.hints); err != nil {
			return err
		}
		for i, state := range u.states {
			ops = append(ops, Operation{Op: "replace", Path: pathOf(i), Value: state})
		}
		if len(ops) == 0 {
			return nil
		}
	} else {
		ops = []Operation{
			{Op: "test", Path: "/metadata/resourceVersion", Value: s.Version},
			{Op: "add", Path: "/status", Value: enov1.ResourceSliceStatus{Resources: u.All()}},
		}
	}
	began := time.Now()
	err := w.Patch(ctx, s, ops)
	w.rest(s, time.Since(began))
	w.metrics.FlushSize.Observe(float64(len(u.states)))
	result := resultOf(err)
	switch result {
	case metric.ResultSuccess:
		s.Initialized = true

		return nil
	case metric.ResultGone:
		return nil // nothing reads the states of a slice that is deleted
	}
	w.metrics.WriteErrors.WithLabelValues(metric.OpPatch).Inc()
	if result == metric.ResultConflict {
		return w.refresh(ctx, s, err)
	}

	return fmt.Errorf("cannot write the status of slice %s: %w", s.NamespacedName, err)
}

// writeHints writes states where there are none.
func (w *Writer) writeHints(ctx context.Context, s *model.Slice, hints map[int]enov1.ResourceState) error {
	for i, state := range hints {
		err := w.Patch(ctx, s, []Operation{
			{Op: "test", Path: pathOf(i), Value: enov1.ResourceState{}},
			{Op: "replace", Path: pathOf(i), Value: state},
		})
		if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cannot write the status of slice %s: %w", s.NamespacedName, err)
		}
	}

	return nil
}

// pathOf is where the state of a manifest is.
func pathOf(index int) string { return fmt.Sprintf("/status/resources/%d", index) }

// Patch patches the status of a slice. The caller holds its lock.
func (w *Writer) Patch(ctx context.Context, s *model.Slice, ops []Operation) error {
	data, err := json.Marshal(ops)
	if err != nil {
		return err
	}
	// The answer would have all the manifests in it again.
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(enov1.GroupVersion.WithKind(enov1.ResourceSliceKind))
	o.Namespace, o.Name = s.Namespace, s.Name
	err = w.Client.Status().Patch(ctx, o, client.RawPatch(types.JSONPatchType, data))
	if err == nil {
		s.Events.Wrote(o.ResourceVersion)
	}
	w.metrics.Updates.WithLabelValues(resultOf(err)).Inc()

	return err
}

// resultOf is what came of a write to a slice.
func resultOf(err error) string {
	_, homeless := kube.MissingNamespace(err)
	switch {
	case err == nil:
		return metric.ResultSuccess
	case homeless:
		// A namespace that was forced to go leaves its slices behind, and may be made again.
		return metric.ResultFailure
	case apierrors.IsNotFound(err):
		return metric.ResultGone
	case apierrors.IsInvalid(err) || apierrors.IsConflict(err):
		return metric.ResultConflict
	default:
		return metric.ResultFailure
	}
}

// refresh finds out why a write was rejected, and returns that reason: another client has written
// the slice.
func (w *Writer) refresh(ctx context.Context, s *model.Slice, because error) error {
	now := &enov1.ResourceSlice{}
	switch err := w.Reader.Get(ctx, s.NamespacedName, now); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		w.metrics.WriteErrors.WithLabelValues(metric.OpGet).Inc()

		return fmt.Errorf("cannot read slice %s: %w", s.NamespacedName, err)
	}
	s.Initialized, s.Version = len(now.Status.Resources) == s.Count, now.ResourceVersion

	return fmt.Errorf("cannot write the status of slice %s: %w", s.NamespacedName, because)
}
