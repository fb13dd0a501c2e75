package delivery

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// What is done about objects that other clients change after they were delivered.
const (
	// DriftCorrect writes them again.
	DriftCorrect = "correct"
	// DriftReport reports them until there is another synthesis.
	DriftReport = "report"
	// DriftInterval writes them again at their reconcile interval, if they have one.
	DriftInterval = "interval"
)

const (
	// inspectPause is the minimum time between two inspections of one object: each costs
	// two requests, and a controller may write its status often. It doubles with every
	// failure, up to maxInspectPause.
	inspectPause    = 5 * time.Second
	maxInspectPause = 5 * time.Minute
)

// A driftMemory is what is known about the drift of an object.
type driftMemory struct {
	// applied is the synthesis that was applied last, or that the object agreed with.
	applied string
	// inspected is when the object was last inspected.
	inspected time.Time
	// failures counts inspections that failed since the last one that did not.
	failures int
}

// pause is the minimum time until the next inspection.
func (m *driftMemory) pause() time.Duration {
	pause := inspectPause
	for range m.failures {
		if pause *= 2; pause >= maxInspectPause {
			return maxInspectPause
		}
	}

	return pause
}

// reportOnly reports whether changes of an object are reported and not corrected: it was
// delivered in this synthesis, by this process or by an earlier one, and is desired as it
// was then.
func (d *Deliverer) reportOnly(v *view, it *item) bool {
	m := it.memory
	switch {
	case d.drift != DriftReport:
		return false
	case m.applied != "":
		return m.applied == v.slices && m.desired == it.desires()
	}

	return wasDelivered(v.stateOf(it))
}

// wasDelivered reports whether a state that another process may have left says that an
// object was delivered. What was ready once stays so, and an object whose errors are passed
// over counts as reconciled: neither is enough. One that was deleted to be created again has
// another UID once it is.
func wasDelivered(s enov1.ResourceState) bool {
	isPending := s.Replaced != "" && s.Replaced == s.UID

	return s.Ready != nil && s.UID != "" && s.Reconciled && s.ReconciliationError == nil && !isPending
}

// inspect reports whether an object differs from what is desired, and writes nothing. If
// that cannot be found out, the object is inspected again later.
func (d *Deliverer) inspect(ctx context.Context, k key, v *view, it *item, s situation) outcome {
	if wait := it.memory.inspected.Add(it.memory.pause()).Sub(d.now()); wait > 0 {
		return outcome{live: s.Live, again: wait}
	}
	it.memory.inspected = d.now()
	d.track(k, it, it.Object) // another client may repair it
	live, err := s.Live, error(nil)
	if !s.Looked {
		live, err = d.read(ctx, it)
	}
	differs := ""
	if err == nil {
		differs, err = d.differs(ctx, it, live)
	}
	if err != nil {
		it.memory.failures++
		logr.FromContextOrDiscard(ctx).V(1).Info("cannot compare an object; trying again", "composition", v.name.String(), "object", it.String(), "error", it.discreet(err, live).Error())

		return outcome{live: live, again: it.memory.pause()}
	}
	it.memory.failures = 0
	if differs == "" && live != nil {
		d.remember(k, it, live)
		it.memory.applied = v.slices
	}
	if v.drift.note(it.Identity, differs) {
		d.status.drifted(v)
		if differs != "" && d.courtesy.Allow() {
			d.recorder.Eventf(v.owner, it.Object, corev1.EventTypeWarning, enov1.ConditionDrifted, action, "%s", clip(fmt.Sprintf("%s: %s", it.Identity, differs)))
		}
	}

	return outcome{live: live}
}

// differs returns how an object differs from what is desired, "" if it does not.
func (d *Deliverer) differs(ctx context.Context, it *item, live *unstructured.Unstructured) (string, error) {
	switch {
	case live == nil && it.IsPatch():
		return "", nil // there is nothing to be patched
	case live == nil:
		return "it does not exist", nil
	case it.DisableUpdates:
		return "", nil
	}
	o := it.Object.DeepCopy()
	var err error
	switch {
	case it.IsPatch():
		err = d.remote.Patch(ctx, o, client.RawPatch(types.JSONPatchType, it.Ops), client.FieldOwner(d.manager), client.DryRunAll)
	case it.Replace:
		o.SetResourceVersion(live.GetResourceVersion())
		o.SetUID(live.GetUID())
		err = d.remote.Update(ctx, o, client.FieldOwner(d.manager), client.DryRunAll)
	default:
		err = d.remote.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.ForceOwnership, client.FieldOwner(d.manager), client.DryRunAll)
	}
	if err != nil {
		return "", fmt.Errorf("cannot compare %s: %w", it.Identity, err)
	}
	paths := decide.Differences(live.Object, o.Object)
	if len(paths) == 0 {
		return "", nil
	}
	text := strings.Join(paths[:min(len(paths), maxPaths)], ", ")
	if n := len(paths) - maxPaths; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}

	return fmt.Sprintf("%s differs, last written by %s", text, cmp.Or(writerOf(live.GetManagedFields(), d.manager), "an unknown client")), nil
}

// A driftReport is how objects differ from the current synthesis. It may be used by any
// number of goroutines.
type driftReport struct {
	mu  sync.Mutex
	all map[decide.Identity]string
}

func newDriftReport() *driftReport { return &driftReport{all: map[decide.Identity]string{}} }

// note records how an object differs, and returns whether that is new.
func (r *driftReport) note(id decide.Identity, differs string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all[id] == differs {
		return false
	}
	r.all[id] = differs
	if differs == "" {
		delete(r.all, id)
	}

	return true
}

// message names the objects that differ, "" if there are none.
func (r *driftReport) message() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) == 0 {
		return ""
	}
	var all []string
	for id, differs := range r.all {
		all = append(all, fmt.Sprintf("%s: %s", id, differs))
	}
	slices.Sort(all)

	return clip(fmt.Sprintf("%d objects are not as they were delivered and are not corrected (--drift=%s): %s", len(r.all), DriftReport, joined(all)))
}

// showDrift has the condition Drifted of a new view written. After a restart, objects are
// inspected first, or the condition would disappear for a moment.
func (d *Deliverer) showDrift(v, old *view, c *enov1.Composition) {
	switch {
	case meta.FindStatusCondition(c.Status.Conditions, enov1.ConditionDrifted) == nil:
	case old == nil && d.drift == DriftReport:
		time.AfterFunc(2*inspectPause, func() { d.status.drifted(v) })
	default:
		d.status.drifted(v)
	}
}

// isShared reports whether another delivery has a part of the composition, so that
// neither knows of all drift.
func (v *view) isShared() bool {
	return v.elsewhere || slices.ContainsFunc(v.items, func(it *item) bool { return it.elsewhere })
}

// writeDrift writes the condition Drifted of a composition, and removes it when there is
// no drift.
func (w *statusWriter) writeDrift(ctx context.Context, v *view) error {
	c := &enov1.Composition{}
	if err := w.client.Get(ctx, v.name, c); err != nil {
		return client.IgnoreNotFound(err)
	}
	if c.UID != v.uid || c.Status.CurrentSynthesis == nil || slicesOf(c.Status.CurrentSynthesis) != v.slices || v.isShared() {
		return nil
	}
	next := c.DeepCopy()
	var changed bool
	if message := v.drift.message(); message != "" {
		changed = meta.SetStatusCondition(&next.Status.Conditions, metav1.Condition{
			Type: enov1.ConditionDrifted, Status: metav1.ConditionTrue, Reason: enov1.ReasonObjectsChanged, Message: message, ObservedGeneration: c.Generation,
		})
	} else {
		changed = meta.RemoveStatusCondition(&next.Status.Conditions, enov1.ConditionDrifted)
	}
	if !changed {
		return nil
	}
	err := w.client.Status().Patch(ctx, next, client.MergeFromWithOptions(c, client.MergeFromWithOptimisticLock{}))
	if err != nil && !apierrors.IsNotFound(err) {
		w.metrics.writeErrors.WithLabelValues(opPatch).Inc()

		return fmt.Errorf("cannot write condition %s of composition %s: %w", enov1.ConditionDrifted, v.name, err)
	}

	return nil
}
