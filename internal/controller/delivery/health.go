package delivery

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

	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/objecthealth"
)

const (
	// healthPause is the minimum time between two reads of one object for its health, and
	// between two writes of the condition of one composition.
	healthPause = 5 * time.Second
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
	// healthGather is how long changes are gathered before a condition is written.
	healthGather = time.Second
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

// A healthTracker knows the health of the objects that were delivered. Workers of the
// delivery hand over every object that they have in hand anyway, mostly the answer to an
// apply. An object is read only if its watch has seen a later version, which mostly is
// a new status.
//
// It has its own lock and its own goroutines. While the lock is held, no other lock is
// taken but those of its queues and of the watches, which take none themselves, and no request is sent.
type healthTracker struct {
	// get reads an object, nil if there is none. observe is what its watch knows.
	get     func(context.Context, healthTarget) (*unstructured.Unstructured, error)
	observe func(at place, version string) observation
	// admit waits until another object may be read.
	admit func(context.Context) error
	now   func() time.Time

	// reads are objects whose health is out of date, writes compositions whose condition
	// may be.
	reads  workqueue.TypedRateLimitingInterface[key]
	writes workqueue.TypedRateLimitingInterface[types.NamespacedName]

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

// A healthTarget is an object to be read.
type healthTarget struct {
	composition types.NamespacedName

	gvk schema.GroupVersionKind
	at  place
	// version is the last one that was judged, "" if none was.
	version string
}

// A trackedObject is what is known about the health of one object.
type trackedObject struct {
	healthTarget

	record objecthealth.Record
	// judged is true if the health is known. recheck has the object read although its
	// watch knows nothing new.
	judged, recheck bool
	// read is when the object was last read.
	read time.Time
}

func newHealthTracker(w *watches, get func(context.Context, healthTarget) (*unstructured.Unstructured, error), queued func() int) *healthTracker {
	return &healthTracker{
		get: get, observe: w.observe, admit: healthAdmission(queued), now: time.Now,
		reads: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[key](healthPause, healthBackoff),
			workqueue.TypedRateLimitingQueueConfig[key]{Name: "delivery-health-reads"},
		),
		writes: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](healthGather, healthBackoff),
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
func (t *healthTracker) of(name types.NamespacedName) *trackedComposition {
	c := t.compositions[name]
	if c == nil {
		c = &trackedComposition{objects: map[decide.Identity]*trackedObject{}}
		t.compositions[name] = c
	}

	return c
}

// saw takes note of an object that a worker has finished with. live is the object, nil if
// the worker did not need it.
func (t *healthTracker) saw(k key, r *decide.Resource, m *memory, live *unstructured.Unstructured) {
	if r.IsPatch() || objecthealth.RuleOf(r.GVK.GroupKind()) == objecthealth.Applied {
		return
	}
	target, changed := t.take(k, r, m, live)
	if changed {
		t.touch(k.composition)
	}
	if live == nil && m.tracked && !r.DisableReconciliation && t.isStale(target) {
		t.reads.Add(k)
	}
}

// take records an object, and returns whether its health is another than before.
func (t *healthTracker) take(k key, r *decide.Resource, m *memory, live *unstructured.Unstructured) (_ healthTarget, changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.of(k.composition)
	o := c.objects[k.object]
	if o == nil {
		o = &trackedObject{}
		c.objects[k.object] = o
	}
	o.composition, o.gvk = k.composition, r.GVK
	if m.tracked {
		o.at = m.at
	}
	switch {
	case r.DisableReconciliation: // an override says so, for now
		changed = !o.judged || o.record.State != objecthealth.Current
		o.record, o.judged, o.recheck = objecthealth.Record{}, true, false
	case live != nil && !older(live.GetResourceVersion(), o.version):
		changed = t.judge(k, o, live)
	}

	return o.healthTarget, changed
}

// judge records the health of an object, and returns whether it is another than before.
// The lock is held.
func (t *healthTracker) judge(k key, o *trackedObject, live *unstructured.Unstructured) bool {
	before, known := o.record, o.judged
	o.record, o.judged, o.recheck, o.version = o.record.Assess(live, t.now()), true, false, live.GetResourceVersion()
	if wait := o.record.Recheck(); wait > 0 {
		o.recheck = true
		t.reads.AddAfter(k, wait)
	}
	t.poll(k, o)

	return !known || before.Health != o.record.Health
}

// isStale reports whether an object has to be read: its watch has seen a later version
// than the one that was judged, with a status.
func (t *healthTracker) isStale(target healthTarget) bool {
	seen := t.observe(target.at, target.version)
	switch {
	case target.version == "":
		return true
	case !seen.known:
		return false
	case !seen.present:
		return true
	case seen.version == target.version || older(seen.version, target.version):
		return false
	}

	return !seen.stateless || objecthealth.RuleOf(target.gvk.GroupKind()) == objecthealth.Always
}

// forget ends the tracking of an object.
func (t *healthTracker) forget(k key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.compositions[k.composition]; c != nil {
		delete(c.objects, k.object)
	}
}

// drop ends the tracking of a composition.
func (t *healthTracker) drop(name types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.compositions, name)
}

// unhealthy counts the compositions with objects that are degraded or have failed.
func (t *healthTracker) unhealthy() int {
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

// touch has the condition of a composition written, unless it waits for that already.
func (t *healthTracker) touch(name types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.of(name)
	if c.queued {
		return
	}
	c.queued = true
	t.writes.AddAfter(name, max(healthGather, c.pause(t.now())))
}

// pause is how long the condition must not be written.
func (c *trackedComposition) pause(now time.Time) time.Duration {
	if c.written.IsZero() {
		return 0
	}

	return c.written.Add(healthPause).Sub(now)
}

// run reads objects, and has conditions written, until ctx ends.
func (t *healthTracker) run(ctx context.Context, write func(context.Context, types.NamespacedName) error) {
	var all sync.WaitGroup
	for range healthReaders {
		all.Go(func() { serve(ctx, t.reads, t.one) })
	}
	for range healthWriters {
		all.Go(func() { serve(ctx, t.writes, write) })
	}
	<-ctx.Done()
	t.reads.ShutDown()
	t.writes.ShutDown()
	all.Wait()
}

// serve takes what is in a queue until it is shut down.
func serve[T comparable](ctx context.Context, queue workqueue.TypedRateLimitingInterface[T], do func(context.Context, T) error) {
	for {
		item, shutdown := queue.Get()
		if shutdown {
			return
		}
		bounded, cancel := context.WithTimeout(ctx, healthTimeout)
		if err := do(bounded, item); err != nil {
			logr.FromContextOrDiscard(ctx).V(1).Info("cannot report health; trying again", "item", item, "error", err.Error())
			queue.AddRateLimited(item)
		} else {
			queue.Forget(item)
		}
		cancel()
		queue.Done(item)
	}
}

// one reads an object and judges it, if that is still necessary.
func (t *healthTracker) one(ctx context.Context, k key) error {
	if _, wait, ok := t.next(k); !ok {
		return nil
	} else if wait > 0 {
		t.reads.AddAfter(k, wait)

		return nil
	}
	if err := t.admit(ctx); err != nil {
		return fmt.Errorf("cannot read %s: too many objects change: %w", k.object, err)
	}
	target, _, ok := t.next(k)
	if !ok {
		return nil // a worker has handed over the object since
	}
	t.reading(k)
	live, err := t.get(ctx, target)
	if err != nil && t.reads.NumRequeues(k) >= healthTries {
		logr.FromContextOrDiscard(ctx).V(1).Info("cannot read an object; its health is reported as it was", "object", k.object.String(), "error", err.Error())

		return nil
	}
	if err != nil {
		return err
	}
	if t.took(k, target, live) {
		t.touch(k.composition)
	}

	return nil
}

// next is what to read of an object, and how long to wait before. ok is false if there is
// nothing to read.
func (t *healthTracker) next(k key) (target healthTarget, wait time.Duration, ok bool) {
	t.mu.Lock()
	var recheck bool
	if c := t.compositions[k.composition]; c != nil {
		if o := c.objects[k.object]; o != nil {
			target, recheck, ok = o.healthTarget, o.recheck, true
			if !o.read.IsZero() {
				wait = o.read.Add(healthPause).Sub(t.now())
			}
		}
	}
	t.mu.Unlock()

	return target, wait, ok && (recheck || t.isStale(target) || !t.observe(target.at, target.version).known)
}

// poll has an object read again after some time if its watch does not know it then: the manager may not
// watch its kind, so that no event tells that its health has changed. The lock is held.
func (t *healthTracker) poll(k key, o *trackedObject) {
	switch {
	case t.observe(o.at, o.version).known:
	case o.record.State == objecthealth.Current:
		t.reads.AddAfter(k, unwatchedPause)
	default:
		t.reads.AddAfter(k, unhealthyPause)
	}
}

// reading notes that an object is read now.
func (t *healthTracker) reading(k key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.compositions[k.composition]; c != nil && c.objects[k.object] != nil {
		c.objects[k.object].read = t.now()
	}
}

// took records what was read, and returns whether the health is another than before. A
// worker may have recorded a later version.
func (t *healthTracker) took(k key, target healthTarget, live *unstructured.Unstructured) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.compositions[k.composition]
	if c == nil || c.objects[k.object] == nil {
		return false
	}
	o := c.objects[k.object]
	if live != nil {
		return !older(live.GetResourceVersion(), o.version) && t.judge(k, o, live)
	}
	if o.version != target.version {
		return false
	}
	before, known := o.record, o.judged
	o.record, o.judged, o.recheck = o.record.Missing(t.now()), true, false
	t.poll(k, o)

	return !known || before.Health != o.record.Health
}
