package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/kube"
)

// With --delivery-scope=namespace, everything that is sent for an object of a composition is
// sent as the ServiceAccount of that composition. What it may not do is reported, and never
// done with the permissions of the manager.

// noAccount is the error of a composition that has no account.
const noAccount = "there is no ServiceAccount to deliver as: set spec.serviceAccountName, or start the manager with --default-service-account"

// handleError settles an item that was not delivered because of an error. An object that must be
// deleted and that the account may not delete may be left as it is.
func (w *Worker) handleError(ctx context.Context, k queue.Key, v *model.Composition, it *model.Item, live *unstructured.Unstructured, err error) (time.Duration, error) {
	deletes := v.Deleting || it.Tombstone
	denied := w.deny(v, it, it.Redact(err, live))
	if denied && deletes && w.leaveBehind(ctx, v, it) {
		w.allow(v, it)
		w.Health.Forget(k)
		w.settleRemoved(k, v, it, outcome{})

		return 0, nil
	}
	err = it.Redact(err, live)
	if errors.Is(err, kube.ErrNoUser) {
		err = kube.WithText(err, noAccount)
	}
	w.settleFailure(v, it, err, deletes)

	return 0, err
}

// deny records that the account of a composition has no permission for an object, and reports
// whether that is what an error is about.
func (w *Worker) deny(v *model.Composition, it *model.Item, err error) bool {
	if !w.Scope.Restricts() {
		return false
	}
	denial, denied := tenancy.Attempt{
		Account: v.Account, Namespace: it.Namespace, Deletes: v.Deleting || it.Tombstone, Prunes: !v.Deleting && it.Tombstone, Unsent: errors.Is(err, kube.ErrNoUser),
	}.Deny(err)
	if denied && v.Denials.Note(it.Identity, denial) {
		w.Requeue(v.Name)
	}

	return denied
}

// allow records that an object was written, deleted or left alone.
func (w *Worker) allow(v *model.Composition, it *model.Item) {
	if w.Scope.Restricts() && v.Denials.Note(it.Identity, tenancy.Denial{}) {
		w.Requeue(v.Name)
	}
}

// leaveBehind reports whether an object that may not be deleted is left as it is.
func (w *Worker) leaveBehind(ctx context.Context, v *model.Composition, it *model.Item) bool {
	r := w.remainder(ctx, v, it)
	why := r.Leave()
	if why == "" || !r.Recorded {
		return why != ""
	}
	log.FromContext(ctx).WithName("delivery").Info("an object is not deleted", "composition", v.Name.String(), "object", it.String(), "account", v.Account.String(), "reason", why)
	if !r.Ending {
		w.Events.Record(v.Owner, it.Object, corev1.EventTypeWarning, "LeftBehind", fmt.Sprintf("%s is not deleted: %s", it.Identity, why))
	}

	return true
}

// remainder finds out what is necessary to decide about an object that may not be deleted.
func (w *Worker) remainder(ctx context.Context, v *model.Composition, it *model.Item) tenancy.Remainder {
	about := v.Metadata()
	r := tenancy.Remainder{
		Recorded: it.Memory.Owned && !it.IsPatch() || it.IsPatch() && (it.Removes || it.Overridden()), Grace: w.ForbiddenGrace,
		Orphan: v.Deleting && enov1.IsOrphan(about.Annotations[enov1.AnnotationDeletionStrategy]),
	}
	if r.Leave() == "" && it.Namespace != "" {
		namespace, err := w.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, it.Namespace, metav1.GetOptions{})
		r.Ending = isEnding(namespace, err)
	}
	if r.Leave() == "" && v.Deleting && about.DeletionTimestamp != nil {
		r.HomeEnding, r.Waited = w.holdsUp(ctx, v, about.DeletionTimestamp.Time)
	}

	return r
}

// holdsUp reports whether a composition, which is being deleted since some time, holds up its namespace,
// and for how long.
func (w *Worker) holdsUp(ctx context.Context, v *model.Composition, since time.Time) (bool, time.Duration) {
	home := &metav1.PartialObjectMetadata{}
	home.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := w.Reader.Get(ctx, types.NamespacedName{Name: v.Name.Namespace}, home)
	if end := home.DeletionTimestamp; err == nil && end != nil && end.After(since) {
		since = end.Time
	}

	return isEnding(home, err), w.Now().Sub(since)
}

// isEnding reports whether a namespace is terminating or does not exist.
func isEnding(namespace *metav1.PartialObjectMetadata, err error) bool {
	return apierrors.IsNotFound(err) || err == nil && namespace.DeletionTimestamp != nil
}

// persistRemoval writes that a Patch has deleted its target before anything else can
// create the object again. A process that is killed in between must not repeat it.
func (w *Worker) persistRemoval(ctx context.Context, v *model.Composition, it *model.Item, out outcome) error {
	if !it.IsPatch() || !it.Removes || out.waits != "" || v.Ran(it) {
		return nil
	}
	now := w.Timestamp()

	return w.Status.Persist(ctx, v, it, enov1.ResourceState{Reconciled: true, Ready: &now, Deleted: true})
}
