package apply

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/event"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	"github.com/arbor-control/arbor/internal/controller/delivery/watch"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// reportOnly reports whether changes of an object are reported and not corrected: it was
// delivered in this synthesis, by this process or by an earlier one, and is desired as it
// was then.
func (w *Worker) reportOnly(v *model.Composition, it *model.Item) bool {
	m := it.Memory
	switch {
	case w.Drift != decide.DriftReport:
		return false
	case m.Applied != "":
		return m.Applied == v.SliceNames && m.Desired == it.Desired()
	}

	return wasDelivered(v.StateOf(it))
}

// wasDelivered reports whether a state that another process may have left shows that an object was
// delivered. What was ready once stays so, and an object whose errors are passed over counts as
// reconciled: neither is enough. One that was deleted to be created again has another UID once it
// is.
func wasDelivered(s enov1.ResourceState) bool {
	isPending := s.Replaced != "" && s.Replaced == s.UID

	return s.Ready != nil && s.UID != "" && s.Reconciled && s.ReconciliationError == nil && !isPending
}

// inspect reports whether an object differs from what is desired, and writes nothing. If
// that cannot be found out, the object is inspected again later.
func (w *Worker) inspect(ctx context.Context, k queue.Key, v *model.Composition, it *model.Item, s situation) outcome {
	if wait := it.Memory.Inspected.Add(it.Memory.Pause()).Sub(w.Now()); wait > 0 {
		return outcome{live: s.Live, again: wait}
	}
	it.Memory.Inspected = w.Now()
	w.track(k, it, it.Object) // another client may repair it
	live, err := s.Live, error(nil)
	if !s.Looked {
		live, err = w.read(ctx, it)
	}
	differs := ""
	if err == nil {
		differs, err = w.differs(ctx, it, live)
	}
	if err != nil {
		it.Memory.Failures++
		logr.FromContextOrDiscard(ctx).V(1).Info("cannot compare an object; trying again", "composition", v.Name.String(), "object", it.String(), "error", it.Redact(err, live).Error())

		return outcome{live: live, again: it.Memory.Pause()}
	}
	it.Memory.Failures = 0
	if differs == "" && live != nil {
		w.remember(k, it, live)
		it.Memory.Applied = v.SliceNames
	}
	if v.Drift.Note(it.Identity, differs) {
		w.Status.Drifted(v)
		if differs != "" {
			w.Events.Record(v.Owner, it.Object, corev1.EventTypeWarning, enov1.ConditionDrifted, fmt.Sprintf("%s: %s", it.Identity, differs))
		}
	}

	return outcome{live: live}
}

// differs returns how an object differs from what is desired, "" if it does not.
func (w *Worker) differs(ctx context.Context, it *model.Item, live *unstructured.Unstructured) (string, error) {
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
		err = w.Remote.Patch(ctx, o, client.RawPatch(types.JSONPatchType, it.Ops), client.FieldOwner(w.Manager), client.DryRunAll)
	case it.Replace:
		o.SetResourceVersion(live.GetResourceVersion())
		o.SetUID(live.GetUID())
		err = w.Remote.Update(ctx, o, client.FieldOwner(w.Manager), client.DryRunAll)
	default:
		err = w.Remote.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.ForceOwnership, client.FieldOwner(w.Manager), client.DryRunAll)
	}
	if err != nil {
		return "", fmt.Errorf("cannot compare %s: %w", it.Identity, err)
	}
	paths := decide.Differences(live.Object, o.Object)
	if len(paths) == 0 {
		return "", nil
	}
	text := strings.Join(paths[:min(len(paths), event.MaxPaths)], ", ")
	if n := len(paths) - event.MaxPaths; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}

	return fmt.Sprintf("%s differs, last written by %s", text, cmp.Or(watch.LastWriter(live.GetManagedFields(), w.Manager), "an unknown client")), nil
}
