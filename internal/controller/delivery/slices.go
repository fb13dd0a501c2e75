package delivery

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// Slices are watched, without their content: what another client does to a slice of a current
// synthesis is undone. One that is lost is restored, since nothing else knows which objects were
// delivered from it, and states that were overwritten are written again.

const (
	// maxEvents is how many versions of a slice are remembered that were not seen yet.
	maxEvents = 64
	// repairRetry is after how long a slice that could not be repaired is tried again. Synthesis
	// waits for it for five seconds.
	repairRetry = 500 * time.Millisecond
	// reloadDelay is after how long slices that are missing are read again.
	reloadDelay = 5 * time.Second
)

// sliceEvents tells events of other clients from those of this process. An event may come
// before the answer to the write that caused it.
type sliceEvents struct {
	mu sync.Mutex
	// own are versions that this process has written and not seen, and seen are others.
	own, seen map[string]bool
	deleted   bool
}

// wrote notes a version that this process has written.
func (e *sliceEvents) wrote(version string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seen[version] {
		delete(e.seen, version)

		return
	}
	if e.own == nil || len(e.own) >= maxEvents { // a watch that broke has left some out
		e.own = map[string]bool{}
	}
	e.own[version] = true
}

// saw notes an event, and reports whether this process may not have caused it.
func (e *sliceEvents) saw(version string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.own[version] {
		delete(e.own, version)

		return false
	}
	if e.seen == nil || len(e.seen) >= maxEvents {
		e.seen = map[string]bool{}
	}
	e.seen[version] = true

	return true
}

// sawDeletion notes that the slice was deleted.
func (e *sliceEvents) sawDeletion() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deleted = true
}

// take reports whether another client has changed or deleted the slice since the last call.
func (e *sliceEvents) take() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	foreign := e.deleted || len(e.seen) > 0
	e.deleted = false
	clear(e.seen)

	return foreign
}

// sliceHandler has a composition reconciled when another client has changed a slice of its
// current synthesis.
func (d *Deliverer) sliceHandler() handler.Funcs {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			version := e.ObjectNew.GetResourceVersion()
			if version == e.ObjectOld.GetResourceVersion() {
				return
			}
			if owner, s := d.sliceOf(e.ObjectNew); s != nil && s.events.saw(version) {
				q.AddAfter(reconcile.Request{NamespacedName: owner}, gather) // the answer to a write may follow
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if owner, s := d.sliceOf(e.Object); s != nil {
				s.events.sawDeletion()
				q.Add(reconcile.Request{NamespacedName: owner})
			}
		},
	}
}

// sliceOf returns the composition of a slice, and the slice if it is of its current synthesis.
func (d *Deliverer) sliceOf(o client.Object) (types.NamespacedName, *slice) {
	owner := metav1.GetControllerOf(o)
	if owner == nil || owner.Kind != enov1.CompositionKind {
		return types.NamespacedName{}, nil
	}
	name := types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name}
	v := d.view(name)
	if v == nil || v.uid != owner.UID {
		return name, nil
	}

	return name, v.parts[o.GetName()]
}

// isOfSlices reports whether a view, if there is one, is of the present slices of a composition.
func (v *view) isOfSlices(c *enov1.Composition) bool {
	return v != nil && v.uid == c.UID && v.slices == slicesOf(c.Status.CurrentSynthesis)
}

// checkSlices compares the slices that other clients have changed with what is known, and
// repairs them. One that cannot be repaired now, for example because its namespace is being
// deleted, is tried again, and holds up nothing else.
func (d *Deliverer) checkSlices(ctx context.Context, v *view, c *enov1.Composition) {
	if !v.isOfSlices(c) || v.elsewhere {
		return
	}
	for _, s := range v.parts {
		if !s.events.take() {
			continue
		}
		if err := d.checkSlice(ctx, v, s, c); err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Cannot repair a slice", "slice", s.String())
			s.events.sawDeletion() // whatever it was, it is checked again
			d.requeueAfter(v.name, repairAfter(err))
		}
	}
}

// repairAfter returns after how long a repair that failed is tried again: soon, unless another client
// has to do something first.
func repairAfter(err error) time.Duration {
	if isRejected(err) || apierrors.IsForbidden(err) {
		return reloadDelay
	}

	return repairRetry
}

// shareEvents has slices note the same events as those of an earlier view: a slice may be changed
// after it was read, and before its view is in use. Nothing works on this view yet.
func (v *view) shareEvents(old *view) {
	for name, s := range v.parts {
		if was := old.parts[name]; was != nil {
			s.events = was.events
		}
	}
}

// checkMissed has those slices of a new view checked that were deleted when no view could note it. The
// cache does not have them any more. If slices were missing when the view was made, they are read again
// later.
func (d *Deliverer) checkMissed(ctx context.Context, v, old *view) {
	if after := d.reloadAfter(v); after > 0 {
		d.requeueAfter(v.name, after)
	}
	for name, s := range v.parts {
		if old != nil && old.parts[name] != nil && old.parts[name].events == s.events {
			continue
		}
		o := &metav1.PartialObjectMetadata{}
		o.SetGroupVersionKind(enov1.GroupVersion.WithKind(enov1.ResourceSliceKind))
		if err := d.client.Get(ctx, s.NamespacedName, o); err != nil {
			s.events.sawDeletion()
			d.requeue(v.name)
		}
	}
}

// isCurrent reports whether a view, if there is one, is still that of its composition. One that lacks
// slices is so for a limited time: a backup may restore them, for example.
func (d *Deliverer) isCurrent(v *view, c *enov1.Composition) bool {
	return v.isOf(d.versionOf(c)) && (v.reloadAt.IsZero() || d.now().Before(v.reloadAt))
}

// reloadAfter returns after how long the slices of a view are read again, 0 if none is missing. Every
// reconciliation asks for it: another request for the composition replaces the one that waits.
func (d *Deliverer) reloadAfter(v *view) time.Duration {
	if v.reloadAt.IsZero() {
		return 0
	}

	return max(v.reloadAt.Sub(d.now()), time.Millisecond)
}

// checkSlice compares one slice with what is known. One that does not belong to the composition is
// lost, and restored once another client has deleted it.
func (d *Deliverer) checkSlice(ctx context.Context, v *view, s *slice, c *enov1.Composition) error {
	live := &enov1.ResourceSlice{}
	err := d.reader.Get(ctx, s.NamespacedName, live)
	switch {
	case apierrors.IsNotFound(err):
		return d.restore(ctx, v, s, c)
	case err != nil:
		return fmt.Errorf("cannot read slice %s: %w", s.NamespacedName, err)
	}
	problem, err := d.problemOf(ctx, live, c)
	if err != nil {
		return err
	}
	was := s.reject(problem)
	if was == "" && problem != "" && d.courtesy.Allow() {
		d.recorder.Eventf(v.owner, nil, corev1.EventTypeWarning, "SliceRejected", action, "%s",
			clip("another client has replaced a slice, to which no states are written: "+problem))
	}
	switch {
	case problem != "":
		return &rejectedError{problem}
	case was != "": // what was to be written was left out
		d.publishAll(v, slices.DeleteFunc(slices.Clone(v.items), func(it *item) bool { return it.slice != s || it.elsewhere }))
	case !v.shared: // otherwise the other delivery writes its states, too
		d.publishAll(v, v.overwritten(s, live))
	}

	return nil
}

func (d *Deliverer) publishAll(v *view, all []*item) {
	for _, it := range all {
		d.publish(v, it, v.stateOf(it))
	}
}

// overwritten are the items whose states another client has removed from a slice, also with the
// slice itself, before the first write or later.
func (v *view) overwritten(s *slice, live *enov1.ResourceSlice) []*item {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The next write writes all states.
	s.initialized, s.version = len(live.Status.Resources) == s.count, live.ResourceVersion
	known := v.states(s)
	var all []*item
	for _, it := range v.items {
		if it.slice != s {
			continue
		}
		if !s.initialized && isKnown(known[it.index]) || s.initialized && decide.LosesState(known[it.index], live.Status.Resources[it.index]) {
			all = append(all, it)
		}
	}

	return all
}
