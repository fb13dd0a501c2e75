package synthesis

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// gone lets nothing by but the end of an object.
var gone = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	UpdateFunc:  func(event.UpdateEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// symphonyOf is the Symphony that a composition belongs to.
func symphonyOf(c *enov1.Composition) *metav1.OwnerReference {
	o := metav1.GetControllerOf(c)
	if o == nil || o.Kind != enov1.SymphonyKind {
		return nil
	}

	return o
}

// membersOf maps a Symphony to its compositions.
func (r *Reconciler) membersOf(ctx context.Context, o client.Object) []reconcile.Request {
	list := &enov1.CompositionList{}
	// The cache answers from memory; it fails only if it is not there.
	if err := r.client.List(ctx, list, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var all []reconcile.Request
	for i := range list.Items {
		if owner := symphonyOf(&list.Items[i]); owner != nil && owner.UID == o.GetUID() {
			all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}

	return all
}

// symphonyGone reports whether a composition with the annotation has outlived its Symphony. Its
// objects are orphaned then, so the API server is asked.
func (r *Reconciler) symphonyGone(ctx context.Context, c *enov1.Composition) (bool, error) {
	owner := symphonyOf(c)
	if owner == nil || c.Annotations[enov1.AnnotationForceDeleteWhenSymphonyGone] != "true" {
		return false, nil
	}
	s := &enov1.Symphony{}
	for _, from := range []client.Reader{r.client, r.reader} {
		err := from.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: owner.Name}, s)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return false, fmt.Errorf("cannot read Symphony %s/%s: %w", c.Namespace, owner.Name, err)
		case s.UID == owner.UID:
			return false, nil
		}
	}

	return true, nil
}
