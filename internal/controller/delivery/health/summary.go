package health

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/decide/objecthealth"
)

// Summarize is the health of all items. complete is false while objects are not evaluated yet,
// which a worker has in its queue.
func (t *Tracker) Summarize(name types.NamespacedName, items []model.HealthItem, limit time.Duration) (s objecthealth.Summary, complete bool) {
	objects := make([]objecthealth.Object, 0, len(items))
	t.mu.Lock()
	c := t.of(name)
	now := t.Now()
	for _, it := range items {
		o := objecthealth.Object{Name: it.Name}
		switch found := c.objects[it.ID]; {
		case it.PassedOver:
		case it.Err != "":
			o.Health = objecthealth.Health{State: objecthealth.Degraded, Reason: model.ReasonNotDelivered, Message: it.Err}
		case !it.Applied:
			o.Health = objecthealth.Health{State: objecthealth.Progressing, Reason: model.ReasonNotApplied, Message: "it is not applied yet"}
		case objecthealth.RuleOf(it.Kind) == objecthealth.Applied:
		case found != nil && found.assessed:
			o.Health, o.Since = found.record.Health, found.record.Since
		case it.Runs:
			t.mu.Unlock()

			return objecthealth.Summary{}, false
		}
		objects = append(objects, o)
	}
	t.mu.Unlock()

	return objecthealth.Summarize(objects, now, limit), true
}

// Begin takes a composition whose condition is due, or puts it off.
func (t *Tracker) Begin(name types.NamespacedName) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.of(name)
	if wait = c.pause(t.Now()); wait > 0 {
		c.queued = true
		t.Writes.AddAfter(name, wait)

		return wait
	}
	c.queued = false

	return 0
}

// SetState records the state of a composition.
func (t *Tracker) SetState(name types.NamespacedName, s objecthealth.State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(name).state = s
}

// Written records that the condition of a composition was written.
func (t *Tracker) Written(name types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(name).written = t.Now()
}
