package delivery

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/internal/decide/objecthealth"
)

// summarize is the health of all items. complete is false while objects are not judged
// yet, which a worker has in its queue.
func (t *healthTracker) summarize(name types.NamespacedName, items []countedItem, limit time.Duration) (s objecthealth.Summary, complete bool) {
	objects := make([]objecthealth.Object, 0, len(items))
	t.mu.Lock()
	c := t.of(name)
	now := t.now()
	for _, it := range items {
		o := objecthealth.Object{Name: it.name}
		switch found := c.objects[it.id]; {
		case it.passedOver:
		case it.err != "":
			o.Health = objecthealth.Health{State: objecthealth.Degraded, Reason: reasonNotDelivered, Message: it.err}
		case !it.applied:
			o.Health = objecthealth.Health{State: objecthealth.Progressing, Reason: reasonNotApplied, Message: "it is not applied yet"}
		case objecthealth.RuleOf(it.kind) == objecthealth.Applied:
		case found != nil && found.judged:
			o.Health, o.Since = found.record.Health, found.record.Since
		case it.runs:
			t.mu.Unlock()

			return objecthealth.Summary{}, false
		}
		objects = append(objects, o)
	}
	t.mu.Unlock()

	return objecthealth.Summarize(objects, now, limit), true
}

// begin takes a composition whose condition is due, or puts it off.
func (t *healthTracker) begin(name types.NamespacedName) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.of(name)
	if wait = c.pause(t.now()); wait > 0 {
		c.queued = true
		t.writes.AddAfter(name, wait)

		return wait
	}
	c.queued = false

	return 0
}

// became records the state of a composition.
func (t *healthTracker) became(name types.NamespacedName, s objecthealth.State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(name).state = s
}

// wrote records that the condition of a composition was written.
func (t *healthTracker) wrote(name types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(name).written = t.now()
}
