package health

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	"github.com/arbor-control/arbor/internal/controller/delivery/watch"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/delivery/observed"
	"github.com/arbor-control/arbor/internal/decide/objecthealth"
)

const (
	// Pause is the minimum time between two reads of one object for its health, and
	// between two writes of the condition of one composition.
	Pause = 5 * time.Second
	// unwatchedPause is how long an object that is healthy is not read if the manager may not watch its
	// kind.
	unwatchedPause = 2 * time.Minute
	// unhealthyPause is how long an object that is not healthy is not read if the manager may not watch
	// its kind.
	unhealthyPause = 15 * time.Second
	// healthTimeout is how long one read or write may take, and healthBackoff the longest time until one
	// that failed is tried again.
	healthTimeout = time.Minute
	healthBackoff = time.Minute
	// Gather is how long changes are gathered before a condition is written.
	Gather = time.Second
	// healthReaders is how many objects are read at a time, healthRate how many in a
	// second, and healthBurst how many at once. While manifests wait to be applied, a read
	// costs as much as healthBusyCost of them.
	healthReaders  = 2
	healthRate     = 20
	healthBurst    = 40
	healthBusyCost = 10
	// healthTries is how often a read is tried again before the next event is waited for.
	healthTries = 5
	// healthWriters is how many conditions are written at a time.
	healthWriters = 2
)

// A Tracker knows the health of the objects that were delivered. Workers of the
// delivery hand over every object that they have in hand anyway, mostly the answer to an
// apply. An object is read only if its watch has seen a later version, which mostly is
// a new status.
//
// It has its own lock and its own goroutines. While the lock is held, no other lock is
// taken but those of its queues and of the watches, which take none themselves, and no request is sent.
type Tracker struct {
	// get reads an object, nil if there is none. observe is what its watch knows.
	get     func(context.Context, Target) (*unstructured.Unstructured, error)
	watched func(at watch.Location, version string) observed.Object
	// admit waits until another object may be read.
	admit func(context.Context) error
	Now   func() time.Time

	// reads are objects whose health is out of date, writes compositions whose condition
	// may be.
	reads  workqueue.TypedRateLimitingInterface[queue.Key]
	Writes workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu           sync.Mutex
	compositions map[types.NamespacedName]*trackedComposition
}

// A trackedComposition is what is known about the health of one composition.
type trackedComposition struct {
	objects map[decide.Identity]*trackedObject
	// queued is true while the condition is waiting to be written.
	queued bool
	// written is when the condition was last written, and state what it was about.
	written time.Time
	state   objecthealth.State
}

// A Target is an object to be read.
type Target struct {
	Composition types.NamespacedName

	GVK schema.GroupVersionKind
	At  watch.Location
	// version is the last one that was evaluated, "" if none was.
	version string
}

// A trackedObject is what is known about the health of one object.
type trackedObject struct {
	Target

	record objecthealth.Record
	// assessed is true if the health is known. recheck has the object read although its
	// watch knows nothing new.
	assessed, recheck bool
	// read is when the object was last read.
	read time.Time
}

// NewTracker returns a tracker. get reads an object, and queued is how many manifests wait to be applied.
func NewTracker(w *watch.Watches, get func(context.Context, Target) (*unstructured.Unstructured, error), queued func() int) *Tracker {
	return &Tracker{
		get: get, watched: w.Observe, admit: healthAdmission(queued), Now: time.Now,
		reads: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[queue.Key](Pause, healthBackoff),
			workqueue.TypedRateLimitingQueueConfig[queue.Key]{Name: "delivery-health-reads"},
		),
		Writes: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](Gather, healthBackoff),
			workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Name: "delivery-health-writes"},
		),
		compositions: map[types.NamespacedName]*trackedComposition{},
	}
}

// healthAdmission returns a function that waits until another object may be read for its
// health. That is not urgent, so few are read while manifests wait to be applied: controllers
// write the status of objects at the same time.
func healthAdmission(queued func() int) func(context.Context) error {
	limiter := rate.NewLimiter(healthRate, healthBurst)

	return func(ctx context.Context) error {
		if queued() > 0 {
			return limiter.WaitN(ctx, healthBusyCost)
		}

		return limiter.Wait(ctx)
	}
}

// of is what is known about a composition. The lock is held.
func (t *Tracker) of(name types.NamespacedName) *trackedComposition {
	c := t.compositions[name]
	if c == nil {
		c = &trackedComposition{objects: map[decide.Identity]*trackedObject{}}
		t.compositions[name] = c
	}

	return c
}

// Observe takes note of an object that a worker has finished with. live is the object, nil if
// the worker did not need it.
func (t *Tracker) Observe(k queue.Key, r *decide.Resource, m *model.Memory, live *unstructured.Unstructured) {
	if r.IsPatch() || objecthealth.RuleOf(r.GVK.GroupKind()) == objecthealth.Applied {
		return
	}
	target, changed := t.take(k, r, m, live)
	if changed {
		t.Enqueue(k.Composition)
	}
	if live == nil && m.Watched && !r.DisableReconciliation && t.isStale(target) {
		t.reads.Add(k)
	}
}

// take records an object, and returns whether its health is another than before.
func (t *Tracker) take(k queue.Key, r *decide.Resource, m *model.Memory, live *unstructured.Unstructured) (_ Target, changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.of(k.Composition)
	o := c.objects[k.Object]
	if o == nil {
		o = &trackedObject{}
		c.objects[k.Object] = o
	}
	o.Composition, o.GVK = k.Composition, r.GVK
	if m.Watched {
		o.At = m.Location
	}
	switch {
	case r.DisableReconciliation: // an override disables it, for now
		changed = !o.assessed || o.record.State != objecthealth.Current
		o.record, o.assessed, o.recheck = objecthealth.Record{}, true, false
	case live != nil && !observed.Older(live.GetResourceVersion(), o.version):
		changed = t.assess(k, o, live)
	}

	return o.Target, changed
}

// assess records the health of an object, and returns whether it is another than before.
// The lock is held.
func (t *Tracker) assess(k queue.Key, o *trackedObject, live *unstructured.Unstructured) bool {
	before, known := o.record, o.assessed
	o.record, o.assessed, o.recheck, o.version = o.record.Assess(live, t.Now()), true, false, live.GetResourceVersion()
	if wait := o.record.Recheck(); wait > 0 {
		o.recheck = true
		t.reads.AddAfter(k, wait)
	}
	t.poll(k, o)

	return !known || before.Health != o.record.Health
}

// isStale reports whether an object has to be read: its watch has seen a later version than the one
// that was evaluated, with a status.
func (t *Tracker) isStale(target Target) bool {
	seen := t.watched(target.At, target.version)
	switch {
	case target.version == "":
		return true
	case !seen.Known:
		return false
	case !seen.Present:
		return true
	case seen.Version == target.version || observed.Older(seen.Version, target.version):
		return false
	}

	return !seen.NoStatus || objecthealth.RuleOf(target.GVK.GroupKind()) == objecthealth.Always
}

// Forget ends the tracking of an object.
func (t *Tracker) Forget(k queue.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.compositions[k.Composition]; c != nil {
		delete(c.objects, k.Object)
	}
}

// Drop ends the tracking of a composition.
func (t *Tracker) Drop(name types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.compositions, name)
}

// Unhealthy counts the compositions with objects that are degraded or have failed.
func (t *Tracker) Unhealthy() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, c := range t.compositions {
		if c.state >= objecthealth.Degraded {
			n++
		}
	}

	return n
}

// Enqueue has the condition of a composition written, unless it waits for that already.
func (t *Tracker) Enqueue(name types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.of(name)
	if c.queued {
		return
	}
	c.queued = true
	t.Writes.AddAfter(name, max(Gather, c.pause(t.Now())))
}

// pause is how long the condition must not be written.
func (c *trackedComposition) pause(now time.Time) time.Duration {
	if c.written.IsZero() {
		return 0
	}

	return c.written.Add(Pause).Sub(now)
}

// Run reads objects, and has conditions written, until ctx ends.
func (t *Tracker) Run(ctx context.Context, write func(context.Context, types.NamespacedName) error) {
	var all sync.WaitGroup
	for range healthReaders {
		all.Go(func() { serve(ctx, t.reads, t.one) })
	}
	for range healthWriters {
		all.Go(func() { serve(ctx, t.Writes, write) })
	}
	<-ctx.Done()
	t.reads.ShutDown()
	t.Writes.ShutDown()
	all.Wait()
}

// one reads an object and evaluates its health, if that is still necessary.
func (t *Tracker) one(ctx context.Context, k queue.Key) error {
	if _, wait, ok := t.next(k); !ok {
		return nil
	} else if wait > 0 {
		t.reads.AddAfter(k, wait)

		return nil
	}
	if err := t.admit(ctx); err != nil {
		return fmt.Errorf("cannot read %s: too many objects change: %w", k.Object, err)
	}
	target, _, ok := t.next(k)
	if !ok {
		return nil // a worker has handed over the object since
	}
	t.reading(k)
	live, err := t.get(ctx, target)
	if err != nil && t.reads.NumRequeues(k) >= healthTries {
		logr.FromContextOrDiscard(ctx).V(1).Info("cannot read an object; its health is reported as it was", "object", k.Object.String(), "error", err.Error())

		return nil
	}
	if err != nil {
		return err
	}
	if t.recordRead(k, target, live) {
		t.Enqueue(k.Composition)
	}

	return nil
}

// next is what to read of an object, and how long to wait before. ok is false if there is
// nothing to read.
func (t *Tracker) next(k queue.Key) (target Target, wait time.Duration, ok bool) {
	t.mu.Lock()
	var recheck bool
	if c := t.compositions[k.Composition]; c != nil {
		if o := c.objects[k.Object]; o != nil {
			target, recheck, ok = o.Target, o.recheck, true
			if !o.read.IsZero() {
				wait = o.read.Add(Pause).Sub(t.Now())
			}
		}
	}
	t.mu.Unlock()

	return target, wait, ok && (recheck || t.isStale(target) || !t.watched(target.At, target.version).Known)
}

// poll has an object read again after some time if its watch does not know it then: the manager may
// not watch its kind, so that no event shows that its health has changed. The lock is held.
func (t *Tracker) poll(k queue.Key, o *trackedObject) {
	switch {
	case t.watched(o.At, o.version).Known:
	case o.record.State == objecthealth.Current:
		t.reads.AddAfter(k, unwatchedPause)
	default:
		t.reads.AddAfter(k, unhealthyPause)
	}
}

// reading notes that an object is read now.
func (t *Tracker) reading(k queue.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.compositions[k.Composition]; c != nil && c.objects[k.Object] != nil {
		c.objects[k.Object].read = t.Now()
	}
}

// recordRead records what was read, and returns whether the health is another than before. A
// worker may have recorded a later version.
func (t *Tracker) recordRead(k queue.Key, target Target, live *unstructured.Unstructured) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.compositions[k.Composition]
	if c == nil || c.objects[k.Object] == nil {
		return false
	}
	o := c.objects[k.Object]
	if live != nil {
		return !observed.Older(live.GetResourceVersion(), o.version) && t.assess(k, o, live)
	}
	if o.version != target.version {
		return false
	}
	before, known := o.record, o.assessed
	o.record, o.assessed, o.recheck = o.record.Missing(t.Now()), true, false
	t.poll(k, o)

	return !known || before.Health != o.record.Health
}
