package delivery

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
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/kube"
)

// With --delivery-scope=namespace, everything that is sent for an object of a composition is
// sent as the ServiceAccount of that composition. What it may not do is reported, and never
// done with the permissions of the manager.

// noAccount is the error of a composition that has no account.
const noAccount = "there is no ServiceAccount to deliver as: set spec.serviceAccountName, or start the manager with --default-service-account"

// fail settles an item that was not delivered because of an error. An object that must be
// deleted and that the account may not delete may be left as it is.
func (w *worker) fail(ctx context.Context, k key, v *view, it *item, live *unstructured.Unstructured, err error) (time.Duration, error) {
	deletes := v.deleting || it.Tombstone
	denied := w.deny(v, it, it.discreet(err, live))
	if denied && deletes && w.leaves(ctx, v, it) {
		w.permitted(v, it)
		w.health.forget(k)
		w.removed(k, v, it, outcome{})

		return 0, nil
	}
	err = it.discreet(err, live)
	if errors.Is(err, kube.ErrNoUser) {
		err = kube.WithText(err, noAccount)
	}
	w.failed(v, it, err, deletes)

	return 0, err
}

// deny records that the account of a composition has no permission for an object, and reports
// whether that is what an error is about.
func (w *worker) deny(v *view, it *item, err error) bool {
	if !w.scope.Restricts() {
		return false
	}
	denial, denied := tenancy.Attempt{
		Account: v.account, Namespace: it.Namespace, Deletes: v.deleting || it.Tombstone, Prunes: !v.deleting && it.Tombstone, Unsent: errors.Is(err, kube.ErrNoUser),
	}.Deny(err)
	if denied && v.denials.note(it.Identity, denial) {
		w.requeue(v.name)
	}

	return denied
}

// permitted records that an object was written, deleted or left alone.
func (w *worker) permitted(v *view, it *item) {
	if w.scope.Restricts() && v.denials.note(it.Identity, tenancy.Denial{}) {
		w.requeue(v.name)
	}
}

// leaves reports whether an object that may not be deleted is left as it is.
func (w *worker) leaves(ctx context.Context, v *view, it *item) bool {
	r := w.remainder(ctx, v, it)
	why := r.Leave()
	if why == "" || !r.Recorded {
		return why != ""
	}
	log.FromContext(ctx).WithName("delivery").Info("an object is not deleted", "composition", v.name.String(), "object", it.String(), "account", v.account.String(), "reason", why)
	if !r.Ending {
		w.events.record(v.owner, it.Object, corev1.EventTypeWarning, "LeftBehind", fmt.Sprintf("%s is not deleted: %s", it.Identity, why))
	}

	return true
}

// remainder finds out what is necessary to decide about an object that may not be deleted.
func (w *worker) remainder(ctx context.Context, v *view, it *item) tenancy.Remainder {
	about := v.asked()
	r := tenancy.Remainder{
		Recorded: it.memory.ours && !it.IsPatch() || it.IsPatch() && (it.Removes || it.Overridden()), Grace: w.forbiddenGrace,
		Orphan: v.deleting && enov1.IsOrphan(about.Annotations[enov1.AnnotationDeletionStrategy]),
	}
	if r.Leave() == "" && it.Namespace != "" {
		namespace, err := w.metadata.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, it.Namespace, metav1.GetOptions{})
		r.Ending = isEnding(namespace, err)
	}
	if r.Leave() == "" && v.deleting && about.DeletionTimestamp != nil {
		r.HomeEnding, r.Waited = w.holdsUp(ctx, v, about.DeletionTimestamp.Time)
	}

	return r
}

// holdsUp reports whether a composition, which is being deleted since some time, holds up its namespace,
// and for how long.
func (w *worker) holdsUp(ctx context.Context, v *view, since time.Time) (bool, time.Duration) {
	home := &metav1.PartialObjectMetadata{}
	home.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := w.reader.Get(ctx, types.NamespacedName{Name: v.name.Namespace}, home)
	if end := home.DeletionTimestamp; err == nil && end != nil && end.After(since) {
		since = end.Time
	}

	return isEnding(home, err), w.now().Sub(since)
}

// isEnding reports whether a namespace is terminating or does not exist.
func isEnding(namespace *metav1.PartialObjectMetadata, err error) bool {
	return apierrors.IsNotFound(err) || err == nil && namespace.DeletionTimestamp != nil
}

// persistRemoval writes that a Patch has deleted its target before anything else can
// create the object again. A process that is killed in between must not repeat it.
func (w *worker) persistRemoval(ctx context.Context, v *view, it *item, out outcome) error {
	if !it.IsPatch() || !it.Removes || out.waits != "" || v.ran(it) {
		return nil
	}
	now := w.timestamp()

	return w.status.persist(ctx, v, it, enov1.ResourceState{Reconciled: true, Ready: &now, Deleted: true})
}
