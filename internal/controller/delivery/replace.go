package delivery

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
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// replacePoll is how often it is checked whether an object is gone that is created again. The
// watch mostly reports it earlier.
const replacePoll = patience / 10

// replaceGrace is how long the deletion of an object that is created again may take before
// it is reported as an error. Until then it is no failure of the synthesis.
const replaceGrace = time.Minute

// makeRoom deletes an object whose change was rejected because a field is immutable, so that
// it is created again when it is gone. because is the rejection. Before anything is deleted,
// the server must accept the replacement, and the status must record the deletion: it happens
// once per synthesis, also if this process ends in between.
func (w *worker) makeRoom(ctx context.Context, k key, v *view, it *item, because error) (outcome, error) {
	live, err := w.read(ctx, it)
	if err != nil {
		return outcome{}, err
	}
	a := decide.DecideReplacement(it.Resource, decide.Rejection{
		Live: live, Ours: it.memory.isOurs(live), Manager: w.manager, Replaced: v.replaced(it),
		Sharer: w.sharer(v.name, it.Identity), Unread: w.unread(v),
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
	it.memory.applied = "" // with --drift=report, it is created all the same
	uid := live.GetUID()
	w.settle(v, it, enov1.ResourceState{Replaced: uid})
	if err := w.status.persist(ctx, v, it, v.stateOf(it)); err != nil {
		return outcome{}, err
	}
	w.track(k, it, it.Object)
	err = w.remote.Delete(ctx, live, client.Preconditions{UID: &uid}, client.PropagationPolicy(decide.Propagation(it.Resource)))
	if client.IgnoreNotFound(err) != nil {
		return outcome{}, fmt.Errorf("cannot delete %s to create it again: %w", it.Identity, err)
	}
	w.metrics.did(decide.Delete)
	w.metrics.replacements.Inc()
	w.events.record(v.owner, it.Object, corev1.EventTypeNormal, "Replaced", fmt.Sprintf("%s is deleted and created again (propagation %s): %s", it.Identity, decide.Propagation(it.Resource), it.discreet(because, live)))

	return w.awaitRemoval(it, live, a.Reason), nil
}

// awaitRemoval is the outcome while an object is being deleted that is created again. live is
// nil if it is gone.
func (w *worker) awaitRemoval(it *item, live *unstructured.Unstructured, reason string) outcome {
	m := it.memory
	switch {
	case live == nil:
	case live.GetDeletionTimestamp() != nil:
		m.replacing = live.GetDeletionTimestamp().Time // this process may have started later
	default:
		m.replacing = cmp.Or(m.replacing, w.now())
	}

	return outcome{waits: reason, again: replacePoll, replaces: true}
}

// waitError is what an item waits for if that is reported as an error, nil otherwise.
func (w *worker) waitError(it *item, out outcome) *string {
	m := it.memory
	if out.waits == "" {
		m.replacing = time.Time{}

		return nil
	}
	if out.replaces {
		m.replacing = cmp.Or(m.replacing, w.now())
		if w.now().Sub(m.replacing) < replaceGrace {
			return nil
		}
	}

	return new(clip(out.waits))
}

// rehearse finds out whether the server would accept the object if the present one did not
// exist. That the name is taken is the last thing that the server checks.
func (w *worker) rehearse(ctx context.Context, it *item) error {
	o := it.Object.DeepCopy()
	err := w.remote.Create(ctx, o, client.FieldOwner(w.manager), client.DryRunAll)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot create %s: %w", it.Identity, err)
	}

	return nil
}
