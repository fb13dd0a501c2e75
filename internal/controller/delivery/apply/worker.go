package apply

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"github.com/arbor-control/arbor/internal/controller/delivery/env"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	"github.com/arbor-control/arbor/internal/controller/delivery/registry"
	"github.com/arbor-control/arbor/internal/controller/delivery/watch"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/delivery/observed"
	"github.com/arbor-control/arbor/internal/ownership"
)

const (
	// timeout is how long one resource may take.
	timeout = time.Minute
	// retryAfter is how often an object is read that another client has to change first. Mostly an
	// event of a watch comes earlier.
	retryAfter = 15 * time.Second
	// jitter of reconcile intervals, so that not all come at once.
	jitter = 0.1
)

// A Worker makes the objects of the cluster agree with manifests.
type Worker struct {
	*env.Environment
	*registry.Registry

	Watches   objectWatches
	Metadata  metadata.Interface
	Discovery discovery.DiscoveryInterface
	Migrator  *ownership.Migrator
	Migration string
	// ForbiddenGrace is how long objects that may not be deleted hold up a terminating namespace.
	ForbiddenGrace time.Duration
}

// objectWatches know what has become of the objects that were applied.
type objectWatches interface {
	// Track has an object watched for a resource, and untrack ends that.
	Track(at watch.Location, who queue.Key)
	Untrack(at watch.Location, who queue.Key)
	// Observe returns what is known about an object that was last written as a version.
	Observe(at watch.Location, version string) observed.Object
	// Written records that a version of an object is as a resource wants it, and disputed reports
	// whether another resource has written it since.
	Written(at watch.Location, version string, who queue.Key)
	IsContested(at watch.Location, who queue.Key) bool
}

// Run takes resources from the queue until it is shut down.
func (w *Worker) Run(ctx context.Context) {
	for {
		k, shutdown := w.Queue.Get()
		if shutdown {
			return
		}
		w.process(ctx, k)
		w.Queue.Done(k)
	}
}

// process works on one resource, and sees to it that it comes again if need be.
func (w *Worker) process(ctx context.Context, k queue.Key) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	w.forget(k)
	v, it := w.Find(k)
	if it == nil || w.outdated(v, it) {
		w.Queue.Forget(k)

		return
	}
	ctx = v.AsAccount(ctx)
	do := w.deliver
	if !v.Open(it) {
		if !v.Keeps(it) {
			w.Queue.Forget(k)

			return
		}
		do = w.keep
	}
	end := w.Metrics.Begin()
	again, err := do(ctx, k, v, it)
	end(err)
	switch {
	case err != nil && ctx.Err() == nil:
		logr.FromContextOrDiscard(ctx).V(1).Info("cannot deliver", "composition", k.Composition.String(), "object", k.Object.String(), "error", err.Error())
		w.Queue.AddRateLimited(k)
	case err != nil:
		w.Queue.AddRateLimited(k)
	default:
		w.Queue.Forget(k)
		if again > 0 {
			w.Queue.AddAfter(k, again)
		}
	}
}

// deliver gathers what is known about a resource, decides, and does it.
func (w *Worker) deliver(ctx context.Context, k queue.Key, v *model.Composition, it *model.Item) (time.Duration, error) {
	going := v.Deleting || it.Tombstone
	it, known, err := w.override(ctx, k, v, it.Unpacked())
	if err != nil {
		return w.handleError(ctx, k, v, it, known.Live, err)
	}
	if err := w.checkNamespace(it, going); err != nil {
		w.settleFailure(v, it, err, going)

		return 0, err
	}
	s := w.gatherKnown(v, it, known)
	if hold := max(w.holdContested(ctx, v, it, s), w.holdOverrides(v, it, s)); hold > 0 {
		return hold, nil
	}
	a, s, err := w.decide(ctx, v, it, s)
	var out outcome
	if err == nil {
		out, err = w.act(ctx, k, v, it, a, s)
	}
	if err != nil {
		it.Memory.Evaluated = nil

		return w.handleError(ctx, k, v, it, s.Live, err)
	}
	w.allow(v, it)
	if going {
		w.Health.Forget(k)
		w.settleRemoved(k, v, it, out)

		return out.again, nil
	}
	if err := w.persistRemoval(ctx, v, it, out); err != nil {
		return 0, err
	}
	w.Health.Observe(k, it.Resource, it.Memory, out.live)

	return w.settleDelivered(v, it, out).again, nil
}

// A situation is what is known about a resource, with where it is known from.
type situation struct {
	decide.Situation

	seen observed.Object
}

// gatherKnown sends no request: it gathers what is known already.
func (w *Worker) gatherKnown(v *model.Composition, it *model.Item, known decide.Situation) situation {
	s := situation{Situation: known}
	s.Deleting, s.Abandoned, s.Manager = v.Deleting, v.Abandoned, w.Manager
	if v.Deleting || it.Tombstone {
		s.Taken, s.Unread = w.IsWanted(v.Name, it.Identity), w.Unread(v)

		return s
	}
	m := it.Memory
	if it.IsPatch() && it.Removes {
		s.Ran, s.Removed = v.Ran(it), m.RemovedIn(v.SliceNames)

		return s
	}
	s.ReportOnly = w.reportOnly(v, it)
	if m.Desired != "" && m.Watched {
		w.observe(v, it, &s)
	}

	return s
}

// observe adds what the watch of an object knows.
func (w *Worker) observe(v *model.Composition, it *model.Item, s *situation) {
	m := it.Memory
	s.seen = w.Watches.Observe(m.Location, m.Version)
	s.Going = s.seen.IsTerminating(m.Version)
	s.Replacing = s.Going && s.seen.UID == v.Replaced(it)
	same := w.isUnchanged(v, it, s)
	if same && observed.Older(m.Version, s.seen.Version) {
		m.Version = s.seen.Version
	}
	if m.Desired == it.Desired() {
		s.InSync = decide.NeedsNoWrite(w.Drift, same, m.Applied == v.SliceNames, w.due(it))
		s.Drifted = !same && !s.InSync
	}
}

// isUnchanged reports whether an object is as it was written last, and stays.
func (w *Worker) isUnchanged(v *model.Composition, it *model.Item, s *situation) bool {
	return it.Memory.IsSame(s.seen) && !s.Going && !w.Watches.IsContested(it.Memory.Location, queue.Key{Composition: v.Name, Object: it.Identity})
}

// due reports whether an object is reconciled now even if it was not changed.
func (w *Worker) due(it *model.Item) bool {
	return it.IsDue(it.Memory.Due, w.Now())
}

// next is when it will be. What happens in between does not put it off.
func (w *Worker) next(it *model.Item) time.Duration {
	if w.due(it) {
		wait := float64(it.Interval) * (1 + jitter*rand.Float64()) //nolint:gosec // it only spreads load
		it.Memory.Due = w.Now().Add(time.Duration(wait))
	}

	return max(it.Memory.Due.Sub(w.Now()), time.Millisecond)
}

// holdContested is how long an object must be left alone that another client keeps changing.
func (w *Worker) holdContested(ctx context.Context, v *model.Composition, it *model.Item, s situation) time.Duration {
	hold := it.Memory.Damper.HoldContested(s.Drifted, w.Now())
	if hold == 0 {
		return 0
	}
	err := fmt.Errorf("%s keeps changing it: it was corrected %d times, and is left alone for a while; let only one client write it", w.otherWriter(ctx, it, s), it.Memory.Damper.Rounds())
	w.settleFailure(v, it, err, false)
	w.report(v, it, "Contested", err.Error())

	return hold
}

// otherWriter is the client that keeps changing an object. If we own nothing of the object any
// more, the watch remembers no names, so the object is read, once for each time that it is left
// alone. A client that deletes it leaves no name.
func (w *Worker) otherWriter(ctx context.Context, it *model.Item, s situation) string {
	m := it.Memory
	if m.OtherWriter == "" {
		m.OtherWriter = s.seen.Writer
	}
	if m.OtherWriter == "" && s.seen.Present {
		if live, err := w.read(ctx, it); err == nil && live != nil {
			m.OtherWriter = watch.LastWriter(live.GetManagedFields(), w.Manager)
		}
	}

	return cmp.Or(m.OtherWriter, "another client")
}

// decide decides, with the live object where it is needed.
func (w *Worker) decide(ctx context.Context, v *model.Composition, it *model.Item, s situation) (decide.Action, situation, error) {
	s.Ours, s.Patched = it.Memory.IsOwned(s.Live), isPatched(it, s)
	a := decide.Decide(it.Resource, s.Situation)
	unready := a.Verb == decide.Nothing && it.Watched() && !v.IsReady(it)
	if s.Looked || a.Verb != decide.Look && !unready {
		return a, s, nil
	}
	live, err := w.read(ctx, it)
	if err != nil {
		return a, s, err
	}
	s.Looked, s.Live, s.Ours = true, live, it.Memory.IsOwned(live)
	s.Patched = isPatched(it, s)

	return decide.Decide(it.Resource, s.Situation), s, nil
}
