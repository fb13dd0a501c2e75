package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/ownership"
)

const (
	// timeout is how long one resource may take.
	timeout = time.Minute
	// patience is how often somebody is looked after who has something to do first.
	// Mostly a watch tells earlier.
	patience = 15 * time.Second
	// stuck is after how many failures people are told.
	stuck = 3
	// jitter of reconcile intervals, so that not all come at once.
	jitter = 0.1
)

// A worker makes the objects of the cluster agree with manifests.
type worker struct {
	*environment
	*registry

	watches   objectWatches
	metadata  metadata.Interface
	discovery discovery.DiscoveryInterface
	migrator  *ownership.Migrator
	migration string
	// forbiddenGrace is how long objects that may not be deleted hold up a terminating namespace.
	forbiddenGrace time.Duration
}

// objectWatches know what has become of the objects that were applied.
type objectWatches interface {
	// track has an object watched for a resource, and untrack ends that.
	track(at place, who key)
	untrack(at place, who key)
	// observe returns what is known about an object that was last written as a version.
	observe(at place, version string) observation
	// wrote records that a version of an object is as a resource wants it, and disputed reports
	// whether another resource has written it since.
	wrote(at place, version string, who key)
	disputed(at place, who key) bool
}

// work takes resources from the queue until it is shut down.
func (w *worker) work(ctx context.Context) {
	for {
		k, shutdown := w.queue.Get()
		if shutdown {
			return
		}
		w.one(ctx, k)
		w.queue.Done(k)
	}
}

// one works on one resource, and sees to it that it comes again if need be.
func (w *worker) one(ctx context.Context, k key) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	w.forget(k)
	v, it := w.find(k)
	if it == nil || w.outdated(v, it) {
		w.queue.Forget(k)

		return
	}
	ctx = v.as(ctx)
	do := w.deliver
	if !v.open(it) {
		if !v.keeps(it) {
			w.queue.Forget(k)

			return
		}
		do = w.keep
	}
	end := w.metrics.begin()
	again, err := do(ctx, k, v, it)
	end(err)
	switch {
	case err != nil && ctx.Err() == nil:
		logr.FromContextOrDiscard(ctx).V(1).Info("cannot deliver", "composition", k.composition.String(), "object", k.object.String(), "error", err.Error())
		w.queue.AddRateLimited(k)
	case err != nil:
		w.queue.AddRateLimited(k)
	default:
		w.queue.Forget(k)
		if again > 0 {
			w.queue.AddAfter(k, again)
		}
	}
}

// An outcome is what came of working on a resource.
type outcome struct {
	// live is the object as it is now, if that is known.
	live *unstructured.Unstructured
	// again is when to look again, 0 for not before something happens.
	again time.Duration
	// waits is what is waited for, "" if the cluster agrees. stuck : it may take so
	// long that people want to know.
	waits string
	stuck bool
	// replaces is true if it waits for an object to be deleted that is created again.
	replaces bool
}

// deliver gathers what is known about a resource, decides, and does it.
func (w *worker) deliver(ctx context.Context, k key, v *view, it *item) (time.Duration, error) {
	going := v.deleting || it.Tombstone
	it, known, err := w.override(ctx, k, v, it.unpacked())
	if err != nil {
		return w.fail(ctx, k, v, it, known.Live, err)
	}
	if err := w.checkNamespace(it, going); err != nil {
		w.failed(v, it, err, going)

		return 0, err
	}
	s := w.gather(v, it, known)
	if hold := max(w.hold(ctx, v, it, s), w.restless(v, it, s)); hold > 0 {
		return hold, nil
	}
	a, s, err := w.decide(ctx, v, it, s)
	var out outcome
	if err == nil {
		out, err = w.act(ctx, k, v, it, a, s)
	}
	if err != nil {
		it.memory.judged = nil

		return w.fail(ctx, k, v, it, s.Live, err)
	}
	w.permitted(v, it)
	if going {
		w.health.forget(k)
		w.removed(k, v, it, out)

		return out.again, nil
	}
	if err := w.persistRemoval(ctx, v, it, out); err != nil {
		return 0, err
	}
	w.health.saw(k, it.Resource, it.memory, out.live)

	return w.delivered(v, it, out).again, nil
}

// A situation is what is known about a resource, with where it is known from.
type situation struct {
	decide.Situation

	seen observation
}

// gather asks nobody: it is about what is known already.
func (w *worker) gather(v *view, it *item, known decide.Situation) situation {
	s := situation{Situation: known}
	s.Deleting, s.Abandoned, s.Manager = v.deleting, v.abandoned, w.manager
	if v.deleting || it.Tombstone {
		s.Taken, s.Unread = w.taken(v.name, it.Identity), w.unread(v)

		return s
	}
	m := it.memory
	if it.IsPatch() && it.Removes {
		s.Ran, s.Removed = v.ran(it), m.removedIn(v.slices)

		return s
	}
	s.ReportOnly = w.reportOnly(v, it)
	if m.desired != "" && m.tracked {
		w.observe(v, it, &s)
	}

	return s
}

// observe adds what the watch of an object knows.
func (w *worker) observe(v *view, it *item, s *situation) {
	m := it.memory
	s.seen = w.watches.observe(m.at, m.version)
	s.Going = s.seen.going && !older(s.seen.version, m.version)
	s.Replacing = s.Going && s.seen.uid == v.replaced(it)
	same := w.isUnchanged(v, it, s)
	if same && older(m.version, s.seen.version) {
		m.version = s.seen.version
	}
	if m.desired == it.desires() {
		// A new synthesis is delivered whatever --drift says.
		s.InSync = (same || w.drift == decide.DriftInterval && m.applied == v.slices) && !w.due(it)
		s.Drifted = !same && !s.InSync
	}
}

// isUnchanged reports whether an object is as it was written last, and stays.
func (w *worker) isUnchanged(v *view, it *item, s *situation) bool {
	return isSame(it.memory, s.seen) && !s.Going && !w.watches.disputed(it.memory.at, key{v.name, it.Identity})
}

// due reports whether an object is reconciled now even if it was not changed.
func (w *worker) due(it *item) bool {
	return it.Interval > 0 && !w.now().Before(it.memory.due)
}

// next is when it will be. What happens in between does not put it off.
func (w *worker) next(it *item) time.Duration {
	if w.due(it) {
		wait := float64(it.Interval) * (1 + jitter*rand.Float64()) //nolint:gosec // it only spreads load
		it.memory.due = w.now().Add(time.Duration(wait))
	}

	return max(it.memory.due.Sub(w.now()), time.Millisecond)
}

// isSame says whether an object is as it was written last, as far as that is ours.
func isSame(m *memory, seen observation) bool {
	switch {
	case seen.unserved:
		return false
	case !seen.known:
		return true // who does not know better believes so
	case !seen.present:
		return false
	case seen.version == m.version || older(seen.version, m.version):
		return true
	}

	return seen.uid == m.uid && seen.own == m.own && m.own != "" && !seen.going
}

// hold is how long an object is to be left alone that somebody else keeps
// changing.
func (w *worker) hold(ctx context.Context, v *view, it *item, s situation) time.Duration {
	hold := it.memory.damper.Hold(w.now())
	if !s.Drifted || hold == 0 {
		return 0
	}
	err := fmt.Errorf("%s keeps changing it: it was put right %d times, and is left alone for a while; have only one of them write it", w.rival(ctx, it, s), it.memory.damper.Rounds())
	w.failed(v, it, err, false)
	w.tell(v, it, "Contested", err.Error())

	return hold
}

// rival is who keeps changing an object. Of one that we hold nothing of any more,
// the watch remembers no names, so the object is asked, once for each time that it
// is left alone. Whoever deletes it leaves no name.
func (w *worker) rival(ctx context.Context, it *item, s situation) string {
	m := it.memory
	if m.rival == "" {
		m.rival = s.seen.writer
	}
	if m.rival == "" && s.seen.present {
		if live, err := w.read(ctx, it); err == nil && live != nil {
			m.rival = writerOf(live.GetManagedFields(), w.manager)
		}
	}

	return cmp.Or(m.rival, "somebody")
}

// decide decides, with the live object where it is needed.
func (w *worker) decide(ctx context.Context, v *view, it *item, s situation) (decide.Action, situation, error) {
	s.Ours, s.Patched = it.memory.isOurs(s.Live), isPatched(it, s)
	a := decide.Decide(it.Resource, s.Situation)
	unready := a.Verb == decide.Nothing && it.Watched() && !v.isReady(it)
	if s.Looked || a.Verb != decide.Look && !unready {
		return a, s, nil
	}
	live, err := w.read(ctx, it)
	if err != nil {
		return a, s, err
	}
	s.Looked, s.Live, s.Ours = true, live, it.memory.isOurs(live)
	s.Patched = isPatched(it, s)

	return decide.Decide(it.Resource, s.Situation), s, nil
}

// delivered settles a resource that the cluster agrees with, or will.
func (w *worker) delivered(v *view, it *item, out outcome) outcome {
	w.mapper.forget(it.Defines) // before objects of that kind are worked on
	s := enov1.ResourceState{Reconciled: out.waits == "", ReconciliationError: w.waitError(it, out)}
	s.Deleted = s.Reconciled && it.IsPatch() && it.Removes
	if s.Reconciled {
		if ready, ok := w.ready(v, it, out.live); ok {
			s.Ready = &ready
		} else {
			out.again = patience
		}
	}
	if it.Interval > 0 && out.again == 0 {
		out.again = w.next(it)
	}
	it.memory.told = ""
	w.settle(v, it, s)

	return out
}

// ready says since when an object is ready.
func (w *worker) ready(v *view, it *item, live *unstructured.Unstructured) (metav1.Time, bool) {
	switch {
	case !it.Watched() || it.DisableReconciliation || it.IsPatch() && it.Removes || v.isReady(it):
		return w.timestamp(), true
	case live == nil:
		return metav1.Time{}, false
	}
	if !it.Kstatus && w.isOutdated(v, it, live) { // kstatus waits by itself
		return metav1.Time{}, false
	}
	since, ok, err := it.Ready(live, v.asked(), w.now())
	w.reportLimit(v, it, err)

	return metav1.NewTime(since).Rfc3339Copy(), ok
}

// isOutdated reports whether the status of an object is of an earlier generation, and
// may still follow. If it does not for too long, readiness is judged all the same.
func (w *worker) isOutdated(v *view, it *item, live *unstructured.Unstructured) bool {
	m := it.memory
	seen, outdated := decide.Observe(m.observed, live, w.now())
	m.observed = seen
	if seen.Behind() && !outdated && !m.outdated {
		w.events.record(v.owner, it.Object, corev1.EventTypeWarning, "StatusOutdated", fmt.Sprintf("%s: status.observedGeneration is %d and the generation is %d for %s; readiness is judged by that status", it.Identity, seen.Observed, seen.Generation, decide.StatusPatience))
	}
	m.outdated = seen.Behind() && !outdated

	return outdated
}

// removed settles a resource that is gone, or will be.
func (w *worker) removed(k key, v *view, it *item, out outcome) {
	if out.waits != "" {
		s := enov1.ResourceState{}
		if out.stuck {
			text := clip(out.waits)
			s.ReconciliationError = &text
		}
		w.settle(v, it, s)

		return
	}
	m := it.memory
	if m.tracked {
		m.tracked = false
		w.watches.untrack(m.at, k)
	}
	m.desired, m.version, m.own, m.ours, m.judged = "", "", "", false, nil
	m.wrote.Store(false)
	now := w.timestamp()
	w.settle(v, it, enov1.ResourceState{Reconciled: true, Deleted: true, Ready: &now})
}

// failed settles a resource that the cluster could not be made to agree with.
func (w *worker) failed(v *view, it *item, err error, going bool) {
	tries := w.queue.NumRequeues(key{v.name, it.Identity})
	// Who was faster than overrides may have changed what they depend on, and that is
	// looked at first.
	if errors.Is(err, context.Canceled) || it.base != "" && apierrors.IsConflict(err) && tries < stuck {
		return
	}
	text := clip(err.Error())
	s := enov1.ResourceState{ReconciliationError: &text}
	if it.FailOpen && (!going || !it.Foreground) {
		now := w.timestamp()
		s.Reconciled, s.Ready, s.Deleted = true, &now, going
	}
	w.settle(v, it, s)
	if tries >= stuck || it.problem != nil {
		w.tell(v, it, "NotDelivered", text)
	}
}

// settle records a state of an item, also in a view that has replaced this one since.
func (w *worker) settle(v *view, it *item, s enov1.ResourceState) {
	if it.memory.ours && !s.Deleted {
		s.UID = it.memory.uid
	}
	for ; v != nil; v = v.successor() {
		w.note(v, v.items[it.place], s)
	}
}

// note has the state of an item of a view written, and others worked on that waited for
// it.
func (w *worker) note(v *view, it *item, s enov1.ResourceState) {
	s, changed, opened := v.settle(it, s)
	if changed {
		w.status.set(v, it, s)
		w.health.touch(v.name)
	}
	if changed && v.concernsWaiting(s) {
		w.requeue(v.name)
	}
	for _, next := range opened {
		if !hidden(next) {
			w.queue.Add(key{v.name, next.Identity})
		}
	}
}
