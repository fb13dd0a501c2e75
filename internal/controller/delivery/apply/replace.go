package apply

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/event"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// replacePoll is how often it is checked whether an object is gone that is created again. The
// watch mostly reports it earlier.
const replacePoll = retryAfter / 10

// replaceGrace is how long the deletion of an object that is created again may take before it is
// reported as an error. Until then the synthesis has not failed.
const replaceGrace = time.Minute

// deleteToRecreate deletes an object whose change was rejected because a field is immutable, so that
// it is created again when it is gone. because is the rejection. Before anything is deleted,
// the server must accept the replacement, and the status must record the deletion: it happens
// once per synthesis, also if this process ends in between.
func (w *Worker) deleteToRecreate(ctx context.Context, k queue.Key, v *model.Composition, it *model.Item, because error) (outcome, error) {
	live, err := w.read(ctx, it)
	if err != nil {
		return outcome{}, err
	}
	a := decide.DecideReplacement(it.Resource, decide.Rejection{
		Live: live, Ours: it.Memory.IsOwned(live), Manager: w.Manager, Replaced: v.Replaced(it),
		Sharer: w.OtherOwner(v.Name, it.Identity), Unread: w.Unread(v),
	})
	switch a.Verb {
	case decide.Wait:
		w.track(k, it, it.Object)

		return w.awaitRemoval(it, live, a.Reason), nil
	case decide.Delete:
	default:
		return outcome{}, fmt.Errorf("%w; %s", because, a.Reason)
	}
	if err := w.rehearse(ctx, it); err != nil {
		return outcome{}, fmt.Errorf("%w; it is not deleted and created again, because that would fail, too: %w", because, err)
	}
	it.Memory.Applied = "" // with --drift=report, it is created all the same
	uid := live.GetUID()
	w.Settle(v, it, enov1.ResourceState{Replaced: uid})
	if err := w.Status.Persist(ctx, v, it, v.StateOf(it)); err != nil {
		return outcome{}, err
	}
	w.track(k, it, it.Object)
	err = w.Remote.Delete(ctx, live, client.Preconditions{UID: &uid}, client.PropagationPolicy(decide.Propagation(it.Resource)))
	if client.IgnoreNotFound(err) != nil {
		return outcome{}, fmt.Errorf("cannot delete %s to create it again: %w", it.Identity, err)
	}
	w.Metrics.Did(decide.Delete)
	w.Metrics.Replacements.Inc()
	w.Events.Record(v.Owner, it.Object, corev1.EventTypeNormal, "Replaced", fmt.Sprintf("%s is deleted and created again (propagation %s): %s", it.Identity, decide.Propagation(it.Resource), it.Redact(because, live)))

	return w.awaitRemoval(it, live, a.Reason), nil
}

// awaitRemoval is the outcome while an object is being deleted that is created again. live is
// nil if it is gone.
func (w *Worker) awaitRemoval(it *model.Item, live *unstructured.Unstructured, reason string) outcome {
	m := it.Memory
	switch {
	case live == nil:
	case live.GetDeletionTimestamp() != nil:
		m.Replacing = live.GetDeletionTimestamp().Time // this process may have started later
	default:
		m.Replacing = cmp.Or(m.Replacing, w.Now())
	}

	return outcome{waits: reason, again: replacePoll, replaces: true}
}

// waitError is what an item waits for if that is reported as an error, nil otherwise.
func (w *Worker) waitError(it *model.Item, out outcome) *string {
	m := it.Memory
	if out.waits == "" {
		m.Replacing = time.Time{}

		return nil
	}
	if out.replaces {
		m.Replacing = cmp.Or(m.Replacing, w.Now())
		if w.Now().Sub(m.Replacing) < replaceGrace {
			return nil
		}
	}

	return new(event.Clip(out.waits))
}

// rehearse finds out whether the server would accept the object if the present one did not
// exist. That the name is taken is the last thing that the server checks.
func (w *Worker) rehearse(ctx context.Context, it *model.Item) error {
	o := it.Object.DeepCopy()
	err := w.Remote.Create(ctx, o, client.FieldOwner(w.Manager), client.DryRunAll)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot create %s: %w", it.Identity, err)
	}

	return nil
}
