// Package namespacerecovery creates the namespace of compositions again if it was removed
// with compositions in it.
//
// A namespace disappears when it is empty. If its finalizers are removed by force, it
// disappears at once, and its objects stay in a namespace that does not exist. There the
// API server rejects every write except for a deletion, so that finalizers can never be
// removed. Only a namespace of the same name helps: it is created, and deleted at once,
// which now waits for its objects.
package namespacerecovery

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/kube"
)

// reason is that of the annotation of a namespace that was created here.
const reason = "OrphanedResources"

// A Reconciler makes namespaces again.
type Reconciler struct {
	client client.Client
	reader client.Reader
}

// SetupWithManager starts it. The content of a namespace is read once, when the namespace is seen
// first; after that only its deletion matters.
func SetupWithManager(mgr ctrl.Manager) error {
	inside := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: o.GetNamespace()}}}
	})
	first := builder.WithPredicates(predicate.Funcs{
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	})

	return ctrl.NewControllerManagedBy(mgr).
		Named("orphanage").
		For(&corev1.Namespace{}, builder.OnlyMetadata).
		Watches(&enov1.Composition{}, inside, first).
		Watches(&enov1.Symphony{}, inside, first).
		Watches(&enov1.ResourceSlice{}, inside, first).
		Complete(kube.Patient(&Reconciler{client: mgr.GetClient(), reader: mgr.GetAPIReader()}))
}

// Reconcile reconciles one namespace.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ns := &corev1.Namespace{}
	err := r.reader.Get(ctx, client.ObjectKey{Name: request.Name}, ns)
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, r.restore(ctx, request.Name)
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("cannot read Namespace %s: %w", request.Name, err)
	case ns.Annotations[enov1.AnnotationRecreationReason] == reason && ns.DeletionTimestamp == nil:
		return reconcile.Result{}, r.remove(ctx, ns)
	}

	return reconcile.Result{}, nil
}

// restore makes a namespace that something is left in.
func (r *Reconciler) restore(ctx context.Context, name string) error {
	left, err := r.left(ctx, name)
	if left == "" || err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("A namespace is made again, because it is gone and something is left in it", "left", left)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{enov1.AnnotationRecreationReason: reason}}}
	if err := r.client.Create(ctx, ns); apierrors.IsAlreadyExists(err) {
		return nil // its event brings it back
	} else if err != nil {
		return fmt.Errorf("cannot make Namespace %s again, which %s is left in: %w", name, left, err)
	}

	return r.remove(ctx, ns)
}

// remove deletes a namespace that was created here. It disappears when everything in it is deleted
// as usual.
func (r *Reconciler) remove(ctx context.Context, ns *corev1.Namespace) error {
	if err := client.IgnoreNotFound(r.client.Delete(ctx, ns, client.Preconditions{UID: &ns.UID})); err != nil {
		return fmt.Errorf("cannot delete Namespace %s again: %w", ns.Name, err)
	}

	return nil
}

// left names something that is in a namespace, "" if there is nothing. The API
// server is asked: what the cache has may be gone.
func (r *Reconciler) left(ctx context.Context, namespace string) (string, error) {
	for _, kind := range []string{enov1.CompositionKind, enov1.SymphonyKind, enov1.ResourceSliceKind} {
		metadata := &metav1.PartialObjectMetadataList{}
		metadata.SetGroupVersionKind(enov1.GroupVersion.WithKind(kind + "List"))
		if err := r.reader.List(ctx, metadata, client.InNamespace(namespace), client.Limit(1)); err != nil {
			return "", fmt.Errorf("cannot list what is left of kind %s in namespace %s: %w", kind, namespace, err)
		}
		if len(metadata.Items) > 0 {
			return kind + " " + metadata.Items[0].Name, nil
		}
	}

	return "", nil
}
