package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/event"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// An outcome is what came of working on a resource.
type outcome struct {
	// live is the object as it is now, if that is known.
	live *unstructured.Unstructured
	// again is when to requeue, 0 for not before something happens.
	again time.Duration
	// waits is what is waited for, "" if the cluster agrees. stuck is true if it may take so
	// long that users need to know.
	waits string
	stuck bool
	// replaces is true if it waits for an object to be deleted that is created again.
	replaces bool
}

// settleDelivered settles a resource that the cluster agrees with, or will.
func (w *Worker) settleDelivered(v *model.Composition, it *model.Item, out outcome) outcome {
	w.Mapper.Forget(it.Defines) // before objects of that kind are worked on
	s := enov1.ResourceState{Reconciled: out.waits == "", ReconciliationError: w.waitError(it, out)}
	s.Deleted = s.Reconciled && it.IsPatch() && it.Removes
	if s.Reconciled {
		if ready, ok := w.ready(v, it, out.live); ok {
			s.Ready = &ready
		} else {
			out.again = retryAfter
		}
	}
	if it.Interval > 0 && out.again == 0 {
		out.again = w.next(it)
	}
	it.Memory.LastEvent = ""
	w.Settle(v, it, s)

	return out
}

// ready returns since when an object is ready.
func (w *Worker) ready(v *model.Composition, it *model.Item, live *unstructured.Unstructured) (metav1.Time, bool) {
	switch {
	case !it.Watched() || it.DisableReconciliation || it.IsPatch() && it.Removes || v.IsReady(it):
		return w.Timestamp(), true
	case live == nil:
		return metav1.Time{}, false
	}
	if !it.Kstatus && w.isOutdated(v, it, live) { // kstatus waits by itself
		return metav1.Time{}, false
	}
	since, ok, err := it.Ready(live, v.Metadata(), w.Now())
	w.reportLimit(v, it, err)

	return metav1.NewTime(since).Rfc3339Copy(), ok
}

// isOutdated reports whether the status of an object is of an earlier generation, and may still
// follow. If it does not for too long, it decides about readiness all the same.
func (w *Worker) isOutdated(v *model.Composition, it *model.Item, live *unstructured.Unstructured) bool {
	m := it.Memory
	seen, outdated := decide.Observe(m.Observed, live, w.Now())
	m.Observed = seen
	if seen.Behind() && !outdated && !m.Outdated {
		w.Events.Record(v.Owner, it.Object, corev1.EventTypeWarning, "StatusOutdated", fmt.Sprintf("%s: status.observedGeneration is %d and the generation is %d for %s; readiness depends on that status now", it.Identity, seen.Observed, seen.Generation, decide.StatusTimeout))
	}
	m.Outdated = seen.Behind() && !outdated

	return outdated
}

// settleRemoved settles a resource that is gone, or will be.
func (w *Worker) settleRemoved(k queue.Key, v *model.Composition, it *model.Item, out outcome) {
	if out.waits != "" {
		s := enov1.ResourceState{}
		if out.stuck {
			text := event.Clip(out.waits)
			s.ReconciliationError = &text
		}
		w.Settle(v, it, s)

		return
	}
	m := it.Memory
	if m.Watched {
		m.Watched = false
		w.Watches.Untrack(m.Location, k)
	}
	m.Desired, m.Version, m.OwnFields, m.Owned, m.Evaluated = "", "", "", false, nil
	m.Written.Store(false)
	now := w.Timestamp()
	w.Settle(v, it, enov1.ResourceState{Reconciled: true, Deleted: true, Ready: &now})
}

// settleFailure settles a resource that the cluster could not be made to agree with.
func (w *Worker) settleFailure(v *model.Composition, it *model.Item, err error, going bool) {
	f := decide.Failure{
		Err: err, Tries: w.Queue.NumRequeues(queue.Key{Composition: v.Name, Object: it.Identity}), BaseVersion: it.BaseVersion,
		Canceled: errors.Is(err, context.Canceled), Permanent: it.Problem != nil,
	}
	if f.IsPassing() {
		return
	}
	text := event.Clip(err.Error())
	w.Settle(v, it, it.FailedState(text, going, w.Timestamp()))
	if f.IsReported() {
		w.report(v, it, "NotDelivered", text)
	}
}

// Settle records a state of an item, also in a view that has replaced this one since.
func (w *Worker) Settle(v *model.Composition, it *model.Item, s enov1.ResourceState) {
	if it.Memory.Owned && !s.Deleted {
		s.UID = it.Memory.UID
	}
	for ; v != nil; v = v.Successor() {
		w.note(v, v.Items[it.Position], s)
	}
}

// note has the state of an item of a view written, and items queued that waited for it.
func (w *Worker) note(v *model.Composition, it *model.Item, s enov1.ResourceState) {
	s, changed, opened := v.Settle(it, s)
	if changed {
		w.Status.Set(v, it, s)
		w.Health.Enqueue(v.Name)
	}
	if changed && v.ConcernsWaiting(s) {
		w.Requeue(v.Name)
	}
	for _, next := range opened {
		if !model.IsInvalid(next) {
			w.Queue.Add(queue.Key{Composition: v.Name, Object: next.Identity})
		}
	}
}
